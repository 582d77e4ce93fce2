/// A way to choose the values of one field, message after message.
package enum ValueStrategy: UInt8, CaseIterable, Sendable {
    /// Adds the same step each time.
    case rising
    /// Subtracts the same step each time.
    case falling
    /// Takes the ends and the middle of the range, and their neighbours.
    case extreme
    /// Alternates between two values a step apart.
    case oscillating
    /// Goes up or down by at most a step.
    case walking
    /// Takes any value at all.
    case arbitrary
}

/// A source of values for one field of at most 64 bits, by one repeated strategy.
package struct ValueSource: Sendable {
    package let strategy: ValueStrategy
    package let bits: Int
    package let step: UInt64
    private var value: UInt64
    private var count: UInt64 = 0

    package init(_ strategy: ValueStrategy, bits: Int, step: UInt64, from start: UInt64) {
        precondition((1...64).contains(bits), "a field has 1 to 64 bits")
        self.strategy = strategy
        self.bits = bits
        self.step = step
        value = start
    }

    /// Draws strategy and step; the greatest steps of either sign are drawn often.
    package init(bits: Int, from start: UInt64, using random: inout some RandomNumberGenerator) {
        let strategies = ValueStrategy.allCases
        let steps = Self.steps(bits: bits)
        let drawn = random.next()
        let step = drawn % 4 == 0 ? drawn >> 2 : steps[Int(drawn >> 8) % steps.count]
        self.init(
            strategies[Int(random.next() % UInt64(strategies.count))],
            bits: bits,
            step: step,
            from: start
        )
    }

    /// Steps worth trying: one, the greatest of either sign, and a quarter of the range.
    package static func steps(bits: Int) -> [UInt64] {
        let half = UInt64(1) << (bits - 1)
        return [1, half - 1, half, half &+ 1, half >> 1 | 1].filter { $0 > 0 }
    }

    package mutating func next(using random: inout some RandomNumberGenerator) -> UInt64 {
        count &+= 1
        switch strategy {
        case .rising: value &+= step
        case .falling: value &-= step
        case .extreme: value = extremes[Int(random.next() % UInt64(extremes.count))]
        case .oscillating: value = count % 2 == 0 ? value &- step : value &+ step
        case .walking:
            let distance = step == 0 ? 0 : random.next() % step
            value = random.next() % 2 == 0 ? value &+ distance : value &- distance
        case .arbitrary: value = random.next()
        }
        return value & mask
    }

    private var mask: UInt64 { bits == 64 ? .max : UInt64(1) << bits - 1 }

    private var extremes: [UInt64] {
        let half = UInt64(1) << (bits - 1)
        return [0, 1, half &- 1, half, half &+ 1, mask &- 1, mask]
    }
}
