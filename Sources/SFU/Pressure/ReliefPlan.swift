/// Who gives up how much of its video, so that all together take a share of what they would.
struct ReliefPlan {
    /// One slot: what matters of it, what it would take, and how much of that it is to get.
    struct Claim: BitwiseCopyable {
        var slot: Int32
        /// The subscriber's, 0 to 1,000: lower ones give up first.
        var priority: Int
        /// It is one of the many viewers of a publication: among equals first, as it is they who
        /// make the work, and not a small room beside them.
        var isInCrowd: Bool
        /// It shows somebody who talks or is pinned, or a screen: among equals last.
        var isFeatured: Bool
        /// Its video may be switched off; others lose it only when none of these is left.
        var mayStop: Bool
        /// Bits a second with all its layers, and with the lowest alone.
        var whole: Int
        var lowest: Int
        /// What it was cut to; `share` says what it is to be.
        var cut: VideoCut
    }

    var claims: [Claim] = []

    /// Cuts until what is left is at most `kept`, 0 to 1, of what all would take.
    mutating func share(kept: Double) {
        guard kept < 1 else {
            for index in claims.indices { claims[index].cut = .none }
            return
        }
        let demand = claims.reduce(0) { $0 + $1.whole }
        var excess = Int(Double(demand) * (1 - max(kept, 0)))
        let before = claims
        for index in claims.indices { claims[index].cut = .none }
        for index in order({ before[$0].cut != .none }) {
            let saved = claims[index].whole - claims[index].lowest
            guard saved > 0, isWorth(saved, of: excess, before[index].cut != .none) else {
                continue
            }
            claims[index].cut = .lowest
            excess -= saved
        }
        for mayStop in [true, false] {
            for index in order({ before[$0].cut == .off }) where claims[index].mayStop == mayStop {
                let left = claims[index].cut == .none ? claims[index].whole : claims[index].lowest
                guard isWorth(left, of: excess, before[index].cut == .off) else { continue }
                claims[index].cut = .off
                excess -= left
            }
        }
    }

    /// The one on the edge stays as it is while the rates swing.
    private func isWorth(_ saved: Int, of excess: Int, _ wasCut: Bool) -> Bool {
        guard excess > 0 else { return false }
        return wasCut || excess >= saved / 2
    }

    /// The least important first; of equals those that have given up already.
    private func order(_ wasCut: (Int) -> Bool) -> [Int] {
        claims.indices.sorted { left, right in
            let (one, other) = (claims[left], claims[right])
            if one.priority != other.priority { return one.priority < other.priority }
            if one.isInCrowd != other.isInCrowd { return one.isInCrowd }
            if one.isFeatured != other.isFeatured { return other.isFeatured }
            let (oneWas, otherWas) = (wasCut(left), wasCut(right))
            if oneWas != otherWas { return oneWas }
            return one.slot < other.slot
        }
    }
}
