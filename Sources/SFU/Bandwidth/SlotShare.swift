internal import RTP

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

    /// It must not climb before, having fallen.
    private(set) var mayRiseAt: Instant?
    private var lastRise: Instant?
    /// Falls in a row that came soon after a rise.
    private var failures = 0
    private var decisions = List<LayerDecision>(capacity: 1)

    /// How long who fell stays, in milliseconds; twice as long for each time that a rise failed.
    static let restMilliseconds: Int64 = 2_000
    static let maximumFailures = 3
    /// A fall so soon after a rise says that the rise was a mistake.
    static let trialMilliseconds: Int64 = 10_000

    func mayRise(at now: Instant) -> Bool { mayRiseAt.map { $0 <= now } ?? true }

    /// Another binding: nothing of the old one holds but the last turns.
    mutating func forget() {
        given = nil
        cut = .none
        whole = nil
        limit = .none
        mayRiseAt = nil
        lastRise = nil
        failures = 0
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
    /// limit that went.
    mutating func give(
        _ option: LayerOption?,
        limit newLimit: LayerLimit,
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
        guard isFall else { return lastRise = decision.at }
        guard newLimit == .bandwidth else { return }
        let sinceRise = lastRise.map { decision.at.milliseconds(since: $0) }
        let hasFailed = sinceRise.map { $0 < Self.trialMilliseconds } ?? false
        // Several falls in a row take back one rise.
        if lastRise == nil, mayRiseAt.map({ $0 > decision.at }) ?? false { return }
        lastRise = nil
        failures = hasFailed ? min(failures + 1, Self.maximumFailures) : 0
        let rest = Self.restMilliseconds << Int64(max(failures - 1, 0))
        mayRiseAt = decision.at.advanced(milliseconds: rest)
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
