/// Bandwidth allocator that distributes one subscriber's estimate among its video slots.
///
/// Each slot has a ladder of rungs, the layers that it may be sent, lowest first. All slots get
/// their lowest rung before any gets its second; after that, slots climb in order of priority. A
/// slot keeps its present rung up to somewhat more than the estimate, but climbs only within
/// somewhat less. This hysteresis prevents flapping.
struct Allocation: ~Copyable {
    /// One slot's ladder, and the rung allotted to it.
    struct Claim: BitwiseCopyable {
        /// Rungs of the ladder, as a range within `rungs`.
        var first: Int
        var count: Int
        /// Rung before this allocation; -1 for none.
        var held: Int
        /// Priority; the highest is served first.
        var priority: Int
        /// Whether video is paused if its lowest rung does not fit (audio fallback).
        var mayPause: Bool
        /// Highest rung that it may climb to; one below `held` forbids climbing.
        var ceiling: Int
        /// Bitrate that its highest rung may reach in motion, in bits a second.
        var motionBitrate: Int
        /// Allotted rung; -1 if none fits.
        fileprivate(set) var given = -1

        init(
            first: Int,
            count: Int,
            held: Int,
            priority: Int,
            mayPause: Bool,
            ceiling: Int,
            motionBitrate: Int = 0
        ) {
            self.first = first
            self.count = count
            self.held = min(held, count - 1)
            self.priority = priority
            self.mayPause = mayPause
            self.ceiling = min(ceiling, count - 1)
            self.motionBitrate = motionBitrate
        }
    }

    /// Share of the budget within which slots climb.
    static let riseShare = 0.95
    /// Share of the estimate up to which slots keep their rungs; above 1, as measured rates
    /// fluctuate.
    static let keepShare = 1.10
    /// The same share during a dip; an estimate dips whenever it has overshot the capacity.
    static let dipShare = 1.35
    /// Share of the budget within which the lowest rung must fit before paused video resumes.
    static let returnShare = 0.80

    /// Rungs of all claims, in bits a second.
    private(set) var rungs = UncountedArray<Int>(capacity: 16)
    private(set) var claims = UncountedArray<Claim>(capacity: 8)
    /// Indices of `claims`, the highest priority first after sorting.
    private var order = UncountedArray<Int32>(capacity: 8)
    private var total = 0

    /// Removes all claims and keeps their storage.
    mutating func removeAll() {
        rungs.removeAll()
        claims.removeAll()
        order.removeAll()
        total = 0
    }

    /// Appends a rung, in bits a second, to the ladder of the claim that is appended next.
    mutating func append(rung bitrate: Int) { rungs.append(max(bitrate, 0)) }

    var rungCount: Int { rungs.count }

    mutating func append(_ claim: Claim) {
        precondition(claim.first >= 0 && claim.first + claim.count <= rungs.count)
        claims.append(claim)
        order.append(Int32(claims.count - 1))
    }

    /// Bandwidth that all slots could use, in bits a second: their highest rungs, and the largest
    /// increase in motion of a single slot.
    ///
    /// All pictures starting to move at once is too unlikely to probe every subscriber's path for.
    var wanted: Int {
        var sum = 0
        var livelier = 0
        for index in 0..<claims.count where claims[index].count > 0 {
            let highest = bitrate(of: index, at: claims[index].count - 1)
            sum += highest
            livelier = max(livelier, claims[index].motionBitrate - highest)
        }
        return sum + livelier
    }

    /// Sum of the lowest rungs, in bits a second.
    var least: Int {
        var sum = 0
        for index in 0..<claims.count where claims[index].count > 0 {
            sum += bitrate(of: index, at: 0)
        }
        return sum
    }

    /// Sum of the allotted rungs, in bits a second.
    var given: Int { total }

    /// Returns the budget that would allow a claim one more rung, in bits a second.
    func needed(byNextRungAt index: Int) -> Int {
        let share = claims[index].given < 0 ? Self.returnShare : Self.riseShare
        return Int(Double(total + step(of: index)) / share)
    }

    /// Returns the least budget that would allow any claim one more rung, in bits a second; `nil`
    /// if all have their highest.
    var needed: Int? {
        var least: Int?
        for index in 0..<claims.count where claims[index].given < claims[index].count - 1 {
            let needed = needed(byNextRungAt: index)
            least = min(least ?? needed, needed)
        }
        return least
    }

    /// Sum of the rungs held before this allocation, in bits a second.
    var held: Int {
        var sum = 0
        for index in 0..<claims.count { sum += bitrate(of: index, at: claims[index].held) }
        return sum
    }

    /// Allots a rung to each claim.
    ///
    /// - Parameters:
    ///   - estimate: The bandwidth estimate in bits a second; `nil` if no limit is known.
    ///   - audio: The part of it that is reserved for audio.
    ///   - isDip: Whether the held rungs exceed the estimate only for a short while.
    mutating func share(_ estimate: Int?, beside audio: Int = 0, isDip: Bool = false) {
        guard let estimate else { return giveAll() }
        let budget = max(estimate - audio, 0)
        let keep = Self.kept(isDip ? Self.dipShare : Self.keepShare, of: estimate, beside: audio)
        sort()
        total = 0
        // Claims that may not be paused come first: the others would have to give way to them
        // anyway.
        for isSure in [true, false] {
            for position in 0..<order.count {
                let index = Int(order[position])
                if claims[index].mayPause != isSure { giveLowest(index, budget, keep) }
            }
        }
        climb(within: keep) { $0.held }
        climb(within: Int(Double(budget) * Self.riseShare)) { $0.ceiling }
    }

    /// Returns the limit for held rungs, in bits a second.
    ///
    /// The share applies to the whole estimate, audio included. If it applied to the remainder,
    /// video that is small beside its audio would lose a large part of its budget in a dip.
    private static func kept(_ share: Double, of estimate: Int, beside audio: Int) -> Int {
        max(Int(Double(estimate) * share) - audio, 0)
    }

    /// Whether the held rungs exceed their long-term limit under this estimate.
    func exceeds(_ estimate: Int, beside audio: Int) -> Bool {
        held > Self.kept(Self.keepShare, of: estimate, beside: audio)
    }

    private mutating func giveAll() {
        total = 0
        for index in 0..<claims.count {
            claims[index].given = claims[index].count - 1
            total += bitrate(of: index, at: claims[index].given)
        }
    }

    private mutating func giveLowest(_ index: Int, _ budget: Int, _ keep: Int) {
        claims[index].given = -1
        guard claims[index].count > 0 else { return }
        let lowest = bitrate(of: index, at: 0)
        let limit =
            claims[index].held >= 0 ? keep : Int(Double(budget) * Self.returnShare)
        let mayReturn = claims[index].held >= 0 || claims[index].ceiling >= 0
        guard mayReturn && total + lowest <= limit || !claims[index].mayPause else { return }
        claims[index].given = 0
        total += lowest
    }

    /// Raises claims rung by rung up to `ceiling`: by priority, then the claim on the lowest rung
    /// first.
    private mutating func climb(within limit: Int, to ceiling: (Claim) -> Int) {
        var position = 0
        while position < order.count {
            let priority = claims[Int(order[position])].priority
            var end = position
            while end < order.count, claims[Int(order[end])].priority == priority { end += 1 }
            while let next = lowestThatFits(in: position..<end, within: limit, to: ceiling) {
                total += step(of: next)
                claims[next].given += 1
            }
            position = end
        }
    }

    private func lowestThatFits(
        in range: Range<Int>,
        within limit: Int,
        to ceiling: (Claim) -> Int
    ) -> Int? {
        var best: Int?
        for position in range {
            let index = Int(order[position])
            let claim = claims[index]
            guard claim.given >= 0, claim.given < ceiling(claim),
                total + step(of: index) <= limit
            else { continue }
            if let other = best, claims[other].given <= claim.given { continue }
            best = index
        }
        return best
    }

    /// Returns the extra bitrate of the next rung; negative if measured rates say so.
    private func step(of index: Int) -> Int {
        bitrate(of: index, at: claims[index].given + 1)
            - bitrate(of: index, at: claims[index].given)
    }

    private func bitrate(of index: Int, at rung: Int) -> Int {
        rung >= 0 ? rungs[claims[index].first + rung] : 0
    }

    /// Sorts claims by priority, stably.
    private mutating func sort() {
        for index in 1..<max(order.count, 1) {
            let moved = order[index]
            var place = index
            while place > 0,
                claims[Int(order[place - 1])].priority < claims[Int(moved)].priority
            {
                order[place] = order[place - 1]
                place -= 1
            }
            order[place] = moved
        }
    }
}
