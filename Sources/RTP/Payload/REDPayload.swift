/// Redundant audio (RED): headers of older blocks and the primary, then their data (RFC 2198 §3).
public struct REDPayload: ~Escapable {
    /// Redundant (older) block.
    public struct Block: Equatable, Sendable {
        public var payloadType: PayloadType
        /// Offset by which its timestamp precedes the packet's.
        public var timestampOffset: UInt16
        /// Offset of its data in the payload.
        public var offset: Int
        public var length: Int
    }

    private let payload: Span<UInt8>
    /// Number of redundant blocks; block `i` has its header at byte `4 * i`.
    public let redundantCount: Int
    public let primaryPayloadType: PayloadType
    /// Offset of the primary block, which ends with the payload.
    public let primaryOffset: Int

    /// Parses a payload; returns `nil` if headers or blocks do not fit, or for more than 32
    /// redundant blocks.
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

    /// Bytes of the primary block.
    public var primary: Span<UInt8> {
        @_lifetime(copy self)
        get { payload.extracting(primaryOffset..<payload.count) }
    }

    /// Offset of the byte with the primary block's payload type.
    public var primaryHeaderOffset: Int { 4 * redundantCount }

    /// Returns redundant block `index`, oldest first.
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
