import RTP
import Testing

@testable import Daemon
@testable import SFU

/// Media that is too old after the thread was stalled.
struct StaleMediaDetectorTests {
    private static let start = Instant(nanoseconds: 7_000_000_000)
    /// Unix time at the start, in nanoseconds.
    private static let unix: Int64 = 1_800_000_000_000_000_000

    private static func after(_ milliseconds: Int64) -> Instant {
        start.advanced(milliseconds: milliseconds)
    }

    private static func stamp(_ milliseconds: Int64) -> Int64 { unix + milliseconds * 1_000_000 }

    struct Arrival: CustomTestStringConvertible {
        var testDescription: String
        var milliseconds: Int64
        var isStale: Bool
    }

    static let arrivals: [Arrival] = [
        Arrival(testDescription: "at the beginning", milliseconds: 1, isStale: true),
        Arrival(testDescription: "201 ms before the end", milliseconds: 2_799, isStale: true),
        Arrival(testDescription: "200 ms before the end", milliseconds: 2_800, isStale: false),
        Arrival(testDescription: "afterwards", milliseconds: 3_400, isStale: false),
    ]

    @Test(arguments: arrivals)
    func `I9 datagrams queued during a stall of three seconds`(arrival: Arrival) {
        var watch = StaleMediaDetector(at: Self.start, cpu: 0)
        #expect(watch.staleMedia(Self.stamp(arrival.milliseconds)) == .nothing)
        let stood = watch.slept(since: Self.start, until: Self.after(3_000)) { Self.stamp(3_000) }
        #expect(stood)
        let staleMedia = watch.staleMedia(Self.stamp(arrival.milliseconds))
        #expect(staleMedia == (arrival.isStale ? .everything : .nothing))
        #expect(watch.staleMedia(0) == .nothing, "nothing is known of it")
    }

    @Test func `I9 half a second delays media, and costs none of it`() {
        var watch = StaleMediaDetector(at: Self.start, cpu: 0)
        #expect(!watch.slept(since: Self.start, until: Self.after(500)) { Self.stamp(500) })
        #expect(watch.staleMedia(Self.stamp(1)) == .nothing)
    }

    @Test func `I9 I10 a second later a clock that is set back makes nothing old`() {
        var watch = StaleMediaDetector(at: Self.start, cpu: 0)
        _ = watch.slept(since: Self.start, until: Self.after(3_000)) { Self.stamp(3_000) }
        #expect(watch.staleMedia(Self.stamp(-3_600_000)) == .everything)
        _ = watch.slept(since: Self.after(4_000), until: Self.after(4_001)) { 0 }
        #expect(watch.staleMedia(Self.stamp(-3_600_000)) == .nothing)
    }

    struct Work: CustomTestStringConvertible {
        var testDescription: String
        /// Length of a round, in milliseconds.
        var round: Int64
        var cpu: Int64
        var stood: Bool
    }

    static let work: [Work] = [
        Work(testDescription: "stopped", round: 3_000, cpu: 4, stood: true),
        Work(testDescription: "busy for as long", round: 3_000, cpu: 2_990, stood: false),
        Work(testDescription: "with a fifth of a core", round: 3_000, cpu: 600, stood: false),
        Work(testDescription: "stopped for less", round: 490, cpu: 4, stood: false),
    ]

    @Test(arguments: work)
    func `I9 a thread that was at work stood still if the processor knows nothing of it`(
        work: Work
    ) {
        var watch = StaleMediaDetector(at: Self.start, cpu: 1_000)
        // Work before that does not count.
        watch.worked(since: Self.after(0), until: Self.after(120)) {
            100_000_000
        } wall: {
            Self.stamp(120)
        }
        let end = 150 + work.round
        watch.worked(since: Self.after(150), until: Self.after(end)) {
            100_000_000 + work.cpu * 1_000_000
        } wall: {
            Self.stamp(end)
        }
        #expect(watch.staleMedia(Self.stamp(160)) == (work.stood ? .everything : .nothing))
    }

    struct Queue: CustomTestStringConvertible {
        var testDescription: String
        var count = 64
        /// Age of the oldest datagram, in milliseconds; below, the media dropped of that time.
        var waited: Int64
        var staleMedia: StaleMedia
    }

    static let queues: [Queue] = [
        Queue(testDescription: "0.4 s", waited: 400, staleMedia: .nothing),
        Queue(testDescription: "more than that", waited: 401, staleMedia: .largeAudienceVideo),
        Queue(testDescription: "more than 0.8 s", waited: 801, staleMedia: .video),
        Queue(testDescription: "a clock that was set", waited: 3_600_000, staleMedia: .nothing),
        Queue(testDescription: "a few packets", count: 7, waited: 401, staleMedia: .nothing),
    ]

    @Test(arguments: queues)
    func `L9 media dropped from an overlong queue`(queue: Queue) {
        var watch = StaleMediaDetector(at: Self.start, cpu: 0)
        let first = Self.stamp(-queue.waited)
        watch.received(queue.count, first: first, at: Self.start) { Self.unix }
        #expect(watch.staleMedia(first) == queue.staleMedia)
        #expect(watch.staleMedia(Self.stamp(-101)) == queue.staleMedia)
        #expect(watch.staleMedia(Self.stamp(-99)) == .nothing, "it is new")
        let told = [watch.takeDiscardedVideo(), watch.takeDiscardedVideo()]
        #expect(told == [queue.staleMedia != .nothing, false])
        _ = watch.slept(since: Self.after(1_001), until: Self.after(1_002)) { 0 }
        #expect(watch.staleMedia(first) == .nothing, "it is over")
    }
}
