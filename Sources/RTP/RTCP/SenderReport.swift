/// Sender report: clocks and counters (RFC 3550 §6.4.1); `ReceptionReports` reads its report
/// blocks.
public struct SenderReport: Equatable, Sendable, BitwiseCopyable {
    public var sender: SSRC
    public var ntp: NTPTime
    public var rtpTimestamp: UInt32
    /// Packets sent since the start, with wraparound.
    public var packets: UInt32
    /// Payload bytes sent since the start, with wraparound.
    public var octets: UInt32

    /// Encoded size without report blocks, in bytes.
    public static var encodedSize: Int { 28 }

    public init(
        sender: SSRC,
        ntp: NTPTime,
        rtpTimestamp: UInt32,
        packets: UInt32,
        octets: UInt32
    ) {
        self.sender = sender
        self.ntp = ntp
        self.rtpTimestamp = rtpTimestamp
        self.packets = packets
        self.octets = octets
    }

    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(type: RTCPType.senderReport, length: Self.encodedSize)
        sender = SSRC(rawValue: block.bytes.u32(at: 4))
        ntp = NTPTime(rawValue: block.bytes.u64(at: 8))
        rtpTimestamp = block.bytes.u32(at: 16)
        packets = block.bytes.u32(at: 20)
        octets = block.bytes.u32(at: 24)
    }

    /// Appends the packet without report blocks; `output` must have `encodedSize` bytes free.
    public func encode(into output: inout OutputSpan<UInt8>) {
        output.append(0x80)
        output.append(RTCPType.senderReport)
        output.append(bigEndian: UInt16(Self.encodedSize / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: ntp.rawValue)
        output.append(bigEndian: rtpTimestamp)
        output.append(bigEndian: packets)
        output.append(bigEndian: octets)
    }
}
