import CCounting
import SFU

/// Comparison of the cost a packet in rooms of different sizes with equally many talkers.
enum RoomCost {
    /// Runs the rooms alternately, so that disturbances affect all of them equally.
    static func report(_ options: Options) throws {
        let sizes = options.against > 0 ? [options.against, options.room] : [options.room]
        let kind = options.isRealOpus ? "Opus without levels" : "levels told"
        print(
            """
            \(options.talkers) talk, six are followed; \(kind); batches of \(options.burst); \
            \(options.profile.name) by \(options.engine.rawValue)
            """
        )
        var sent = Batch(capacity: Core.batchCapacity)
        var first = try RoomBench(size: sizes[0], options)
        guard sizes.count > 1 else {
            for _ in 0..<options.packets { first.tick(through: &sent) }
            return print(describe(first, size: sizes[0]))
        }
        var second = try RoomBench(size: sizes[1], options)
        // Equal numbers of packets in both rooms keep both equally warm.
        let rounds = max(1, sizes[1] / sizes[0])
        for _ in 0..<options.packets {
            for _ in 0..<rounds { first.tick(through: &sent) }
            second.tick(through: &sent)
        }
        print(describe(first, size: sizes[0]))
        print(describe(second, size: sizes[1]))
        let ratio = cost(second) / cost(first)
        print("a packet or copy costs \((ratio * 1_000).rounded() / 1_000) times as much")
        let least = second.least / first.least
        print("at least \((least * 1_000).rounded() / 1_000) times")
    }

    /// Returns nanoseconds for each received packet and sent copy.
    private static func cost(_ bench: borrowing RoomBench) -> Double {
        Double(bench.nanoseconds) / Double(max(1, bench.packets + bench.copies))
    }

    private static func describe(_ bench: borrowing RoomBench, size: Int) -> String {
        let each = Double(bench.nanoseconds) / Double(max(1, bench.packets))
        // At 50 packets a second; copies sent to the listeners are included.
        let share = (each * 50 / 1e9 * 1e6).rounded() / 1e4
        return """
            room of \(size)
              packets in          \(bench.packets)
              copies out          \(bench.copies)
              with the warm-up    \(bench.packets + bench.copies)
              starts of speech    \(bench.starts)
              ns a packet or copy \((cost(bench) * 10).rounded() / 10)
              at least            \((bench.least * 10).rounded() / 10)
              ns a packet in      \((each * 10).rounded() / 10)
              a publisher         \(share) % of a core
              bytes a participant \(bench.participantBytes)
            """
    }
}
