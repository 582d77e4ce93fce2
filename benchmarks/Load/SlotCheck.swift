import RTP

/// What one viewer's slot has received, and what was wrong with it.
struct SlotTally: Sendable {
    /// Packets, each counted once.
    var received: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Packets that came after a later one.
    var late: UInt64 = 0
    /// Numbers that were passed over and have not come.
    var gaps: UInt64 = 0
    var undecryptable: UInt64 = 0
    var decrypted: UInt64 = 0
    /// Packets whose numbers or contents do not go on from what came before.
    var discontinuities: UInt64 = 0
    /// Padding without a payload.
    var padding: UInt64 = 0

    static func += (sum: inout Self, other: Self) {
        sum.received += other.received
        sum.duplicates += other.duplicates
        sum.late += other.late
        sum.gaps += other.gaps
        sum.undecryptable += other.undecryptable
        sum.decrypted += other.decrypted
        sum.discontinuities += other.discontinuities
        sum.padding += other.padding
    }
}

/// Holds one slot's stream against what the publisher sent.
///
/// A slot is one continuous stream: whatever numbers sfud gives it, their distance to the
/// publisher's own never changes.
struct SlotCheck {
    let ssrc: UInt32
    private let medium: Medium
    private let payloadType: UInt8
    private(set) var tally = SlotTally()
    /// What a receiver report says (RFC 3550 §6.4.1).
    private(set) var report: ReceptionReport
    /// The last sender report, and when it came.
    var senderReport: (compact: UInt32, at: Instant)?
    private var highest: Int64?
    private var first: Int64 = 0
    private var missing: Set<Int64> = []
    private var offsets: Offsets?
    private var lastTransit: Int64?
    private var jitter: Int64 = 0

    /// How far the slot's numbers are from the publisher's.
    private struct Offsets: Equatable {
        var sequence: UInt16
        var timestamp: UInt32
        var picture: UInt16
        var tl0Picture: UInt8
    }

    /// Numbers that are remembered as missing; what is more is lost for good.
    private static let missingCapacity = 4_096

    init(_ medium: Medium, ssrc: UInt32) {
        self.medium = medium
        self.ssrc = ssrc
        payloadType = medium == .audio ? Wire.audioPayloadType : Wire.videoPayloadType
        report = ReceptionReport(ssrc: SSRC(rawValue: ssrc))
    }

    /// Whether nothing has come yet.
    var isEmpty: Bool { highest == nil }

    /// Counts a packet by its header, which SRTP leaves in clear.
    mutating func count(_ packet: Packet, at now: Instant) {
        guard packet.payloadType.rawValue == payloadType else {
            tally.discontinuities += 1
            return
        }
        let number = packet.sequenceNumber
        guard let highest else {
            first = Int64(number.rawValue)
            self.highest = first
            tally.received = 1
            return note(transitOf: packet.timestamp, at: now)
        }
        let last = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: highest))
        let extended = highest + Int64(number.distance(from: last))
        if extended > highest {
            for skipped in highest + 1..<extended where missing.count < Self.missingCapacity {
                missing.insert(skipped)
            }
            tally.gaps += UInt64(extended - highest - 1)
            self.highest = extended
            tally.received += 1
            note(transitOf: packet.timestamp, at: now)
        } else if missing.remove(extended) != nil {
            tally.gaps -= 1
            tally.late += 1
            tally.received += 1
        } else {
            tally.duplicates += 1
        }
    }

    mutating func countUndecryptable() { tally.undecryptable += 1 }

    private mutating func note(transitOf timestamp: UInt32, at now: Instant) {
        let clock = Int64(medium == .audio ? Wire.audioClock : Wire.videoClock)
        let (seconds, rest) = now.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        let arrival = seconds &* clock &+ rest &* clock / 1_000_000_000
        let transit = Int64(
            Int32(bitPattern: UInt32(truncatingIfNeeded: arrival) &- timestamp)
        )
        // RFC 3550 appendix A.8, in sixteenths.
        if let lastTransit {
            let step = abs(Int64(Int32(truncatingIfNeeded: transit &- lastTransit)))
            jitter += step - (jitter + 8) >> 4
        }
        lastTransit = transit
    }

    /// What to tell of this slot now.
    mutating func takeReport(at now: Instant) -> ReceptionReport? {
        guard let highest else { return nil }
        report.highestSequence = UInt32(truncatingIfNeeded: highest)
        report.cumulativeLost = Int32(clamping: tally.gaps)
        report.jitter = UInt32(clamping: jitter >> 4)
        if let senderReport {
            report.lastSenderReport = senderReport.compact
            let delay = now.nanoseconds(since: senderReport.at)
            report.delaySinceLastSenderReport = UInt32(clamping: (delay &<< 16) / 1_000_000_000)
        }
        return report
    }
}

// The contents.
extension SlotCheck {
    /// Checks a packet in clear; returns when it was sent.
    mutating func check(_ packet: Packet, _ filler: Filler) -> Int64? {
        tally.decrypted += 1
        guard packet.payload.count > 0 else {
            tally.padding += 1
            return nil
        }
        guard let (stamp, found) = read(packet, filler) else {
            tally.discontinuities += 1
            return nil
        }
        if let offsets, offsets != found { tally.discontinuities += 1 }
        offsets = found
        return stamp.sent
    }

    /// The stamp and the distances of a packet whose contents are as they were sent.
    private func read(_ packet: Packet, _ filler: Filler) -> (Stamp, Offsets)? {
        let payload = packet.payload
        var start = 1
        var picture: UInt16 = 0
        var tl0Picture: UInt8 = 0
        var startsKeyframe = false
        if medium == .video {
            guard let descriptor = VP8Descriptor(payload), descriptor.hasLongPictureID,
                let number = descriptor.pictureID, let base = descriptor.tl0PictureIndex,
                descriptor.length + 10 == Packetizer.videoPrefix
            else { return nil }
            start = Packetizer.videoPrefix
            picture = number
            tl0Picture = base
            startsKeyframe = descriptor.isKeyframeStart(payload)
        }
        guard let stamp = Stamp(payload, at: start), Int(stamp.length) == payload.count,
            stamp.endsFrame == packet.marker,
            filler.matches(payload, from: start + Stamp.size, index: stamp.index),
            // A decoder can do nothing with a new stream until its first keyframe.
            medium == .audio || offsets != nil || startsKeyframe
        else { return nil }
        let found = Offsets(
            sequence: packet.sequenceNumber.rawValue &- UInt16(truncatingIfNeeded: stamp.index),
            timestamp: packet.timestamp &- stamp.timestamp,
            picture: medium == .audio
                ? 0 : (picture &- UInt16(truncatingIfNeeded: stamp.frame)) & 0x7fff,
            tl0Picture: medium == .audio
                ? 0 : tl0Picture &- UInt8(truncatingIfNeeded: stamp.frame)
        )
        return (stamp, found)
    }
}
