import RTP
import WorkerInterface

/// Reduction of a slot's video while its worker is overloaded.
enum VideoReduction: UInt8, BitwiseCopyable {
    case none
    /// Only the lowest layer is sent.
    case lowest
    /// No video is sent.
    case off
}

/// Allocation state of one slot, outside the packet path.
struct SlotShare: ~Copyable {
    /// Layer switches that are kept for `subscription.explain`.
    static let maximumDecisions = 32

    /// Allotted layer; `nil` for no video.
    private(set) var given: LayerOption?
    /// Limit that keeps it from a higher layer.
    private(set) var limit = LayerLimit.none
    /// Estimate that would allow one rung more, in bits a second; 0 if the estimate is not the
    /// limit.
    var needed = 0
    /// Reason for paused video that the control plane was last told.
    var hold: VideoHold?
    /// Cut that an overloaded worker has imposed.
    var cut = VideoReduction.none
    /// Layer that it would be allotted without the cut, and the bitrate of its lowest rung.
    private(set) var whole: LayerOption?
    private(set) var lowestBitrate = 0

    /// Time at which it was first allotted a layer.
    private(set) var begun: Instant?
    /// Time before which it must not climb after a fall.
    private var rest: Instant?
    /// Failed rise, to a layer that the path did not carry, and the time of the next try.
    private var failed: Failure?
    private var lastRise: Rise?
    private var decisions = UncountedArray<LayerDecision>(capacity: 1)

    private struct Rise: BitwiseCopyable {
        var at: Instant
        var to: LayerOption
        /// Bandwidth estimate at that time, in bits a second.
        var estimate: Int?
    }

    private struct Failure: BitwiseCopyable {
        var option: LayerOption
        var estimate: Int
        var retryAt: Instant
        /// Doublings of the retry delay, for further failures in a row.
        var times: Int64
    }

    /// Milliseconds after a fall before the slot may climb.
    static let restMilliseconds: Int64 = 2_000
    /// Milliseconds before a failed layer is tried again.
    ///
    /// The delay doubles for each further failure in a row, up to about a minute.
    static let retryMilliseconds: Int64 = 2_000
    static let maximumDoublings: Int64 = 5
    /// Milliseconds after a rise within which a fall means that the rise failed.
    static let trialMilliseconds: Int64 = 20_000
    /// Growth of the estimate from which the path counts as another one.
    static let betterPath = 1.25

    /// Returns whether the slot may switch to a layer above its present one.
    ///
    /// `estimate` is in bits a second, `nil` if no limit is known.
    func mayRise(to option: LayerOption, within estimate: Int?, at now: Instant) -> Bool {
        guard let estimate else { return true }
        if let rest, rest > now { return false }
        guard let failed, failed.retryAt > now, !LayerOption.isLower(option, than: failed.option)
        else { return true }
        return Double(estimate) > Self.betterPath * Double(failed.estimate)
    }

    /// Returns the time at which the next restriction on climbing ends, if any.
    func nextChance(after now: Instant) -> Instant? {
        var next: Instant?
        if let rest, rest > now { next = rest }
        if let failed, failed.retryAt > now { next = min(next ?? failed.retryAt, failed.retryAt) }
        return next
    }

    /// Returns the time at which a failed layer may be tried again, if the slot waits for that.
    func retry(after now: Instant) -> Instant? {
        guard limit == .bandwidth, let failed, failed.retryAt > now else { return nil }
        return failed.retryAt
    }

    /// Clears the state of the old binding except the last layer switches.
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

    /// Clears failed rises after a change of the path, to which they do not apply.
    mutating func forgetFailures() {
        rest = nil
        failed = nil
        lastRise = nil
    }

    /// Records the uncut layer and the lowest rung; returns the layer that the cut leaves.
    mutating func cutting(_ option: LayerOption?, lowest: LayerOption?) -> LayerOption? {
        whole = option
        lowestBitrate = lowest?.likelyBitrate ?? 0
        switch cut {
        case .none: return option
        case .lowest: return option == nil ? nil : lowest
        case .off: return nil
        }
    }

    /// Records the allotted layer, and the limit that keeps it from a higher one.
    ///
    /// `decision` is the switch that this would be. Its cause is the new limit, or for a rise the
    /// limit that ended. `estimate` is in bits a second.
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

    /// Judges the last rise by a fall; of several falls in a row only the first one counts.
    private mutating func fail(at now: Instant) {
        guard let rise = lastRise else { return }
        lastRise = nil
        guard now.milliseconds(since: rise.at) < Self.trialMilliseconds,
            let estimate = rise.estimate
        else { return failed = nil }
        // A failure of the same or a lower layer continues the series.
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

    /// Last layer switches, oldest first.
    var recentDecisions: [LayerDecision] { (0..<decisions.count).map { decisions[$0] } }
}

extension LayerOption {
    /// Returns whether `left` has fewer pixels, or as many and lower layers or fewer frames.
    ///
    /// `nil` is lower than any option.
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
