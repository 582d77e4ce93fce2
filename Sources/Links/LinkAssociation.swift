import WorkerInterface

/// Receiving side of the datagrams under one set of keys: authentic, and each once.
struct LinkOpener {
    let node: String
    private let cipher: LinkCipher
    private var window = LinkReplayWindow()

    init?(_ keys: LinkKeys.Direction, from node: String) {
        guard let cipher = LinkCipher(keys, seals: false) else { return nil }
        self.cipher = cipher
        self.node = node
    }

    /// Returns the text of a datagram; `nil` if it is not genuine or has come before.
    mutating func open(_ datagram: LinkDatagram) -> [UInt8]? {
        guard window.isNew(datagram.counter),
            let text = cipher.open(datagram.bytes, counter: datagram.counter)
        else { return nil }
        window.accept(datagram.counter)
        return text
    }
}

/// Sending side of the datagrams under one set of keys.
struct LinkSealer {
    private let cipher: LinkCipher
    let association: UInt64
    /// Counter of the last datagram.
    private(set) var counter: UInt64 = 0

    init?(_ keys: LinkKeys.Direction) {
        guard let cipher = LinkCipher(keys, seals: true) else { return nil }
        self.cipher = cipher
        association = keys.association
    }

    mutating func seal(_ text: [UInt8]) -> [UInt8]? {
        counter &+= 1
        let header = LinkDatagram.header(association, counter)
        return cipher.seal(text, counter: counter, after: header)
    }
}

/// A datagram between two nodes before it is opened.
///
/// Header: version (1), reserved (1), worker (2), association (8), counter (8).
struct LinkDatagram {
    let association: UInt64
    let counter: UInt64
    /// All of it, with its header and tag.
    let bytes: [UInt8]

    static let version: UInt8 = 1
    static let headerLength = 20
    /// Bytes that a datagram has more than its records.
    static let overhead = headerLength + LinkCipher.tagLength

    static func header(_ association: UInt64, _ counter: UInt64) -> [UInt8] {
        var header: [UInt8] = []
        header.reserveCapacity(headerLength)
        header.append(version)
        header.append(bigEndian: 0 as UInt8)
        header.append(bigEndian: 0 as UInt16)
        header.append(bigEndian: association)
        header.append(bigEndian: counter)
        return header
    }

    init?(_ datagram: [UInt8]) {
        guard datagram.count >= Self.overhead, datagram[0] == Self.version else { return nil }
        var reader = RecordReader(rest: datagram[4..<Self.headerLength])
        guard let association: UInt64 = reader.number(), let counter: UInt64 = reader.number()
        else { return nil }
        self.association = association
        self.counter = counter
        bytes = datagram
    }
}

/// Replay window of 1,024 counters.
struct LinkReplayWindow {
    private var highest: UInt64 = 0
    private var words = [UInt64](repeating: 0, count: Self.size / 64)

    static let size = 1_024

    /// Whether a counter has not come before, and is not too old to know.
    func isNew(_ counter: UInt64) -> Bool {
        if counter > highest { return true }
        guard highest &- counter < UInt64(Self.size) else { return false }
        return words[word(counter)] & bit(counter) == 0
    }

    mutating func accept(_ counter: UInt64) {
        if counter > highest {
            if counter &- highest >= UInt64(Self.size) {
                for index in words.indices { words[index] = 0 }
            } else {
                var skipped = highest &+ 1
                while skipped < counter {
                    words[word(skipped)] &= ~bit(skipped)
                    skipped &+= 1
                }
            }
            highest = counter
        }
        words[word(counter)] |= bit(counter)
    }

    private func word(_ counter: UInt64) -> Int {
        Int(truncatingIfNeeded: counter >> 6 & UInt64(Self.size / 64 - 1))
    }

    private func bit(_ counter: UInt64) -> UInt64 { 1 << (counter & 63) }
}
