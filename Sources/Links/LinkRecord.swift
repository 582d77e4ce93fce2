import WorkerInterface

/// Record within a datagram between two nodes.
///
/// Form: type (1), length of what follows (2), members; numbers are big-endian. Several records
/// share a datagram.
enum LinkRecord: Equatable {
    /// A packet of a publication, by the receiver's handle.
    case media(LinkedMediaHeader, packet: [UInt8])
    /// Encodings that are wanted of a publication, one bit each, absolute; `revision` grows with
    /// each opening of the receiver's gate, and the packets sent from then on carry it.
    case want(StreamName, handle: PublicationID, revision: UInt16, encodings: UInt8)
    /// Packets that are missing.
    case missing(handle: PublicationID, position: UInt8, epoch: UInt32, numbers: [UInt16])
    case keyframe(handle: PublicationID, position: UInt8)
    /// Asks for an `echo`; the stamp is a time on the sender's clock, in nanoseconds.
    case beat(stamp: UInt64)
    /// `granted`: the lease on the rooms of the node that answers goes on from the stamp.
    case echo(stamp: UInt64, granted: Bool)
    /// Tells when the datagrams under some keys of the reader's arrived, as an RTCP message
    /// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1); their numbers are the counters'
    /// low bits.
    case arrivals(association: UInt64, report: [UInt8])
    /// Padding of a probe: so many bytes that mean nothing.
    case padding(Int)
    /// Encodings that the path does not carry now although they are wanted, one bit each, absolute.
    case withheld(handle: PublicationID, encodings: UInt8)
    /// A packet of a warm picture, which covers so many sequence numbers.
    case picture(LinkedMediaHeader, covered: UInt16, isLast: Bool, packet: [UInt8])

    /// Bytes of the type and the length.
    static let prefixLength = 3
    /// Most numbers in one `missing`.
    static let missingLimit = 128

    private var type: UInt8 {
        switch self {
        case .media: 1
        case .want: 2
        case .missing: 3
        case .keyframe: 4
        case .beat: 5
        case .echo: 6
        case .arrivals: 7
        case .padding: 8
        case .withheld: 9
        case .picture: 10
        }
    }

    /// Appends the record to a datagram's text.
    func encode(into text: inout [UInt8]) {
        let start = text.count
        text.append(type)
        // Its length follows once it is known.
        text.append(bigEndian: 0 as UInt16)
        switch self {
        case .media(let header, let packet):
            header.encode(into: &text)
            text += packet
        case .want(let name, let handle, let revision, let encodings):
            text.append(handle: handle)
            text.append(bigEndian: revision)
            text.append(encodings)
            text.append(bigEndian: UInt32(clamping: name.target.worker))
            text.append(handle: name.target.publication)
            text += name.home.utf8
        case .missing(let handle, let position, let epoch, let numbers):
            text.append(handle: handle)
            text.append(position)
            text.append(bigEndian: epoch)
            for number in numbers { text.append(bigEndian: number) }
        case .keyframe(let handle, let position):
            text.append(handle: handle)
            text.append(position)
        case .beat(let stamp): text.append(bigEndian: stamp)
        case .echo(let stamp, let granted):
            text.append(bigEndian: stamp)
            text.append(granted ? 1 : 0)
        case .arrivals(let association, let report):
            text.append(bigEndian: association)
            text += report
        case .padding(let count): text += repeatElement(0, count: count)
        case .withheld(let handle, let encodings):
            text.append(handle: handle)
            text.append(encodings)
        case .picture(let header, let covered, let isLast, let packet):
            header.encode(into: &text)
            text.append(bigEndian: covered)
            text.append(isLast ? 1 : 0)
            text += packet
        }
        let length = UInt16(clamping: text.count - start - Self.prefixLength)
        text[start + 1] = UInt8(truncatingIfNeeded: length >> 8)
        text[start + 2] = UInt8(truncatingIfNeeded: length)
    }

    /// Reads all records of a datagram's text; `nil` if it is malformed.
    ///
    /// Records of unknown types are left out, as later versions may have more.
    static func read(_ text: [UInt8]) -> [Self]? {
        var records: [Self] = []
        var rest = text[...]
        while !rest.isEmpty {
            var reader = RecordReader(rest: rest)
            guard let type: UInt8 = reader.number(), let length: UInt16 = reader.number(),
                reader.rest.count >= Int(length)
            else { return nil }
            var body = RecordReader(rest: reader.rest.prefix(Int(length)))
            rest = reader.rest.dropFirst(Int(length))
            guard (1...10).contains(type) else { continue }
            guard let record = read(type, &body), body.rest.isEmpty else { return nil }
            records.append(record)
        }
        return records
    }

    private static func read(_ type: UInt8, _ reader: inout RecordReader) -> Self? {
        switch type {
        case 1:
            guard let header = LinkedMediaHeader(&reader) else { return nil }
            return .media(header, packet: reader.takeRest())
        case 2:
            guard let handle: PublicationID = reader.handle(),
                let revision: UInt16 = reader.number(), let encodings: UInt8 = reader.number(),
                let place: UInt32 = reader.number(),
                let publication: PublicationID = reader.handle(),
                let home = String(validating: reader.takeRest(), as: UTF8.self)
            else { return nil }
            let target = RelayTarget(worker: Int(place), publication: publication)
            let name = StreamName(home: home, target: target)
            return .want(name, handle: handle, revision: revision, encodings: encodings)
        case 3:
            guard let handle: PublicationID = reader.handle(),
                let position: UInt8 = reader.number(), let epoch: UInt32 = reader.number(),
                reader.rest.count <= 2 * missingLimit
            else { return nil }
            var numbers: [UInt16] = []
            while let number: UInt16 = reader.number() { numbers.append(number) }
            return .missing(handle: handle, position: position, epoch: epoch, numbers: numbers)
        case 4:
            guard let handle: PublicationID = reader.handle(),
                let position: UInt8 = reader.number()
            else { return nil }
            return .keyframe(handle: handle, position: position)
        case 5: return reader.number().map { .beat(stamp: $0) }
        case 6:
            guard let stamp: UInt64 = reader.number(), let granted: UInt8 = reader.number()
            else { return nil }
            return .echo(stamp: stamp, granted: granted == 1)
        case 7:
            guard let association: UInt64 = reader.number() else { return nil }
            return .arrivals(association: association, report: reader.takeRest())
        case 8: return .padding(reader.takeRest().count)
        case 9:
            guard let handle: PublicationID = reader.handle(),
                let encodings: UInt8 = reader.number()
            else { return nil }
            return .withheld(handle: handle, encodings: encodings)
        case 10:
            guard let header = LinkedMediaHeader(&reader), let covered: UInt16 = reader.number(),
                let isLast: UInt8 = reader.number()
            else { return nil }
            let packet = reader.takeRest()
            return .picture(header, covered: covered, isLast: isLast == 1, packet: packet)
        default: return nil
        }
    }
}

/// Facts about a packet on its way to another node.
struct LinkedMediaHeader: Equatable {
    /// Capture time of an RTP timestamp.
    struct Capture: Equatable {
        /// Age of the capture when the datagram is sent, in microseconds; negative for the future.
        var age: Int32
        var timestamp: UInt32
    }

    /// Longest form, with the record's type and length, in bytes.
    static let length = LinkRecord.prefixLength + 28 + 8

    var handle: PublicationID
    var position: UInt8
    var revision: UInt16
    /// Time since the packet's arrival from the publisher, in microseconds.
    var age: UInt32
    var epoch: UInt32
    /// The origin's sequence number with its wraps counted.
    var number: Int64
    var capture: Capture?

    init(
        handle: PublicationID,
        position: UInt8,
        revision: UInt16,
        age: UInt32,
        epoch: UInt32,
        number: Int64,
        capture: Capture? = nil
    ) {
        self.handle = handle
        self.position = position
        self.revision = revision
        self.age = age
        self.epoch = epoch
        self.number = number
        self.capture = capture
    }

    fileprivate init?(_ reader: inout RecordReader) {
        guard let handle: PublicationID = reader.handle(), let position: UInt8 = reader.number(),
            let flags: UInt8 = reader.number(), let revision: UInt16 = reader.number(),
            let age: UInt32 = reader.number(), let epoch: UInt32 = reader.number(),
            let number: UInt64 = reader.number()
        else { return nil }
        self.init(
            handle: handle,
            position: position,
            revision: revision,
            age: age,
            epoch: epoch,
            number: Int64(truncatingIfNeeded: number)
        )
        guard flags & 1 != 0 else { return }
        guard let captureAge: UInt32 = reader.number(), let timestamp: UInt32 = reader.number()
        else { return nil }
        capture = Capture(age: Int32(truncatingIfNeeded: captureAge), timestamp: timestamp)
    }

    fileprivate func encode(into text: inout [UInt8]) {
        text.append(handle: handle)
        text.append(position)
        text.append(capture == nil ? 0 : 1)
        text.append(bigEndian: revision)
        text.append(bigEndian: age)
        text.append(bigEndian: epoch)
        text.append(bigEndian: UInt64(truncatingIfNeeded: number))
        guard let capture else { return }
        text.append(bigEndian: UInt32(truncatingIfNeeded: capture.age))
        text.append(bigEndian: capture.timestamp)
    }
}

extension [UInt8] {
    mutating func append(bigEndian value: some FixedWidthInteger & UnsignedInteger) {
        for shift in stride(from: value.bitWidth - 8, through: 0, by: -8) {
            append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    fileprivate mutating func append(handle: PublicationID) {
        append(bigEndian: handle.index)
        append(bigEndian: handle.generation)
    }
}

struct RecordReader {
    var rest: ArraySlice<UInt8>

    mutating func number<Number: FixedWidthInteger & UnsignedInteger>() -> Number? {
        let width = Number.bitWidth / 8
        guard rest.count >= width else { return nil }
        var value: Number = 0
        for byte in rest.prefix(width) {
            value = width == 1 ? Number(byte) : value << 8 | Number(byte)
        }
        rest = rest.dropFirst(width)
        return value
    }

    mutating func handle() -> PublicationID? {
        guard let index: UInt32 = number(), let generation: UInt32 = number() else { return nil }
        return PublicationID(index: index, generation: generation)
    }

    mutating func takeRest() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }
}
