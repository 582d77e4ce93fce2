import RTP

/// Received sequence numbers of a stream, within a window of 1,024.
struct ReceivedWindow {
    enum Verdict {
        /// The first, or above all earlier ones; `skipped` numbers lie in between.
        case new(skipped: UInt64)
        /// One that had been skipped.
        case late
        case duplicate
    }

    /// Highest received number, extended by its wraps.
    private(set) var highest: Int64?
    private var seen = [UInt64](repeating: 0, count: 16)
    private static let size: Int64 = 1_024

    /// Returns the number extended by its wraps.
    func extended(_ number: SequenceNumber) -> Int64 {
        guard let highest else { return Int64(number.rawValue) }
        let last = SequenceNumber(rawValue: UInt16(truncatingIfNeeded: highest))
        return highest + Int64(number.distance(from: last))
    }

    mutating func note(_ extended: Int64) -> Verdict {
        guard let highest else {
            self.highest = extended
            mark(extended)
            return .new(skipped: 0)
        }
        if extended > highest {
            let first = max(highest + 1, extended - Self.size + 1)
            for skipped in first..<max(first, extended) { clear(skipped) }
            mark(extended)
            self.highest = extended
            return .new(skipped: UInt64(extended - highest - 1))
        }
        // A number older than the window was already counted as lost.
        guard highest - extended < Self.size, !isMarked(extended) else { return .duplicate }
        mark(extended)
        return .late
    }

    private mutating func mark(_ number: Int64) {
        seen[Int(number >> 6 & 15)] |= 1 << UInt64(number & 63)
    }

    private mutating func clear(_ number: Int64) {
        seen[Int(number >> 6 & 15)] &= ~(1 << UInt64(number & 63))
    }

    private func isMarked(_ number: Int64) -> Bool {
        seen[Int(number >> 6 & 15)] & 1 << UInt64(number & 63) != 0
    }
}
