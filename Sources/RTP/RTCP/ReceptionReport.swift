/// Reception report of one receiver about one stream (RFC 3550 §6.4.1).
public struct ReceptionReport: Equatable, Sendable, BitwiseCopyable {
    public var ssrc: SSRC
    /// Fraction of packets lost since the last report, in 256ths.
    public var fractionLost: UInt8
    /// Packets lost since the start: 24 bits on the wire, negative after duplicates.
    public var cumulativeLost: Int32
    /// Highest sequence number, with its cycle count in the upper half.
    public var highestSequence: UInt32
    /// Interarrival jitter, in timestamp units.
    public var jitter: UInt32
    /// Middle 32 bits of the last sender report's NTP time, or 0.
    public var lastSenderReport: UInt32
    /// Time since that report arrived, in 65,536ths of a second.
    public var delaySinceLastSenderReport: UInt32

    /// Encoded size, in bytes.
    public static var encodedSize: Int { 24 }

    public init(
        ssrc: SSRC,
        fractionLost: UInt8 = 0,
        cumulativeLost: Int32 = 0,
        highestSequence: UInt32 = 0,
        jitter: UInt32 = 0,
        lastSenderReport: UInt32 = 0,
        delaySinceLastSenderReport: UInt32 = 0
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.highestSequence = highestSequence
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }

    /// Reads the report at `offset`, where `encodedSize` bytes must be available.
    init(_ bytes: Span<UInt8>, at offset: Int) {
        ssrc = SSRC(rawValue: bytes.u32(at: offset))
        fractionLost = bytes[offset + 4]
        cumulativeLost = Int32(bitPattern: bytes.u24(at: offset + 5) << 8) >> 8
        highestSequence = bytes.u32(at: offset + 8)
        jitter = bytes.u32(at: offset + 12)
        lastSenderReport = bytes.u32(at: offset + 16)
        delaySinceLastSenderReport = bytes.u32(at: offset + 20)
    }

    func encode(into output: inout OutputSpan<UInt8>) {
        let lost = min(max(cumulativeLost, -0x80_0000), 0x7f_ffff)
        output.append(bigEndian: ssrc.rawValue)
        output.append(
            bigEndian: UInt32(fractionLost) << 24 | UInt32(bitPattern: lost) & 0xff_ffff
        )
        output.append(bigEndian: highestSequence)
        output.append(bigEndian: jitter)
        output.append(bigEndian: lastSenderReport)
        output.append(bigEndian: delaySinceLastSenderReport)
    }
}

/// Report blocks of a sender report or receiver report.
public struct ReceptionReports: ~Escapable {
    private let bytes: Span<UInt8>
    private let start: Int
    public let count: Int
    /// SSRC of the reporter.
    public var sender: SSRC { SSRC(rawValue: bytes.u32(at: 4)) }

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        switch block.type {
        case RTCPType.senderReport: start = SenderReport.encodedSize
        case RTCPType.receiverReport: start = 8
        default: throw .type
        }
        count = Int(block.count)
        bytes = block.bytes
        guard bytes.count >= start + count * ReceptionReport.encodedSize else { throw .truncated }
    }

    public subscript(index: Int) -> ReceptionReport {
        precondition(index >= 0 && index < count, "no such report")
        return ReceptionReport(bytes, at: start + index * ReceptionReport.encodedSize)
    }
}

/// Writer of receiver reports (RFC 3550 §6.4.2); `ReceptionReports` reads them.
public enum ReceiverReport {
    /// Maximum number of report blocks in one packet.
    public static var maximumReports: Int { 31 }

    /// Returns the encoded size with `reports` report blocks, in bytes.
    public static func encodedSize(reports: Int) -> Int {
        8 + reports * ReceptionReport.encodedSize
    }

    /// Appends one packet with at most `maximumReports` report blocks.
    ///
    /// `output` must have `encodedSize(reports:)` bytes free.
    public static func encode(
        sender: SSRC,
        reports: Span<ReceptionReport>,
        into output: inout OutputSpan<UInt8>
    ) {
        precondition(reports.count <= maximumReports, "too many reports for one packet")
        output.append(0x80 | UInt8(reports.count))
        output.append(RTCPType.receiverReport)
        output.append(bigEndian: UInt16(encodedSize(reports: reports.count) / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        for index in reports.indices { reports[index].encode(into: &output) }
    }
}
