/// Redundant audio: older blocks, each with a header, then the newest one (RFC 2198 §3).
public struct REDPayload: ~Escapable {
    /// An older block.
    public struct Block: Equatable, Sendable {
        public var payloadType: PayloadType
        /// How far before the packet's timestamp its own lies.
        public var timestampOffset: UInt16
        /// Where its data starts in the payload.
        public var offset: Int
        public var length: Int
    }

    private let payload: Span<UInt8>
    /// How many older blocks there are; block `i` has its header at byte `4 * i`.
    public let redundantCount: Int
    public let primaryPayloadType: PayloadType
    /// Where the newest block starts; it ends with the payload.
    public let primaryOffset: Int

    /// Returns `nil` where headers or blocks do not fit, and for more than 32 older blocks.
    @_lifetime(copy payload)
    public init?(_ payload: Span<UInt8>) {
        var count = 0
        var redundantBytes = 0
        while 4 * count < payload.count, payload[4 * count] & 0x80 != 0 {
            guard 4 * count + 4 <= payload.count, count < 32 else { return nil }
            redundantBytes += Int(payload.u16(at: 4 * count + 2) & 0x03ff)
            count += 1
        }
        let offset = 4 * count + 1 + redundantBytes
        guard offset <= payload.count else { return nil }
        self.payload = payload
        redundantCount = count
        primaryPayloadType = PayloadType(rawValue: payload[4 * count])
        primaryOffset = offset
    }

    /// The newest block's bytes.
    public var primary: Span<UInt8> {
        @_lifetime(copy self)
        get { payload.extracting(primaryOffset..<payload.count) }
    }

    /// The offset of the byte with the newest block's payload type.
    public var primaryHeaderOffset: Int { 4 * redundantCount }

    /// The older block `index`, oldest first.
    public subscript(index: Int) -> Block {
        precondition(index >= 0 && index < redundantCount, "no such block")
        var offset = primaryHeaderOffset + 1
        for earlier in 0..<index { offset += length(earlier) }
        return Block(
            payloadType: PayloadType(rawValue: payload[4 * index]),
            timestampOffset: payload.u16(at: 4 * index + 1) >> 2,
            offset: offset,
            length: length(index)
        )
    }

    private func length(_ index: Int) -> Int { Int(payload.u16(at: 4 * index + 2) & 0x03ff) }
}
