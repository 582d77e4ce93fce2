/// Load-shedding plan: the cut of each slot's video, so that all together take at most a share of
/// their demand.
struct SheddingPlan {
    /// Permission to switch a slot's video off and keep its audio, the first to lose it first.
    enum Fallback: CaseIterable { case allowed, forbiddenBySubscriber, forbiddenByPublisher }

    /// One slot: its importance, its demand and its cut.
    struct Claim: BitwiseCopyable {
        var slot: SlotIndex
        /// Subscriber's priority, 0 to 1,000; lower ones are cut first.
        var priority: Int
        /// Whether its publication has many subscribers.
        ///
        /// Among equals such slots are cut first, because they cause the load, not a small room
        /// beside them.
        var hasLargeAudience: Bool
        /// Whether it shows an active speaker, a pinned participant or a screen; among equals cut
        /// last.
        var isFeatured: Bool
        /// Whether its video may be switched off; a slot loses it only when no slot of an earlier
        /// kind has any left.
        var fallback: Fallback
        /// Bitrate with all its layers and with the lowest alone, in bits a second.
        var whole: Int
        var lowest: Int
        /// Current cut, which `share` updates.
        var cut: VideoReduction
    }

    var claims: [Claim] = []

    /// Cuts slots until the rest takes at most the share `kept`, 0 to 1, of the total demand.
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
        for fallback in Fallback.allCases {
            for index in order({ before[$0].cut == .off }) where claims[index].fallback == fallback
            {
                let left = claims[index].cut == .none ? claims[index].whole : claims[index].lowest
                guard isWorth(left, of: excess, before[index].cut == .off) else { continue }
                claims[index].cut = .off
                excess -= left
            }
            // A slot that was too large for the rest of the excess keeps those of later kinds too.
            guard claims.allSatisfy({ $0.fallback != fallback || $0.cut == .off }) else { return }
        }
    }

    /// Returns whether to cut a slot; hysteresis keeps the borderline slot as it is while bitrates
    /// fluctuate.
    private func isWorth(_ saved: Int, of excess: Int, _ wasCut: Bool) -> Bool {
        guard excess > 0 else { return false }
        return wasCut || excess >= saved / 2
    }

    /// Returns the slots ordered from the least important; among equals those that are cut already
    /// come first.
    private func order(_ wasCut: (Int) -> Bool) -> [Int] {
        claims.indices.sorted { left, right in
            let (one, other) = (claims[left], claims[right])
            if one.priority != other.priority { return one.priority < other.priority }
            if one.hasLargeAudience != other.hasLargeAudience { return one.hasLargeAudience }
            if one.isFeatured != other.isFeatured { return other.isFeatured }
            let (oneWas, otherWas) = (wasCut(left), wasCut(right))
            if oneWas != otherWas { return oneWas }
            return one.slot < other.slot
        }
    }
}
