/// A message between two nodes.
///
/// Frame: length of what follows (4 bytes, big-endian), version (1), type (1), members. A text or
/// list of bytes has its length in 4 bytes before it.
package enum LinkMessage: Hashable, Sendable {
    /// A call of a signalling server, to be executed at the room's home.
    ///
    /// `answered`: all calls below this number have been answered, so their answers may be
    /// forgotten. `first`: the number under which it was sent before, to a home that was lost;
    /// otherwise its own.
    case call(number: UInt64, answered: UInt64, first: UInt64, connection: UInt64, line: [UInt8])
    case reply(number: UInt64, line: [UInt8])
    /// The room of the call is not at this node; the call was not executed.
    case notHere(number: UInt64)
    /// The call came before, and its answer is no longer kept.
    case forgotten(number: UInt64)
    /// An event for connections that have subscribed; `room` is empty for statistics.
    case event(connections: [UInt64], room: String, seq: UInt64, name: String, line: [UInt8])
    /// `seq` of the last event of rooms when a subscription began.
    case positions([String: UInt64])
    /// A connection has closed.
    case closed(connection: UInt64)
    /// Asks for a `pong` with the same bytes.
    case ping(UInt64)
    case pong(UInt64)
    /// Facts that a node tells of itself when the link is up.
    case describe([UInt8])
    /// A message about participants of the home's rooms at the other node.
    case place(PlaceMessage)

    package static let version = 1
    /// Longest frame after its length, in bytes; a peer that announces more is cut off.
    package static let lengthLimit = 4 << 20
    /// Rooms in one `positions`.
    static let positionLimit = 10_000

    private var type: UInt8 {
        switch self {
        case .call: 1
        case .reply: 2
        case .notHere: 3
        case .forgotten: 4
        case .event: 5
        case .positions: 6
        case .closed: 7
        case .ping: 8
        case .pong: 9
        case .describe: 10
        case .place: 11
        }
    }

    /// Returns the frame with its length.
    package func encoded() -> [UInt8] {
        var writer = LinkWriter()
        writer.byte(UInt8(Self.version))
        writer.byte(type)
        switch self {
        case .call(let number, let answered, let first, let connection, let line):
            for value in [number, answered, first, connection] { writer.number(value) }
            writer.bytes(line)
        case .reply(let number, let line):
            writer.number(number)
            writer.bytes(line)
        case .notHere(let number), .forgotten(let number), .closed(let number), .ping(let number),
            .pong(let number):
            writer.number(number)
        case .event(let connections, let room, let seq, let name, let line):
            writer.length(connections.count)
            for connection in connections { writer.number(connection) }
            writer.bytes(Array(room.utf8))
            writer.number(seq)
            writer.bytes(Array(name.utf8))
            writer.bytes(line)
        case .positions(let positions):
            writer.length(positions.count)
            for (room, seq) in positions.sorted(by: { $0.key < $1.key }) {
                writer.bytes(Array(room.utf8))
                writer.number(seq)
            }
        case .describe(let facts): writer.bytes(facts)
        case .place(let message): message.write(to: &writer)
        }
        return writer.frame
    }

    /// Reads a frame without its length; `nil` if it is malformed or of another version.
    package init?(frame: ArraySlice<UInt8>) {
        var reader = LinkReader(rest: frame)
        guard reader.byte() == UInt8(Self.version), let type = reader.byte(),
            let message = Self.read(type, &reader), reader.isAtEnd
        else { return nil }
        self = message
    }

    private static func read(_ type: UInt8, _ reader: inout LinkReader) -> Self? {
        switch type {
        case 1:
            guard let number = reader.number(), let answered = reader.number(),
                let first = reader.number(), let connection = reader.number(),
                let line = reader.bytes()
            else { return nil }
            return .call(
                number: number,
                answered: answered,
                first: first,
                connection: connection,
                line: line
            )
        case 2:
            guard let number = reader.number(), let line = reader.bytes() else { return nil }
            return .reply(number: number, line: line)
        case 3: return reader.number().map { .notHere(number: $0) }
        case 4: return reader.number().map { .forgotten(number: $0) }
        case 5: return event(&reader)
        case 6: return positions(&reader)
        case 7: return reader.number().map { .closed(connection: $0) }
        case 8: return reader.number().map { .ping($0) }
        case 9: return reader.number().map { .pong($0) }
        case 10: return reader.bytes().map { .describe($0) }
        case 11: return PlaceMessage(&reader).map { .place($0) }
        default: return nil
        }
    }

    private static func event(_ reader: inout LinkReader) -> Self? {
        guard let count = reader.length() else { return nil }
        var connections: [UInt64] = []
        for _ in 0..<count {
            guard let connection = reader.number() else { return nil }
            connections.append(connection)
        }
        guard let room = reader.text(), let seq = reader.number(), let name = reader.text(),
            let line = reader.bytes()
        else { return nil }
        return .event(connections: connections, room: room, seq: seq, name: name, line: line)
    }

    private static func positions(_ reader: inout LinkReader) -> Self? {
        guard let count = reader.length(), count <= positionLimit else { return nil }
        var positions: [String: UInt64] = [:]
        for _ in 0..<count {
            guard let room = reader.text(), let seq = reader.number() else { return nil }
            positions[room] = seq
        }
        return .positions(positions)
    }
}

/// Writer of one frame.
struct LinkWriter {
    private(set) var body: [UInt8] = []

    mutating func byte(_ value: UInt8) { body.append(value) }

    mutating func number(_ value: UInt64) {
        for shift in stride(from: 56, through: 0, by: -8) {
            body.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    mutating func length(_ value: Int) { body += Self.length(value) }

    mutating func bytes(_ value: [UInt8]) {
        length(value.count)
        body += value
    }

    var frame: [UInt8] { Self.length(body.count) + body }

    private static func length(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}

/// Reader of one frame; each method returns `nil` at the end of the bytes.
struct LinkReader {
    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func number() -> UInt64? {
        guard rest.count >= 8 else { return nil }
        let value = rest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(8)
        return value
    }

    mutating func length() -> Int? {
        guard rest.count >= 4 else { return nil }
        let value = rest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        rest = rest.dropFirst(4)
        return Int(value)
    }

    mutating func bytes() -> [UInt8]? {
        guard let length = length(), rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return Array(rest.prefix(length))
    }

    mutating func text() -> String? {
        bytes().flatMap { String(validating: $0, as: UTF8.self) }
    }
}

/// Splitter of a link's bytes into frames; buffers an incomplete frame.
package struct LinkDeframer {
    private var buffer: [UInt8] = []
    private var head = 0

    /// Reason for which a link's bytes cannot be read on.
    package enum Failure: Error, Equatable, Sendable { case tooLong, malformed }

    package init() {}

    /// Adds bytes; returns the messages that are complete.
    ///
    /// - Throws: for a frame that is too long or malformed; the link must end.
    package mutating func receive(_ bytes: [UInt8]) throws(Failure) -> [LinkMessage] {
        buffer += bytes
        var messages: [LinkMessage] = []
        while buffer.count - head >= 4 {
            let body = head + 4
            let length = buffer[head..<body].reduce(0) { $0 << 8 | Int($1) }
            guard length <= LinkMessage.lengthLimit else { throw .tooLong }
            guard buffer.count - body >= length else { break }
            guard let message = LinkMessage(frame: buffer[body..<(body + length)]) else {
                throw .malformed
            }
            messages.append(message)
            head = body + length
        }
        if head > buffer.count / 2 {
            buffer.removeSubrange(..<head)
            head = 0
        }
        return messages
    }
}
