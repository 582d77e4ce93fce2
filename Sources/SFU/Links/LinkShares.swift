package import RTP
import WorkerInterface

/// Distribution of a link's bandwidth among the video that goes over it.
///
/// A publication is sent in whole encodings. All publications get their lowest wanted encoding
/// before any gets its second; screen shares come before cameras, and sound is never withheld.
package struct LinkShares: ~Copyable {
    /// A publication that another node wants.
    package struct Claim {
        /// Bitrates of the wanted encodings in bits a second, the lowest encoding first.
        package var bitrates: [Int]
        /// Number of them up to the highest that is sent.
        package var held: Int
        /// Whether the lowest of these is the publication's lowest, which is kept for longest.
        package var hasLowest: Bool
        package var isScreen: Bool

        package init(bitrates: [Int], held: Int, hasLowest: Bool = true, isScreen: Bool) {
            self.bitrates = bitrates
            self.held = held
            self.hasLowest = hasLowest
            self.isScreen = isScreen
        }
    }

    /// Result of a distribution, in bits a second.
    package struct Result {
        /// Number of encodings to send of each claim.
        package var given: [Int] = []
        package var wanted = 0
        package var allocated = 0
        /// Estimate that would allow one encoding more; 0 if all are sent.
        package var next = 0
    }

    /// Milliseconds after a reduction before a video that is not sent at all may come back, before
    /// anything is raised, and before it is raised after a reduction that undid a raise.
    static let returnMilliseconds: Int64 = 2_000
    static let restMilliseconds: Int64 = 5_000
    static let failedMilliseconds: Int64 = 30_000
    static let maximumDoublings: Int64 = 2
    /// Milliseconds after a raise within which a reduction means that it failed.
    static let trialMilliseconds: Int64 = 20_000
    /// Time that an estimate needs to recover after it overshot the path's capacity.
    private static let dipMilliseconds: Int64 = 2_000
    /// Growth of the limit, as a multiple of what it was at a raise that failed, from which the
    /// path is another one.
    static let widerFactor = 1.5
    /// Milliseconds for which it must have been so.
    static let widerMilliseconds: Int64 = 1_000
    /// Milliseconds for which the lowest encodings alone must be too much before one of them is
    /// withheld.
    static let patienceMilliseconds: Int64 = 3_000
    /// Bytes that a packet has more on the path than where its bitrate is measured, and its typical
    /// length.
    private static let packetOverhead = 100
    private static let packetLength = 1_100

    private var allocation = Allocation()
    private var rest: Instant?
    private var lastRise: Instant?
    private var failures: Int64 = 0
    private var exceededSince: Instant?
    private var starvedSince: Instant?
    private var lastFall: Instant?
    /// Limit at the last raise, and the one that ends the rest after a raise that failed.
    private var limitAtRise = 0
    private var widerLimit: Int?
    private var widerSince: Instant?

    package init() {}

    /// Forgets what has failed, as the path limits nothing any longer.
    package mutating func forget() {
        (rest, lastRise, lastFall, exceededSince, starvedSince) = (nil, nil, nil, nil, nil)
        failures = 0
        (widerLimit, widerSince) = (nil, nil)
    }

    /// Distributes `limit` bits a second, of which `other` are for what is no video.
    ///
    /// `isFull` says that packets sent now are queued for long, or lost; then no encoding is kept
    /// that does not fit.
    package mutating func share(
        _ claims: [Claim],
        within limit: Int,
        beside other: Int,
        isFull: Bool,
        at now: Instant
    ) -> Result {
        allocation.removeAll()
        endRest(within: isFull ? 0 : limit, at: now)
        let mayRise = !isFull && rest.map { $0 <= now } ?? true
        let mayReturn =
            !isFull
            && lastFall.map { now.milliseconds(since: $0) >= Self.returnMilliseconds } ?? true
        let mayPause = isStarved(claims, within: limit, beside: other, at: now)
        for claim in claims {
            let ceiling = mayRise ? claim.bitrates.count : max(claim.held, mayReturn ? 1 : 0)
            append(claim, upTo: ceiling, mayPause: mayPause)
        }
        let isDip = isDip(to: limit, beside: other, isFull: isFull, at: now)
        allocation.share(limit, beside: other, isDip: isDip)
        var result = Result(
            wanted: other + allocation.wanted,
            allocated: other + allocation.given,
            next: allocation.needed.map { other + $0 } ?? 0
        )
        var (hasRisen, hasFallen) = (false, false)
        for index in 0..<allocation.claims.count {
            let claim = allocation.claims[index]
            if claim.given > claim.held { hasRisen = true }
            if claim.given < claim.held { hasFallen = true }
            result.given.append(claim.given + 1)
        }
        if hasFallen { noteFall(at: now) } else if hasRisen { noteRise(within: limit, at: now) }
        return result
    }

    /// Whether the lowest encodings alone have been too much for a while.
    private mutating func isStarved(
        _ claims: [Claim],
        within limit: Int,
        beside other: Int,
        at now: Instant
    ) -> Bool {
        let least = claims.filter(\.hasLowest)
            .reduce(other) { $0 + ($1.bitrates.first.map(Self.withOverhead) ?? 0) }
        guard least > limit else {
            starvedSince = nil
            return false
        }
        let since = starvedSince ?? now
        starvedSince = since
        return now.milliseconds(since: since) >= Self.patienceMilliseconds
    }

    private static func withOverhead(_ bitrate: Int) -> Int {
        bitrate + bitrate / packetLength * packetOverhead
    }

    private mutating func append(_ claim: Claim, upTo ceiling: Int, mayPause: Bool) {
        let first = allocation.rungCount
        var sum = 0
        for bitrate in claim.bitrates {
            sum += Self.withOverhead(bitrate)
            allocation.append(rung: sum)
        }
        allocation.append(
            Allocation.Claim(
                first: first,
                count: claim.bitrates.count,
                held: claim.held - 1,
                priority: claim.isScreen ? 1 : 0,
                mayPause: mayPause || claim.held == 0 || !claim.hasLowest,
                ceiling: ceiling - 1
            )
        )
    }

    private mutating func isDip(
        to limit: Int,
        beside other: Int,
        isFull: Bool,
        at now: Instant
    ) -> Bool {
        guard !isFull, allocation.exceeds(limit, beside: other) else {
            exceededSince = nil
            return false
        }
        let since = exceededSince ?? now
        exceededSince = since
        return now.milliseconds(since: since) < Self.dipMilliseconds
    }

    private mutating func noteRise(within limit: Int, at now: Instant) {
        lastRise = now
        limitAtRise = limit
    }

    /// Shortens the rest after a raise that failed where the path has become wider since.
    ///
    /// The raise may have failed only because its keyframe filled a path that was narrow then.
    private mutating func endRest(within limit: Int, at now: Instant) {
        guard let wider = widerLimit, limit >= wider else { return widerSince = nil }
        let since = widerSince ?? now
        widerSince = since
        guard now.milliseconds(since: since) >= Self.widerMilliseconds else { return }
        (widerLimit, widerSince) = (nil, nil)
        rest = lastFall?.advanced(milliseconds: Self.restMilliseconds)
    }

    private mutating func noteFall(at now: Instant) {
        lastFall = now
        let isFailure = lastRise.map { now.milliseconds(since: $0) < Self.trialMilliseconds }
        lastRise = nil
        guard isFailure == true else {
            let end = now.advanced(milliseconds: Self.restMilliseconds)
            return rest = max(rest ?? end, end)
        }
        rest = now.advanced(milliseconds: Self.failedMilliseconds << failures)
        widerLimit = max(widerLimit ?? 0, Int(Double(limitAtRise) * Self.widerFactor))
        failures = min(failures + 1, Self.maximumDoublings)
    }
}
