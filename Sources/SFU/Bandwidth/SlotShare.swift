import RTP
import WorkerInterface

/// What the allocation remembers of one slot; no forwarded packet touches it.
struct SlotShare: ~Copyable {
    /// Turns that are kept for `subscription.explain`.
    static let maximumDecisions = 32

    /// What it was given last; `nil`: nothing.
    private(set) var given: LayerOption?
    /// Why it is not more.
    private(set) var limit = LayerLimit.none
    /// The estimate that would allow one rung more, in bits a second; 0: it is not the estimate.
    var needed = 0
    /// Why no video is sent, as the control plane knows it.
    var hold: VideoHold?
    /// What its worker, being pressed, has cut it to.
    var cut = VideoCut.none
    /// What it would have been given without that, and what the lowest rung takes.
    private(set) var whole: LayerOption?
    private(set) var lowestBitrate = 0

    /// When it was first given anything.
    private(set) var begun: Instant?
    /// It must not climb before, having fallen.
    private var rest: Instant?
    /// What a rise led to that the path did not carry, and when it may be tried again.
    private var failed: Failure?
    private var lastRise: Rise?
    private var decisions = List<LayerDecision>(capacity: 1)

    private struct Rise: BitwiseCopyable {
        var at: Instant
        var to: LayerOption
        /// What was thought of the path then, in bits a second.
        var estimate: Int?
    }

    private struct Failure: BitwiseCopyable {
        var option: LayerOption
        var estimate: Int
        var retryAt: Instant
        /// How often in a row.
        var times: Int64
    }

    /// How long who fell stays, in milliseconds.
    static let restMilliseconds: Int64 = 2_000
    /// How long a layer is left alone to which a rise has failed: twice as long for each time in a
    /// row, up to about a minute.
    static let retryMilliseconds: Int64 = 2_000
    static let maximumDoublings: Int64 = 5
    /// A fall so soon after a rise says that the rise was a mistake.
    static let trialMilliseconds: Int64 = 20_000
    /// A path that carries so many times as much is another path.
    static let betterPath = 1.25

    /// Whether it may turn to a layer above the one that it has; `estimate` is in bits a second,
    /// `nil` where nothing is known to bind.
    func mayRise(to option: LayerOption, within estimate: Int?, at now: Instant) -> Bool {
        guard let estimate else { return true }
        if let rest, rest > now { return false }
        guard let failed, failed.retryAt > now, !LayerOption.isLower(option, than: failed.option)
        else { return true }
        return Double(estimate) > Self.betterPath * Double(failed.estimate)
    }

    /// When it next may do what it may not yet, if ever.
    func nextChance(after now: Instant) -> Instant? {
        var next: Instant?
        if let rest, rest > now { next = rest }
        if let failed, failed.retryAt > now { next = min(next ?? failed.retryAt, failed.retryAt) }
        return next
    }

    /// When the layer may be tried again to which a rise has failed, if that is what it waits for.
    func retry(after now: Instant) -> Instant? {
        guard limit == .bandwidth, let failed, failed.retryAt > now else { return nil }
        return failed.retryAt
    }

    /// Another binding: nothing of the old one holds but the last turns.
    mutating func forget() {
        given = nil
        cut = .none
        whole = nil
        limit = .none
        begun = nil
        rest = nil
        failed = nil
        lastRise = nil
    }

    /// What the path did not carry is no reason any more to leave it alone: it is another one.
    mutating func forgetFailures() {
        rest = nil
        failed = nil
        lastRise = nil
    }

    /// Takes down what it would be given, and the lowest rung; returns what the cut leaves of it.
    mutating func cutting(_ option: LayerOption?, lowest: LayerOption?) -> LayerOption? {
        whole = option
        lowestBitrate = lowest?.likelyBitrate ?? 0
        switch cut {
        case .none: return option
        case .lowest: return option == nil ? nil : lowest
        case .off: return nil
        }
    }

    /// Takes down what it is given now, and why it is not more.
    ///
    /// `decision` is the turn that this would be; its cause is the new limit, and of a rise the
    /// limit that went. `estimate` is in bits a second.
    mutating func give(
        _ option: LayerOption?,
        limit newLimit: LayerLimit,
        within estimate: Int?,
        _ decision: LayerDecision
    ) {
        defer {
            given = option
            limit = newLimit
        }
        guard option?.target != given?.target else { return }
        let isFall = LayerOption.isLower(option, than: given)
        var decision = decision
        if !isFall { decision.cause = limit }
        note(decision)
        guard isFall else {
            if begun == nil { begun = decision.at }
            if let option {
                lastRise = Rise(at: decision.at, to: option, estimate: estimate)
            }
            return
        }
        guard newLimit == .bandwidth else { return }
        rest = decision.at.advanced(milliseconds: Self.restMilliseconds)
        fail(at: decision.at)
    }

    /// Judges the last rise by a fall: several in a row take back one.
    private mutating func fail(at now: Instant) {
        guard let rise = lastRise else { return }
        lastRise = nil
        guard now.milliseconds(since: rise.at) < Self.trialMilliseconds,
            let estimate = rise.estimate
        else { return failed = nil }
        // A lower one that fails too says more than a higher one.
        let isSame = failed.map { !LayerOption.isLower($0.option, than: rise.to) } ?? false
        let times = isSame ? min((failed?.times ?? 0) + 1, Self.maximumDoublings) : 0
        failed = Failure(
            option: rise.to,
            estimate: max(estimate, isSame ? failed?.estimate ?? 0 : 0),
            retryAt: now.advanced(milliseconds: Self.retryMilliseconds << times),
            times: times
        )
    }

    private mutating func note(_ decision: LayerDecision) {
        guard decisions.count == Self.maximumDecisions else { return decisions.append(decision) }
        for index in 1..<decisions.count { decisions[index - 1] = decisions[index] }
        decisions[decisions.count - 1] = decision
    }

    /// The last turns, oldest first.
    var turns: [LayerDecision] { (0..<decisions.count).map { decisions[$0] } }
}

extension LayerOption {
    /// Fewer pixels, or as many and fewer frames; nothing is lower than anything.
    static func isLower(_ left: Self?, than right: Self?) -> Bool {
        guard let right else { return false }
        guard let left else { return true }
        if left.pixels != right.pixels { return left.pixels < right.pixels }
        if left.target.encoding == right.target.encoding {
            return (left.target.spatial, left.target.temporal)
                < (right.target.spatial, right.target.temporal)
        }
        return left.frameRate < right.frameRate
    }
}
