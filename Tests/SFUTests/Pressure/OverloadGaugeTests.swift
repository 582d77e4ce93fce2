import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Load shedding of an overloaded worker and its recovery, in virtual time.
struct OverloadGaugeTests {
    /// A worker thread with a given load, and its receive queue.
    private struct Thread {
        /// Costs of audio and of all video, in shares of the thread's capacity.
        var audio = 0.05
        var video: Double
        var queue = 0.0
        var done = 0.0
        var gauge = OverloadController(OverloadLimits())
        var now = Instant(nanoseconds: 1_000_000_000_000)
        var noise = SeededRandom(seed: 7)

        mutating func step(swing: Double = 0.05) {
            let interval = Double(OverloadController.intervalMilliseconds)
            let random = Double(noise.next() % 1_000) / 500 - 1
            let load = (audio + video * gauge.kept) * (1 + swing * random)
            queue = max(0, queue + (load - 1) * interval)
            // The kernel's receive buffer holds no more.
            queue = min(queue, 4_000)
            let busy = queue > 0 ? 1 : load
            done += min(1, busy)
            now = now.advanced(milliseconds: OverloadController.intervalMilliseconds)
            let lag = queue > 0 ? queue : 0.5
            _ = gauge.note(
                LoadSample(busy: busy, leastLagMilliseconds: lag, backlog: 0),
                at: now
            )
        }
    }

    struct Load: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var video: Double
        /// Least share of its capacity that the thread has used over a minute.
        var done: Double
    }

    static let loads = [
        Load(testDescription: "110 % of the knee", video: 1.05, done: 0.9),
        Load(testDescription: "150 %", video: 1.45, done: 0.9),
        Load(testDescription: "300 %", video: 2.95, done: 0.9),
        Load(testDescription: "ten times", video: 9.95, done: 0.85),
    ]

    @Test(arguments: loads)
    func `L9 a minute of overload keeps the capacity in use and ends within ten seconds`(
        _ load: Load
    ) {
        var thread = Thread(video: load.video)
        for _ in 0..<240 { thread.step() }
        #expect(thread.done / 240 >= load.done)
        #expect(thread.queue < 30, "the queue has gone")
        #expect(thread.gauge.kept < 1)
        #expect(thread.gauge.refusesJoins)
        thread.video = 0.5
        for _ in 0..<40 { thread.step() }
        #expect(thread.gauge.kept == 1)
        for _ in 0..<20 { thread.step() }
        #expect(!thread.gauge.refusesJoins)
    }

    /// Samples that are no overload, however high each one is.
    struct Calm: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var samples: [LoadSample]
    }

    static let calm = [
        Calm(
            testDescription: "a stall of a second with all that has come meanwhile",
            samples: [sample(1, 1_000), sample(1, 400)] + few
        ),
        Calm(
            testDescription: "busy without a queue",
            samples: Array(repeating: sample(1, 2), count: 12)
        ),
        Calm(
            testDescription: "a queue that is not ours: the thread sleeps",
            samples: Array(repeating: sample(0.4, 200), count: 40)
        ),
        Calm(
            testDescription: "no media at all",
            samples: Array(repeating: sample(0.9, nil), count: 6)
        ),
    ]
    private static let few = Array(repeating: sample(0.3, 1), count: 4)

    private static func sample(_ busy: Double, _ lag: Double?) -> LoadSample {
        LoadSample(busy: busy, leastLagMilliseconds: lag, backlog: 0)
    }

    @Test(arguments: calm)
    func `sheds nothing without overload`(_ calm: Calm) {
        var gauge = OverloadController(OverloadLimits())
        var now = Instant(nanoseconds: 0)
        for sample in calm.samples {
            now = now.advanced(milliseconds: 250)
            let isOther = gauge.note(sample, at: now)
            #expect(!isOther && gauge.kept == 1)
        }
    }

    @Test func `full send queues are too much, whatever the thread does`() {
        var gauge = OverloadController(OverloadLimits())
        for step in 1...8 {
            let full = LoadSample(busy: 0.2, leastLagMilliseconds: 1, backlog: 0.7)
            _ = gauge.note(full, at: Instant(nanoseconds: Int64(step) * 250_000_000))
        }
        #expect(gauge.kept < 0.8)
        #expect(gauge.pressure(reduced: 3, stopped: 0).step == .layers)
    }

    @Test func `L9 video that had to be left out is harm, though no queue is left after it`() {
        var gauge = OverloadController(OverloadLimits())
        for step in 1...4 {
            var sample = Self.sample(1, 20)
            sample.discardedVideo = true
            _ = gauge.note(sample, at: Instant(nanoseconds: Int64(step) * 250_000_000))
        }
        #expect(gauge.kept < 0.75)
    }

    @Test func `nobody is let in from the limit on, and ten percent under it all again`() {
        var gauge = OverloadController(OverloadLimits())
        var now = Instant(nanoseconds: 0)
        func pass(_ seconds: Int, busy: Double) -> Bool {
            for _ in 0..<4 * seconds {
                now = now.advanced(milliseconds: 250)
                _ = gauge.note(Self.sample(busy, 1), at: now)
            }
            return gauge.refusesJoins
        }
        #expect(!pass(4, busy: 1), "a burst of handshakes is no load that stays")
        #expect(pass(8, busy: 1))
        #expect(pass(30, busy: 0.8), "ten percent have to be free")
        #expect(!pass(30, busy: 0.7))
        #expect(!pass(30, busy: 0.84))
        #expect(gauge.kept == 1)
    }

    @Test func `what is idle is not followed`() {
        var gauge = OverloadController(OverloadLimits())
        #expect(gauge.deadline == nil && gauge.isDue(at: Instant(nanoseconds: 0)))
        _ = gauge.note(Self.sample(0.5, 1), at: Instant(nanoseconds: 0))
        _ = gauge.note(Self.sample(0.5, 1), at: Instant(nanoseconds: 4_000_000_000))
        #expect(gauge.deadline == Instant(nanoseconds: 4_250_000_000))
        _ = gauge.note(Self.sample(0, nil), at: Instant(nanoseconds: 40_000_000_000))
        #expect(gauge.deadline == nil)
    }
}
