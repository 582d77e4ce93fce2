import RTP
import WorkerInterface

/// Packets that were lately repeated to a subscriber, each with its time.
///
/// A receiver asks again for a packet after its own guess of the round trip (libwebrtc: 100 ms).
/// With a long queue the repetition is still on its way by then, and one more would only fill the
/// queue and use up the budget for those that have not been repeated yet.
struct RecentRepeats {
    private struct Entry: BitwiseCopyable {
        var slot: UInt32 = .max
        var number: UInt16 = 0
        /// Milliseconds, wrapped.
        var at: UInt32 = 0
    }

    /// Packets by their low bits; a later one takes the place of an earlier one with the same.
    private var entries = [32 of Entry](repeating: Entry())

    /// Whether a packet was repeated through a slot in the last `milliseconds`.
    ///
    /// A second copy of the same moment is no second repetition, so it is not found.
    func contains(
        _ number: SequenceNumber,
        of slot: SlotIndex,
        within milliseconds: Int64,
        at now: Instant
    ) -> Bool {
        let entry = entries[place(of: number)]
        guard entry.number == number.rawValue, entry.slot == UInt32(clamping: slot.offset) else {
            return false
        }
        let age = Self.milliseconds(now) &- entry.at
        return age > 0 && Int64(age) < milliseconds
    }

    /// Notes that a packet was repeated.
    mutating func note(_ number: SequenceNumber, of slot: SlotIndex, at now: Instant) {
        entries[place(of: number)] = Entry(
            slot: UInt32(clamping: slot.offset),
            number: number.rawValue,
            at: Self.milliseconds(now)
        )
    }

    private func place(of number: SequenceNumber) -> Int {
        Int(number.rawValue) & (entries.count &- 1)
    }

    private static func milliseconds(_ now: Instant) -> UInt32 {
        UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000)
    }
}
