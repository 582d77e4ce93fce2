import RTP
import WorkerInterface

/// Packets that were lately repeated to a subscriber, each with its time.
///
/// A receiver asks again for a packet after the round trip that it last knew (libwebrtc: 100 ms, if
/// it has not learnt one). With a long queue the repetition is still on its way by then, and one
/// more would only fill the queue and use up the budget for those that have not been repeated yet.
/// libwebrtc asks ten times, which may all fall into that time, so a repetition that the receiver's
/// feedback reports lost is replaced without a request.
struct RecentRepeats {
    private struct Entry: BitwiseCopyable {
        var slot: UInt32 = .max
        var number: UInt16 = 0
        /// Milliseconds, wrapped.
        var at: UInt32 = 0
        /// Transport-wide numbers of its last copies, as many as may still be reported lost.
        var copy: UInt16 = 0
        var otherCopy: UInt16 = 0
        var copies: UInt8 = 0
        /// Number of its repetitions.
        var times: UInt8 = 0
    }

    /// Number of packets that are remembered.
    static let capacity = 32
    /// Number of repetitions of a packet up to which a lost one is replaced.
    private static let most: UInt8 = 10

    /// Packets by their low bits; a later one takes the place of an earlier one with the same.
    private var entries = [32 of Entry](repeating: Entry())

    /// Whether a packet was repeated through a slot in the last `milliseconds`, and that is not
    /// known to be lost.
    ///
    /// A second copy of the same moment is no second repetition, so it is not found.
    func contains(
        _ number: SequenceNumber,
        of slot: SlotIndex,
        within milliseconds: Int64,
        by estimator: borrowing BandwidthEstimator,
        at now: Instant
    ) -> Bool {
        let entry = entries[place(of: number)]
        guard entry.number == number.rawValue, entry.slot == UInt32(clamping: slot.offset) else {
            return false
        }
        let age = Self.milliseconds(now) &- entry.at
        guard age > 0, Int64(age) < milliseconds else { return false }
        return entry.copies == 0 || estimator.outcome(of: entry.copy) != .lost
            || entry.copies > 1 && estimator.outcome(of: entry.otherCopy) != .lost
    }

    /// Notes that a packet was repeated, as the packet with this transport-wide number, if any.
    mutating func note(
        _ number: SequenceNumber,
        of slot: SlotIndex,
        as copy: UInt16?,
        at now: Instant
    ) {
        let place = place(of: number)
        var entry = Entry(
            slot: UInt32(clamping: slot.offset),
            number: number.rawValue,
            at: Self.milliseconds(now)
        )
        let before = entries[place]
        let isSame = before.number == entry.number && before.slot == entry.slot
        if isSame, before.at == entry.at {
            entry = before
        } else {
            entry.times = isSame ? min(before.times, Self.most) &+ 1 : 1
        }
        if let copy {
            entry.otherCopy = entry.copy
            entry.copy = copy
            entry.copies = min(entry.copies &+ 1, 2)
        }
        entries[place] = entry
    }

    /// Returns the packet at a place, below `capacity`, if its last repetition was lost, in all
    /// copies, and it has not been repeated often.
    mutating func lost(
        at place: Int,
        by estimator: borrowing BandwidthEstimator
    ) -> (slot: Int, number: SequenceNumber)? {
        let entry = entries[place]
        guard entry.copies > 0 else { return nil }
        let outcome = estimator.outcome(of: entry.copy)
        let other = entry.copies > 1 ? estimator.outcome(of: entry.otherCopy) : .lost
        if outcome == .lost, other == .lost {
            guard entry.times < Self.most else { return nil }
            return (Int(entry.slot), SequenceNumber(rawValue: entry.number))
        }
        if outcome.isSettled || other.isSettled { entries[place].copies = 0 }
        return nil
    }

    private func place(of number: SequenceNumber) -> Int {
        Int(number.rawValue) & (Self.capacity &- 1)
    }

    private static func milliseconds(_ now: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000)
    }
}

extension SentPackets.State {
    /// Whether a packet with this outcome is never reported lost any more.
    fileprivate var isSettled: Bool { self == .arrived || self == .unused }
}
