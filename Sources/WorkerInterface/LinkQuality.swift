/// Mean and worst of a figure that reports bring in.
package struct Spread: Hashable, Sendable, BitwiseCopyable, Codable {
    private var count: UInt64 = 0
    private var sum = 0.0
    package private(set) var worst = 0.0
    /// Lowest of all values, which is the worst of a rate; `nil` before the first.
    package private(set) var lowest: Double?

    package init() {}

    /// Mean of all values; `nil` before the first.
    package var mean: Double? { count == 0 ? nil : sum / Double(count) }

    package mutating func add(_ value: Double) {
        guard value.isFinite else { return }
        count &+= 1
        sum += value
        worst = max(worst, value)
        lowest = min(lowest ?? value, value)
    }

    package static func += (total: inout Self, other: Self) {
        total.count &+= other.count
        total.sum += other.sum
        total.worst = max(total.worst, other.worst)
        if let lowest = other.lowest { total.lowest = min(total.lowest ?? lowest, lowest) }
    }
}

/// Quality of a transport's path since its start, from the RTCP reports of both sides.
package struct LinkQuality: Hashable, Sendable, BitwiseCopyable, Codable {
    /// Loss and jitter of one direction.
    package struct Direction: Hashable, Sendable, BitwiseCopyable, Codable {
        /// Share of packets lost in a report's interval, 0 to 1.
        package var loss = Spread()
        /// Interarrival jitter, in seconds.
        package var jitter = Spread()

        package init() {}

        /// Adds the figures of one report block (RFC 3550 §6.4.1).
        package mutating func add(fractionLost: UInt8, jitter ticks: UInt32, clockRate: Int) {
            loss.add(Double(fractionLost) / 256)
            if clockRate > 0 { jitter.add(Double(ticks) / Double(clockRate)) }
        }

        package static func += (total: inout Self, other: Self) {
            total.loss += other.loss
            total.jitter += other.jitter
        }
    }

    /// Media from the peer, as the worker reports it.
    package var received = Direction()
    /// Media to the peer, as the peer reports it.
    package var sent = Direction()
    /// Round-trip time, in seconds.
    package var roundTrip = Spread()
    /// Estimate of what the path to the peer carries, in bits a second, at the peer's reports.
    ///
    /// `nil` without one, and in what an earlier release has saved.
    package private(set) var estimate: Spread?
    /// Freezes of the video sent to the peer.
    package var freezes = FreezeTotals()

    package init() {}

    /// Adds an estimate, in bits a second.
    package mutating func add(estimate bitsPerSecond: Int) {
        var spread = estimate ?? Spread()
        spread.add(Double(bitsPerSecond))
        estimate = spread
    }

    package static func += (total: inout Self, other: Self) {
        total.freezes += other.freezes
        total.received += other.received
        total.sent += other.sent
        total.roundTrip += other.roundTrip
        if let estimate = other.estimate {
            var sum = total.estimate ?? Spread()
            sum += estimate
            total.estimate = sum
        }
    }
}
