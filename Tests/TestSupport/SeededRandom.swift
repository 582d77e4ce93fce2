package import Rooms
import Synchronization

/// Seeded, reproducible random numbers of all tests (SplitMix64).
package struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }

    /// Returns a number from 0 up to, not including, 1.
    package mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// Returns `true` with this probability, 0 to 1.
    package mutating func chance(_ probability: Double) -> Bool {
        probability > 0 && unit() < probability
    }

    /// Returns a whole number in a range.
    package mutating func pick(_ range: ClosedRange<Int64>) -> Int64 {
        let span = UInt64(range.upperBound - range.lowerBound) + 1
        return range.lowerBound + Int64(next() % span)
    }

    /// Returns one of the elements; `nil` if there are none.
    package mutating func pick<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[Int(next() % UInt64(elements.count))]
    }

    package mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}

extension RandomSource {
    /// Makes a reproducible source for a control plane or a room.
    package static func seeded(_ seed: UInt64) -> RandomSource {
        let state = Mutex(SeededRandom(seed: seed))
        return RandomSource { state.withLock { $0.next() } }
    }
}
