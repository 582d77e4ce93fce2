/// Receiver reference time: the clock of a receiver, for its own round-trip time (RFC 3611 §4.4).
///
/// A receiver that sends no media gets no receiver reports, so it learns its round trip from the
/// answer to this, a `LastReceiverTime`.
public struct ReceiverReferenceTime: Equatable, Sendable, BitwiseCopyable {
    public var sender: SSRC
    public var ntp: NTPTime

    /// Encoded size of an extended report with nothing else, in bytes.
    public static var encodedSize: Int { 20 }

    public init(sender: SSRC, ntp: NTPTime) {
        self.sender = sender
        self.ntp = ntp
    }

    /// Reads the first one of an extended report; it throws if there is none.
    public init(_ block: RTCPBlock) throws(RTCPError) {
        guard let start = try ExtendedReport.start(of: .receiverReferenceTime, in: block) else {
            throw .malformed
        }
        guard block.bytes.u16(at: start &+ 2) == 2 else { throw .malformed }
        guard block.bytes.count &- start >= 12 else { throw .truncated }
        sender = SSRC(rawValue: block.bytes.u32(at: 4))
        ntp = NTPTime(rawValue: block.bytes.u64(at: start &+ 4))
    }

    /// Appends an extended report with nothing else; `output` must have `encodedSize` bytes free.
    public func encode(into output: inout OutputSpan<UInt8>) {
        ExtendedReport.encodeHeader(sender: sender, words: 3, into: &output)
        output.append(bigEndian: UInt32(ExtendedReport.receiverReferenceTime.rawValue) << 24 | 2)
        output.append(bigEndian: ntp.rawValue)
    }
}

/// Answer to a receiver's reference time: when it was, and how long ago it came (RFC 3611 §4.5).
public struct LastReceiverTime: Equatable, Sendable, BitwiseCopyable {
    /// SSRC of the receiver.
    public var receiver: SSRC
    /// Middle 32 bits of its reference time.
    public var reference: UInt32
    /// Time since that arrived, in 65,536ths of a second.
    public var delay: UInt32

    public init(receiver: SSRC, reference: UInt32, delay: UInt32) {
        self.receiver = receiver
        self.reference = reference
        self.delay = delay
    }

    /// Returns the encoded size of an extended report with `count` answers, in bytes.
    public static func encodedSize(answers count: Int) -> Int { 12 + 12 * count }

    /// Appends an extended report with nothing but answers.
    ///
    /// `output` must have `encodedSize(answers:)` bytes free.
    public static func encode(
        sender: SSRC,
        answers: Span<LastReceiverTime>,
        into output: inout OutputSpan<UInt8>
    ) {
        let words = 3 &* UInt16(answers.count)
        ExtendedReport.encodeHeader(sender: sender, words: words &+ 1, into: &output)
        output.append(
            bigEndian: UInt32(ExtendedReport.lastReceiverTime.rawValue) << 24 | UInt32(words)
        )
        for index in answers.indices {
            output.append(bigEndian: answers[index].receiver.rawValue)
            output.append(bigEndian: answers[index].reference)
            output.append(bigEndian: answers[index].delay)
        }
    }

    /// Returns the answer to one receiver in an extended report, or `nil` if there is none.
    public static func find(
        for receiver: SSRC,
        in block: RTCPBlock
    ) throws(RTCPError) -> LastReceiverTime? {
        guard let start = try ExtendedReport.start(of: .lastReceiverTime, in: block) else {
            return nil
        }
        var position = start &+ 4
        let length = 4 &* Int(block.bytes.u16(at: start &+ 2))
        let end = min(position &+ length, block.bytes.count)
        while end &- position >= 12 {
            if block.bytes.u32(at: position) == receiver.rawValue {
                return LastReceiverTime(
                    receiver: receiver,
                    reference: block.bytes.u32(at: position &+ 4),
                    delay: block.bytes.u32(at: position &+ 8)
                )
            }
            position &+= 12
        }
        return nil
    }
}

/// Kinds of blocks in extended reports, as far as sfud uses them (RFC 3611 §3, §4).
enum ExtendedReport: UInt8 {
    case receiverReferenceTime = 4
    case lastReceiverTime = 5

    /// Returns where the first block of a kind begins, or `nil` if there is none.
    ///
    /// The block's header is within the bytes; its content need not be.
    static func start(of kind: Self, in block: RTCPBlock) throws(RTCPError) -> Int? {
        try block.require(type: RTCPType.extendedReport, length: 8)
        var position = 8
        while block.bytes.count &- position >= 4 {
            if block.bytes[position] == kind.rawValue { return position }
            position &+= 4 &+ 4 &* Int(block.bytes.u16(at: position &+ 2))
        }
        return nil
    }

    /// Appends the header of an extended report with so many words after it.
    static func encodeHeader(sender: SSRC, words: UInt16, into output: inout OutputSpan<UInt8>) {
        output.append(0x80)
        output.append(RTCPType.extendedReport)
        output.append(bigEndian: words &+ 1)
        output.append(bigEndian: sender.rawValue)
    }
}
