import Testing

@testable import SFU

/// A viewer of three encodings on lines like those of `make bench-lines`, in virtual time.
///
/// Each line is wide for five seconds before it becomes as the row says. `SFUD_FIGURES=1` prints
/// the figures, `SFUD_TRACE="600k seed 1"` the estimate of one call each 100 ms;
/// `SFUD_SCENARIOS=full` tries all lines for a minute, with five seeds, or those that
/// `SFUD_LINES="150k 250k"` names.
struct LineTests {
    static let narrow = [
        Line("150k", [(0, 150)], fits: [(0, 320)], frozen: 1, estimate: 1.2),
        Line("250k", [(0, 250)], fits: [(0, 320)]),
        Line("600k", [(0, 600)], fits: [(0, 640)]),
        Line("1500k", [(0, 1_500)]),
        Line("3000k", [(0, 3_000)]),
    ]

    static let lossy = [
        Line("loss-2", loss: 0.02),
        Line("loss-5", loss: 0.05, frozen: 0.3),
        Line("loss-5-tight", [(0, 2_000)], loss: 0.05, frozen: 0.5),
        Line("loss-10", loss: 0.10, frozen: 2),
        Line("burst-2", loss: 0.02, burst: 5, frozen: 2),
        Line("burst-5", loss: 0.05, burst: 5, frozen: 5),
        Line("burst-10", loss: 0.10, burst: 5, frozen: 8, fitting: 0),
        Line(
            "thin-then-lossy",
            [(0, 600), (15, 10_000)],
            loss: 0.05,
            lossFrom: 30,
            fits: [(0, 640), (15, 1_280)],
            frozen: 0.5
        ),
    ]

    static let slow = [
        Line("delay-20", [(0, 750)], fits: [(0, 640)]),
        Line("delay-100", [(0, 750)], delay: 100, fits: [(0, 640)]),
        Line("delay-200", [(0, 750)], delay: 200, fits: [(0, 640)]),
        Line("jitter-30", [(0, 750)], jitter: 15, fits: [(0, 640)]),
        Line("queue-50ms", [(0, 750)], queue: 50, fits: [(0, 640)], frozen: 1),
        Line("queue-1s", [(0, 750)], queue: 1_000, fits: [(0, 640)]),
    ]

    static let changing = [
        Line(
            "step-3000-600",
            [(0, 3_000), (20, 600), (40, 3_000)],
            fits: [(0, 1_280), (20, 640), (40, 1_280)]
        ),
        Line(
            "step-250-1500",
            [(0, 250), (20, 1_500), (40, 250)],
            fits: [(0, 320), (20, 1_280), (40, 320)],
            frozen: 0.5
        ),
        // The route gets longer at the beginning, too, so packets seem to wait from then on.
        Line(
            "step-longer",
            [(0, 3_000), (20, 700), (40, 2_000)],
            delay: 45,
            jitter: 5,
            fits: [(0, 1_280), (20, 640), (40, 1_280)]
        ),
    ]

    static let all = narrow + lossy + slow + changing
    /// Lines of the short run.
    static let some = all.filter {
        ["250k", "loss-10", "delay-200", "step-longer"].contains($0.name)
    }

    static let lines = Line.named(in: all) ?? (Scenarios.isFull ? all : some)
    static let seeds: ClosedRange<UInt64> = Scenarios.isFull ? 1...5 : 1...1

    @Test(arguments: lines, seeds)
    func `the picture holds`(line: Line, seed: UInt64) throws {
        let seen = try LineCall(line, isBusy: false, seed: seed).watch()
        #expect(seen.frozen <= line.frozen * seen.length / 60)
        #expect(Double(seen.switches) <= max(1, seen.length / 30))
        #expect(seen.fitting >= line.fitting)
        #expect(seen.estimate <= line.estimate)
    }

    @Test(arguments: lines, seeds)
    func `the picture holds although a machine on the path is busy`(
        line: Line,
        seed: UInt64
    ) throws {
        let seen = try LineCall(line, isBusy: true, seed: seed).watch()
        // It stops for up to 60 ms at a time, and so may each repair.
        #expect(seen.frozen <= (line.frozen + 2) * seen.length / 60)
        #expect(Double(seen.switches) <= max(1, seen.length / 30))
        #expect(seen.fitting >= line.fitting - 0.1)
        #expect(seen.estimate <= line.estimate + 0.1)
    }

    @Test(arguments: narrow.filter { $0.fits[0].width == 320 }, 1...3 as ClosedRange<UInt64>)
    func `a line that becomes narrow gets its layer at once`(line: Line, seed: UInt64) throws {
        let seen = try LineCall(line, isBusy: false, seed: seed).watch()
        #expect(seen.widths == [320])
    }

    @Test(arguments: [true, false])
    func `a repair is sent twice where much is lost without a queue`(isLossy: Bool) throws {
        var settings = LayeredCall.Settings()
        // Either a tenth is lost at random, or what a narrow queue does not hold.
        settings.loss = isLossy ? 0.1 : 0
        settings.capacity = isLossy ? [(0, 10e6)] : [(0, 10e6), (3, 300e3)]
        var call = try LayeredCall(settings, seed: 5)
        call.run(until: isLossy ? 10 : 4.5)
        let lost = call.link.bottleneck.dropped
        let repaired = Int(call.call.core.forwarder.slotRecords[SlotIndex(0)].retransmissions)
        #expect(lost > 20)
        #expect((repaired * 4 > lost * 3) == isLossy, "\(repaired) repairs of \(lost)")
    }
}
