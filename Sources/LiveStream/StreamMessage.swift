package import RTP
package import WorkerInterface

/// What a live stream's encoder is to make, and where it goes.
package struct StreamSettings: Hashable, Sendable {
    /// A secret: it lives in memory and in the pipe alone.
    package var url: String
    /// A file of certificates, one of which has to have signed the server's; empty: the system's.
    package var authority: String
    /// In pixels; even.
    package var width: Int
    package var height: Int
    /// Of the picture, in bits a second.
    package var bitrate: Int
    /// How long a server that is gone is tried again.
    package var retrySeconds: Int
    /// The server has taken the stream before: it is worth trying again from the beginning.
    package var hasBeenUp: Bool

    package init(
        url: String,
        width: Int,
        height: Int,
        bitrate: Int,
        retrySeconds: Int,
        hasBeenUp: Bool,
        authority: String = ""
    ) {
        self.url = url
        self.authority = authority
        self.hasBeenUp = hasBeenUp
        self.width = width
        self.height = height
        self.bitrate = bitrate
        self.retrySeconds = retrySeconds
    }
}

/// One frame of a track on its way to the encoder.
package struct StreamFrame: Hashable, Sendable {
    /// A number that no other track of the stream ever has.
    package var track: UInt32
    package var codec: Codec
    package var isKeyframe: Bool
    /// When it was captured, on the machine's monotonic clock.
    package var instant: Instant
    /// What a decoder has to know first; of keyframes, and of all sound.
    package var configuration: [UInt8]?
    package var bytes: [UInt8]

    package init(
        track: UInt32,
        codec: Codec,
        isKeyframe: Bool,
        instant: Instant,
        configuration: [UInt8]?,
        bytes: [UInt8]
    ) {
        self.track = track
        self.codec = codec
        self.isKeyframe = isKeyframe
        self.instant = instant
        self.configuration = configuration
        self.bytes = bytes
    }
}

/// What the daemon tells the process that encodes.
package enum StreamMessage: Hashable, Sendable {
    /// The first message, and no other.
    case begin(StreamSettings)
    /// The tracks whose pictures are shown, in the order of their tiles.
    case tiles([UInt32])
    case frame(StreamFrame)
    /// Nothing more comes of this track; what is seen of it may stay until something else is.
    case leave(UInt32)
    /// What has come of this track is not to be seen or heard any more.
    case forget(UInt32)
    /// Ends the stream in good order.
    case end
}

/// What the process that encodes tells the daemon.
package enum StreamReport: Hashable, Sendable {
    /// The server has taken the first packet, or takes packets again.
    case up
    /// The server is gone, and is tried again.
    case down(cause: String)
    /// It has ended for a reason of its own.
    case ended(reason: String)
    /// A track goes on with a keyframe only.
    case keyframeWanted(UInt32)
    /// Parts of the sandbox that this system has not; told once, at the beginning.
    case unconfined(parts: [String])
}

/// Messages lie one behind another, each behind its length in four bytes.
package enum StreamCoding {
    /// Bytes of one message: more than any frame has.
    package static let byteLimit = 1 << 24

    package static func encoded(_ message: StreamMessage) -> [UInt8] {
        var writer = StreamWriter()
        switch message {
        case .begin(let settings):
            writer.put(1, bytes: 1)
            for number in [
                settings.width, settings.height, settings.bitrate, settings.retrySeconds,
                settings.hasBeenUp ? 1 : 0,
            ] {
                writer.put(number, bytes: 4)
            }
            writer.put(settings.url.utf8.count, bytes: 4)
            writer.put(text: settings.url)
            writer.put(text: settings.authority)
        case .tiles(let tracks):
            writer.put(2, bytes: 1)
            for track in tracks { writer.put(Int(track), bytes: 4) }
        case .frame(let frame):
            writer.put(3, bytes: 1)
            writer.put(Int(frame.track), bytes: 4)
            writer.put(Int(frame.codec.rawValue), bytes: 1)
            writer.put(frame.isKeyframe ? 1 : 0, bytes: 1)
            writer.put(Int(frame.instant.nanoseconds), bytes: 8)
            writer.put((frame.configuration?.count ?? -1) + 1, bytes: 4)
            writer.bytes += frame.configuration ?? []
            writer.bytes += frame.bytes
        case .leave(let track):
            writer.put(4, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .forget(let track):
            writer.put(5, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .end: writer.put(6, bytes: 1)
        }
        return writer.finished()
    }

    package static func encoded(_ report: StreamReport) -> [UInt8] {
        var writer = StreamWriter()
        switch report {
        case .up: writer.put(1, bytes: 1)
        case .down(let cause):
            writer.put(2, bytes: 1)
            writer.put(text: cause)
        case .ended(let reason):
            writer.put(3, bytes: 1)
            writer.put(text: reason)
        case .keyframeWanted(let track):
            writer.put(4, bytes: 1)
            writer.put(Int(track), bytes: 4)
        case .unconfined(let parts):
            writer.put(5, bytes: 1)
            writer.put(text: parts.joined(separator: ","))
        }
        return writer.finished()
    }

    /// Returns `nil` for what is no message.
    package static func message(_ body: [UInt8]) -> StreamMessage? {
        var reader = StreamReader(body)
        switch reader.take(bytes: 1) {
        case 1:
            guard let width = reader.take(bytes: 4), let height = reader.take(bytes: 4),
                let bitrate = reader.take(bytes: 4), let retry = reader.take(bytes: 4),
                let hasBeenUp = reader.take(bytes: 4), let length = reader.take(bytes: 4),
                let url = reader.take(count: length)
            else { return nil }
            return .begin(
                StreamSettings(
                    url: String(decoding: url, as: UTF8.self),
                    width: width,
                    height: height,
                    bitrate: bitrate,
                    retrySeconds: retry,
                    hasBeenUp: hasBeenUp == 1,
                    authority: reader.text()
                )
            )
        case 2:
            var tracks: [UInt32] = []
            while let track = reader.take(bytes: 4) { tracks.append(UInt32(track)) }
            return .tiles(tracks)
        case 3: return frame(&reader)
        case 4: return reader.take(bytes: 4).map { .leave(UInt32($0)) }
        case 5: return reader.take(bytes: 4).map { .forget(UInt32($0)) }
        case 6: return .end
        default: return nil
        }
    }

    private static func frame(_ reader: inout StreamReader) -> StreamMessage? {
        guard let track = reader.take(bytes: 4),
            let codec = reader.take(bytes: 1).flatMap({ Codec(rawValue: UInt8($0)) }),
            let isKeyframe = reader.take(bytes: 1), let time = reader.take(bytes: 8),
            let count = reader.take(bytes: 4),
            let configuration = reader.take(count: max(0, count - 1))
        else { return nil }
        return .frame(
            StreamFrame(
                track: UInt32(track),
                codec: codec,
                isKeyframe: isKeyframe == 1,
                instant: Instant(nanoseconds: Int64(time)),
                configuration: count == 0 ? nil : configuration,
                bytes: reader.rest()
            )
        )
    }

    /// Reads a report; `nil` for what is none.
    ///
    /// It comes from a process that has decoded strangers' media, and goes to clients and into the
    /// log: so a cause is a word, and nothing else.
    package static func report(_ body: [UInt8]) -> StreamReport? {
        var reader = StreamReader(body)
        switch reader.take(bytes: 1) {
        case 1: return .up
        case 2: return word(reader.text()).map { .down(cause: $0) }
        case 3: return word(reader.text()).map { .ended(reason: $0) }
        case 4: return reader.take(bytes: 4).map { .keyframeWanted(UInt32($0)) }
        case 5:
            let parts = reader.text().split(separator: ",").compactMap { word(String($0)) }
            return .unconfined(parts: Array(parts.prefix(8)))
        default: return nil
        }
    }

    /// At most 32 small letters and hyphens.
    private static func word(_ text: String) -> String? {
        let isWord = text.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == 0x2d }
        return isWord && (1...32).contains(text.utf8.count) ? text : nil
    }
}

/// Cuts what comes through a pipe into messages.
package struct StreamInput {
    private var bytes: [UInt8] = []
    private var start = 0
    /// A length was larger than any message: nothing can be read any more.
    package private(set) var isBroken = false

    package init() {}

    package mutating func append(_ more: ArraySlice<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// The next message that is whole, without its length.
    package mutating func next() -> [UInt8]? {
        guard !isBroken, bytes.count - start >= 4 else { return nil }
        let length = bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
        guard length <= StreamCoding.byteLimit else {
            isBroken = true
            return nil
        }
        guard bytes.count - start - 4 >= length else { return nil }
        defer { start += 4 + length }
        return Array(bytes[start + 4..<start + 4 + length])
    }
}

/// Big-endian numbers behind one another, and the length before them.
private struct StreamWriter {
    var bytes: [UInt8] = [0, 0, 0, 0]

    mutating func put(_ number: Int, bytes count: Int) {
        for shift in stride(from: 8 * (count - 1), through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    mutating func put(text: String) { bytes += text.utf8 }

    func finished() -> [UInt8] {
        var whole = bytes
        let length = whole.count - 4
        for index in 0..<4 { whole[index] = UInt8(truncatingIfNeeded: length >> (24 - 8 * index)) }
        return whole
    }
}

private struct StreamReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(bytes count: Int) -> Int? {
        guard bytes.count - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
    }

    mutating func take(count: Int) -> [UInt8]? {
        guard count <= bytes.count - position else { return nil }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    mutating func rest() -> [UInt8] {
        defer { position = bytes.count }
        return Array(bytes[position...])
    }

    mutating func text() -> String { String(decoding: rest(), as: UTF8.self) }
}
