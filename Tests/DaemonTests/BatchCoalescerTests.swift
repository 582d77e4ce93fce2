import RTP
import Testing

@testable import Daemon

/// Pauses of a worker whose datagrams arrive by a table of loads.
struct BatchCoalescerTests {
    /// Datagrams that come `burst` at a time, `gap` nanoseconds apart, a burst every `period`.
    struct Load: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var period: Int64
        var burst = 1
        var gap: Int64 = 3_000
        /// Share of the rounds that follow a pause, at least and at most.
        var paused: ClosedRange<Double>
        /// Fewest datagrams of a batch on average.
        var leastBatch = 1.0
    }

    static let loads = [
        Load(testDescription: "one voice", period: 20_000_000, paused: 0...0),
        Load(testDescription: "one camera", period: 33_000_000, burst: 6, paused: 0...0),
        Load(testDescription: "fifty pairs", period: 43_000, paused: 0.6...1, leastBatch: 5),
        Load(
            testDescription: "frames close together",
            period: 150_000,
            burst: 6,
            paused: 0.6...1,
            leastBatch: 8
        ),
        Load(
            testDescription: "frames that come as one, further apart than a pause",
            period: 900_000,
            burst: 6,
            gap: 0,
            paused: 0...0.1
        ),
        Load(
            testDescription: "batches that are large anyway",
            period: 2_000_000,
            burst: 60,
            gap: 0,
            paused: 0...0.1
        ),
    ]

    /// A worker that takes 10 µs for a round and 2 µs for each datagram.
    private struct Bench {
        var coalescer = BatchCoalescer(at: Instant(nanoseconds: 0))
        /// Arrivals, the next one last.
        var arrivals: [Int64]
        var now: Int64 = 0
        var rounds = 0
        var pauses = 0
        var received = 0
        var longestWait: Int64 = 0

        init(_ load: Load, seconds: Int64) {
            let bursts = seconds * 1_000_000_000 / load.period
            arrivals = (0..<bursts).flatMap { number in
                (0..<Int64(load.burst)).map { number * load.period + $0 * load.gap }
            }.sorted(by: >)
        }

        /// Runs until all datagrams have been received.
        mutating func run() {
            while let next = arrivals.last {
                var wake = now
                let pauseEnd = coalescer.pauseEnd(after: Instant(nanoseconds: lastWake))
                if let pauseEnd, pauseEnd.nanoseconds > now { wake = pauseEnd.nanoseconds }
                if wake > max(now, next) { pauses += 1 }
                // It sleeps until the first of them comes.
                round(at: max(wake, next))
            }
        }

        private var lastWake: Int64 = 0

        private mutating func round(at wake: Int64) {
            var count = 0
            while let next = arrivals.last, next <= wake, count < 128 {
                longestWait = max(longestWait, wake - next)
                arrivals.removeLast()
                count += 1
            }
            coalescer.noteRound(received: count, at: Instant(nanoseconds: wake))
            lastWake = wake
            rounds += 1
            received += count
            now = wake + 10_000 + 2_000 * Int64(count)
        }
    }

    @Test(arguments: loads)
    func `pauses only where they join batches`(_ load: Load) {
        var bench = Bench(load, seconds: 3)
        bench.run()
        let share = Double(bench.pauses) / Double(bench.rounds)
        #expect(load.paused.contains(share))
        #expect(Double(bench.received) / Double(bench.rounds) >= load.leastBatch)
        #expect(bench.longestWait <= 500_000 + 10_000 + 2_000 * 128)
    }

    @Test func `a load that ends takes the pauses with it`() throws {
        var bench = Bench(Self.loads[2], seconds: 1)
        bench.run()
        let last = Instant(nanoseconds: bench.now)
        #expect(bench.coalescer.phase == .pausing)
        #expect(bench.coalescer.pauseEnd(after: last) != nil)
        // A round of timers alone, later.
        #expect(bench.coalescer.pauseEnd(after: last.advanced(milliseconds: 1)) == nil)
        bench.coalescer.noteRound(received: 1, at: last.advanced(milliseconds: 100))
        #expect(bench.coalescer.phase == .idle)
    }

    @Test func `measures again now and then whether pauses pay`() {
        var bench = Bench(Self.loads[2], seconds: 1)
        bench.run()
        var phases: [BatchCoalescer.Phase] = []
        var now = bench.now
        for _ in 0..<12_000 {
            now += 43_000
            bench.coalescer.noteRound(received: 1, at: Instant(nanoseconds: now))
            if phases.last != bench.coalescer.phase { phases.append(bench.coalescer.phase) }
        }
        // All come alone now, whether the worker pauses or not.
        let expected: [BatchCoalescer.Phase] = [
            .pausing, .measuringApart, .measuringTogether, .refraining, .measuringApart,
        ]
        #expect(phases.starts(with: expected))
    }

    @Test func `frames of a few meetings, whose rate varies about the least, are decided once`() {
        // Twenty cameras: a frame of seven packets each 33 ms, all within 20 ms.
        var coalescer = BatchCoalescer(at: Instant(nanoseconds: 0))
        var tries = 0
        var phase = BatchCoalescer.Phase.idle
        for frame in 0..<600 as Range<Int64> {
            for camera in 0..<20 as Range<Int64> {
                let now = frame * 33_333_333 + camera * 1_000_000
                coalescer.noteRound(received: 7, at: Instant(nanoseconds: now))
                if coalescer.phase == .measuringApart, phase != .measuringApart { tries += 1 }
                phase = coalescer.phase
            }
        }
        #expect((1...12).contains(tries))
    }

    @Test func `pauses that paid are tried again soon after they no longer do`() {
        var coalescer = BatchCoalescer(at: Instant(nanoseconds: 0))
        var now: Int64 = 0
        var tries: [Int64] = []
        var phase = BatchCoalescer.Phase.idle
        /// Batches, larger ones while pauses are tried.
        func run(_ seconds: Int64, apart: Int, together: Int) {
            let end = now + seconds * 1_000_000_000
            while now < end {
                now += 100_000
                let isTogether = phase == .measuringTogether || phase == .pausing
                coalescer.noteRound(
                    received: isTogether ? together : apart,
                    at: Instant(nanoseconds: now)
                )
                if coalescer.phase == .measuringApart, phase != .measuringApart {
                    tries.append(now / 1_000_000)
                }
                phase = coalescer.phase
            }
        }
        run(10, apart: 2, together: 2)
        run(10, apart: 2, together: 8)
        #expect(phase == .pausing || phase == .measuringApart || phase == .measuringTogether)
        tries = []
        run(2, apart: 2, together: 2)
        let gaps = zip(tries.dropFirst(), tries).map { $0 - $1 }
        #expect(gaps.last.map { $0 < 1_100 } == true)
    }

    @Test func `a new load after a silence is measured as soon as the first`() {
        var coalescer = BatchCoalescer(at: Instant(nanoseconds: 0))
        var tries: [Int64] = []
        var phase = BatchCoalescer.Phase.idle
        for millisecond in 1...22_000 as ClosedRange<Int64> {
            let isSilent = (10_000..<20_000).contains(millisecond) && millisecond % 1_000 > 0
            if isSilent { continue }
            coalescer.noteRound(received: 60, at: Instant(nanoseconds: millisecond * 1_000_000))
            if coalescer.phase == .measuringApart, phase != .measuringApart, millisecond >= 20_000 {
                tries.append(millisecond)
            }
            phase = coalescer.phase
        }
        let gaps = zip(tries.dropFirst(), tries).map { $0 - $1 }
        #expect(gaps.starts(with: [260, 510]))
    }

    @Test func `tries ever more rarely what does not pay`() {
        var coalescer = BatchCoalescer(at: Instant(nanoseconds: 0))
        var tries: [Int64] = []
        var phase = BatchCoalescer.Phase.idle
        for millisecond in 1...20_000 as ClosedRange<Int64> {
            // Large batches, of which pauses would save nothing.
            coalescer.noteRound(received: 60, at: Instant(nanoseconds: millisecond * 1_000_000))
            if coalescer.phase == .measuringApart, phase != .measuringApart {
                tries.append(millisecond)
            }
            phase = coalescer.phase
        }
        let gaps = zip(tries.dropFirst(), tries).map { $0 - $1 }
        // Refraining, and 10 ms of measuring.
        #expect(gaps == [260, 510, 1_010, 2_010, 4_010, 4_010, 4_010, 4_010])
    }
}
