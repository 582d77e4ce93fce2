import Foundation
import Testing

@testable import SFU
@testable import WorkerInterface

/// A viewer's line in virtual time: how it is, and what is asked of the picture.
struct Line: CustomTestStringConvertible, Sendable {
    var name: String
    /// Kilobits a second from a second on, counted from the end of the lead.
    var capacity: [(second: Double, kilobits: Double)]
    /// One-way delay, jitter and longest queue in milliseconds.
    var delay: Double
    var jitter: Double
    var queue: Double
    /// Share of packets lost from a second on, and how many of them in a row.
    var loss: Double
    var burst: Double?
    var lossFrom: Double
    /// Width of the highest layer that fits from a second on.
    var fits: [(second: Double, width: Int)]
    /// Seconds in a minute for which the picture may be frozen, except at changes of the line.
    var frozen: Double
    /// Largest share of the line that the estimate may be, at its 95th percentile.
    var estimate: Double
    /// Least share of the time with the highest layer that fits.
    var fitting: Double

    init(
        _ name: String,
        _ capacity: [(second: Double, kilobits: Double)] = [(0, 10_000)],
        delay: Double = 20,
        jitter: Double = 0,
        queue: Double = 200,
        loss: Double = 0,
        burst: Double? = nil,
        lossFrom: Double = -LineCall.lead,
        fits: [(second: Double, width: Int)] = [(0, 1_280)],
        frozen: Double = 0.1,
        estimate: Double = 1.05,
        fitting: Double = 0.9
    ) {
        self.name = name
        self.capacity = capacity
        self.delay = delay
        self.jitter = jitter
        self.queue = queue
        self.loss = loss
        self.burst = burst
        self.lossFrom = lossFrom
        self.fits = fits
        self.frozen = frozen
        self.estimate = estimate
        self.fitting = fitting
    }

    var testDescription: String { name }

    /// Returns the lines that `SFUD_LINES` names; `nil` without it.
    static func named(in all: [Line]) -> [Line]? {
        ProcessInfo.processInfo.environment["SFUD_LINES"].map { names in
            all.filter { names.split(separator: " ").contains(Substring($0.name)) }
        }
    }

    /// Whether the line carries less than the publisher sends.
    var isNarrow: Bool { capacity.allSatisfy { $0.kilobits < 1_400 } }

    /// Returns the last change of the line up to a second, and the width that fits since.
    func change(before second: Double) -> (second: Double, width: Int) {
        fits.last { $0.second <= second } ?? (0, 0)
    }
}

/// A call over one line, and what its viewer sees.
struct LineCall: ~Copyable {
    /// Bits a second of the encodings, about those of Chromium on the bench.
    private static let rates = [130e3, 380e3, 780e3]
    private static let framesPerSecond = 20
    /// Seconds for which each line is wide and near at first, and after a change until figures
    /// count.
    static let lead = 5.0
    static let settling = 5.0
    /// Average run and longest stop of a busy machine on the path, in milliseconds.
    private static let busy = (running: 80.0, longest: 60.0)

    private let line: Line
    private let title: String
    private let length: Double
    private var call: LayeredCall
    /// Estimates as shares of the line.
    private var estimates: [Double] = []

    init(_ line: Line, isBusy: Bool, seed: UInt64) throws {
        self.line = line
        title = "\(line.name)\(isBusy ? " busy" : "") seed \(seed)"
        length = line.capacity.count > 1 ? 60 : Scenarios.length(60, short: 30)
        var settings = LayeredCall.Settings()
        settings.rates = Self.rates
        settings.framesPerSecond = Self.framesPerSecond
        settings.jitterMilliseconds = line.jitter
        settings.loss = line.lossFrom < 0 ? line.loss : 0
        settings.burst = line.burst
        settings.queueMilliseconds = line.queue
        settings.obeyingWithRamp = 1
        if isBusy { settings.stalls = Self.busy }
        settings.capacity =
            [(0, 10e6)] + line.capacity.map { ($0.second + Self.lead, $0.kilobits * 1e3) }
        call = try LayeredCall(settings, seed: seed)
    }

    /// Runs the call, and returns what the viewer saw.
    consuming func watch() -> Seen {
        while call.second < Self.lead + length {
            call.run(until: call.second + 0.1)
            if call.second >= Self.lead {
                call.link.bottleneck.properties.delayMilliseconds = line.delay
            }
            if call.second >= line.lossFrom + Self.lead {
                call.loss = line.loss
            }
            let second = call.second - Self.lead
            let told = call.call.core.transports[1].bandwidth?.estimator.explanation
            trace(told)
            guard second >= line.change(before: second).second + Self.settling, let told else {
                continue
            }
            let capacity = call.link.bottleneck.properties.capacity(at: Int64(call.second * 1e9))
            estimates.append(Double(told.estimate) / capacity)
        }
        let seen = judge()
        seen.tell(title)
        return seen
    }

    /// Prints the estimate of the line that `SFUD_TRACE` names.
    private func trace(_ told: BandwidthExplanation?) {
        guard let told, ProcessInfo.processInfo.environment["SFUD_TRACE"] == title else { return }
        let waiting = call.link.bottleneck.waiting(at: Int64(call.second * 1e9))
        print(
            String(format: "TRACE %.1f", call.second - Self.lead),
            "\(told.estimate / 1_000) \(told.cause) \(told.usage)",
            "acknowledged \((told.acknowledged ?? 0) / 1_000) lost \(told.lossPermille)",
            "limited \(told.isApplicationLimited) probe \((told.lastProbe ?? 0) / 1_000)",
            "queue \(waiting / 1_000_000) width \(call.viewer.frames.last?.width ?? 0)"
        )
    }

    private func judge() -> Seen {
        var seen = Seen(length: length)
        let sorted = estimates.sorted()
        seen.estimate = line.isNarrow ? sorted[sorted.count * 95 / 100] : 0
        seen.mean = estimates.reduce(0, +) / Double(estimates.count)
        var freezes = FreezeMeter()
        for (before, after) in zip(call.viewer.frames, call.viewer.frames.dropFirst()) {
            let begin = Double(before.time) / 1e9 - Self.lead
            let gap = Double(after.time - before.time) / 1e9
            let isFrozen = freezes.isFreeze(gap)
            guard begin >= 0 else { continue }
            let change = line.change(before: begin)
            seen.count(
                gap,
                from: begin,
                isFrozen: isFrozen,
                isSettled: begin - change.second >= Self.settling,
                fits: before.width == change.width,
                switchingTo: before.width == after.width ? nil : after.width
            )
        }
        return seen
    }
}

/// Judge of gaps between frames, as WebRTC has it: a freeze is longer than thrice the mean gap, and
/// than the mean by 150 ms (`freezeCount` of the statistics).
private struct FreezeMeter {
    private var recent: [Double] = []

    /// Returns whether a gap in seconds is a freeze, and takes it into the mean of the last 30.
    mutating func isFreeze(_ gap: Double) -> Bool {
        let mean = recent.isEmpty ? gap : recent.reduce(0, +) / Double(recent.count)
        recent.append(gap)
        if recent.count > 30 { recent.removeFirst() }
        return gap > max(3 * mean, mean + 0.15)
    }
}

/// Figures of one call.
struct Seen {
    /// Seconds after the lead.
    var length: Double
    /// Seconds frozen, and those soon after a change of the line.
    private(set) var frozen = 0.0
    private(set) var frozenAtChanges = 0.0
    /// Changes of the picture's size but for those soon after a change of the line.
    private(set) var switches = 0
    /// 95th percentile of the estimate of a narrow line, and mean, as shares of the line.
    var estimate = 0.0
    var mean = 0.0
    private var settled = 0.0
    private var fitted = 0.0
    /// Widths of the picture in their order, without the first one.
    private(set) var widths: [Int] = []
    private var events: [String] = []

    init(length: Double) { self.length = length }

    /// Share of the settled time with the highest layer that fits.
    var fitting: Double { settled > 0 ? fitted / settled : 0 }

    mutating func count(
        _ gap: Double,
        from begin: Double,
        isFrozen: Bool,
        isSettled: Bool,
        fits: Bool,
        switchingTo width: Int?
    ) {
        if isFrozen {
            if isSettled { frozen += gap } else { frozenAtChanges += gap }
            events.append(String(format: "[%.2f: frozen %.2f]", begin, gap))
        }
        if let width {
            if isSettled { switches += 1 }
            widths.append(width)
            events.append(String(format: "%.2f: %d", begin + gap, width))
        }
        guard isSettled else { return }
        settled += gap
        if fits { fitted += gap }
    }

    func tell(_ title: String) {
        guard ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil else { return }
        func text(_ value: Double) -> String { String(format: "%.2f", value) }
        print(
            "FIGURE line \(title): frozen \(text(frozen)), at changes \(text(frozenAtChanges)) s,",
            "\(switches) switches, fits \(text(fitting)),",
            "estimate p95 \(text(estimate)) mean \(text(mean)) of the line;",
            events.joined(separator: " ")
        )
    }
}
