/// Shares what one viewer's path carries among its video slots.
///
/// Every slot brings a ladder of what it could be sent, lowest first. All of them get their lowest
/// rung before any gets its second; then the important climb first. What a slot had it keeps
/// while there is room at all; for more there must be room to spare, so nothing flaps on the edge.
struct Allocation: ~Copyable {
    /// One slot's ladder, and what it is given.
    struct Claim: BitwiseCopyable {
        /// The rungs of its ladder, as a stretch of `rungs`.
        var first: Int
        var count: Int
        /// The rung it had; -1 where it had none.
        var held: Int
        /// A higher one comes first.
        var priority: Int
        /// Its video goes off rather than beyond what there is (audio fallback).
        var mayStop: Bool
        /// The highest rung that it may climb to; below `held` it may not climb.
        var ceiling: Int
        /// What its highest rung may come to take, in bits a second.
        var lively: Int
        /// The rung that it is given; -1: none fits.
        fileprivate(set) var given = -1

        init(
            first: Int,
            count: Int,
            held: Int,
            priority: Int,
            mayStop: Bool,
            ceiling: Int,
            lively: Int = 0
        ) {
            self.first = first
            self.count = count
            self.held = min(held, count - 1)
            self.priority = priority
            self.mayStop = mayStop
            self.ceiling = min(ceiling, count - 1)
            self.lively = lively
        }
    }

    /// Of what the estimate allows, slots climb only into so much.
    static let riseShare = 0.95
    /// What they have they keep up to so much of the estimate: measured rates swing.
    static let keepShare = 1.10
    /// The same for a short while: an estimate dips whenever it has found the edge.
    static let dipShare = 1.35
    /// A picture that was off comes back only when its lowest rung takes so much.
    static let returnShare = 0.80

    /// The rungs of all claims, in bits a second.
    private(set) var rungs = List<Int>(capacity: 16)
    private(set) var claims = List<Claim>(capacity: 8)
    /// Indices of `claims`, the important first.
    private var order = List<Int32>(capacity: 8)
    private var total = 0

    /// Forgets all claims; what was reserved for them stays.
    mutating func removeAll() {
        rungs.removeAll()
        claims.removeAll()
        order.removeAll()
        total = 0
    }

    /// Adds a rung to the ladder of the claim that is added next.
    mutating func append(rung bitrate: Int) { rungs.append(max(bitrate, 0)) }

    var rungCount: Int { rungs.count }

    mutating func append(_ claim: Claim) {
        precondition(claim.first >= 0 && claim.first + claim.count <= rungs.count)
        claims.append(claim)
        order.append(Int32(claims.count - 1))
    }

    /// What all slots together would take if there were room and one more picture began to move,
    /// in bits a second.
    ///
    /// That all begin at once is not worth asking every viewer's path for.
    var wanted: Int {
        var sum = 0
        var livelier = 0
        for index in 0..<claims.count where claims[index].count > 0 {
            let highest = bitrate(of: index, at: claims[index].count - 1)
            sum += highest
            livelier = max(livelier, claims[index].lively - highest)
        }
        return sum + livelier
    }

    /// What they were given, in bits a second.
    var given: Int { total }

    /// The budget from which on a claim would be given one rung more, in bits a second.
    func needed(byNextRungAt index: Int) -> Int {
        Int(Double(total + step(of: index)) / Self.riseShare)
    }

    /// What the slots have, in bits a second.
    var held: Int {
        var sum = 0
        for index in 0..<claims.count { sum += bitrate(of: index, at: claims[index].held) }
        return sum
    }

    /// Gives each claim its rung.
    ///
    /// `estimate` is in bits a second, `nil` where nothing is known to bind, and `sound` what of it
    /// is not theirs; `isDip` says that it was enough a moment ago.
    mutating func share(_ estimate: Int?, beside sound: Int = 0, isDip: Bool = false) {
        guard let estimate else { return giveAll() }
        let budget = max(estimate - sound, 0)
        let keep = Self.kept(isDip ? Self.dipShare : Self.keepShare, of: estimate, beside: sound)
        sort()
        total = 0
        // Who may not be left without comes first: the others would have to make room anyway.
        for isSure in [true, false] {
            for position in 0..<order.count {
                let index = Int(order[position])
                if claims[index].mayStop != isSure { giveLowest(index, budget, keep) }
            }
        }
        climb(within: keep) { $0.held }
        climb(within: Int(Double(budget) * Self.riseShare)) { $0.ceiling }
    }

    /// What slots keep, in bits a second: it is the estimate as a whole that dips, so where much of
    /// it is sound little video loses a large part of what is left.
    private static func kept(_ share: Double, of estimate: Int, beside sound: Int) -> Int {
        max(Int(Double(estimate) * share) - sound, 0)
    }

    /// Whether what the slots have is more than they keep of this in the long run.
    func exceeds(_ estimate: Int, beside sound: Int) -> Bool {
        held > Self.kept(Self.keepShare, of: estimate, beside: sound)
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
        guard mayReturn && total + lowest <= limit || !claims[index].mayStop else { return }
        claims[index].given = 0
        total += lowest
    }

    /// Lifts claims one rung at a time, not above `ceiling`: of each priority the lowest first.
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

    /// What the next rung costs more than the present one; measured rates may even fall.
    private func step(of index: Int) -> Int {
        bitrate(of: index, at: claims[index].given + 1)
            - bitrate(of: index, at: claims[index].given)
    }

    private func bitrate(of index: Int, at rung: Int) -> Int {
        rung >= 0 ? rungs[claims[index].first + rung] : 0
    }

    /// By priority; equals stay in the order in which they came.
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
