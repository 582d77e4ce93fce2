import RTP
import WorkerInterface

/// Load shedding: the video that an overloaded worker reduces, by slot.
struct Overload: ~Copyable {
    var gauge: OverloadController
    /// Slots whose video is reduced or stopped.
    var reducedSlots = 0
    var stoppedSlots = 0
    var sheddingDue: Instant?
    /// State now, and the one last reported to the control plane.
    var state = WorkerOverload()
    var reported = WorkerOverload()

    private static let sheddingMilliseconds: Int64 = 2_000

    init(_ limits: OverloadLimits) { gauge = OverloadController(limits) }

    /// Processes the worker's load sample, and reduces or restores video accordingly.
    ///
    /// Returns the state of the overload if the control plane is to hear of it.
    mutating func noteLoad(
        _ sample: LoadSample,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) -> WorkerOverload? {
        let isOther = gauge.note(sample, at: now)
        if isOther || sheddingDue.isDue(at: now) {
            shedLoad(at: now, &transports, &receiver, &forwarder, &allocator)
        }
        state = gauge.pressure(reduced: reducedSlots, stopped: stoppedSlots)
        guard state.isNews(beside: reported) else { return nil }
        reported = state
        return state
    }

    /// Distributes the bitrate that may still be sent among all slots of the worker.
    ///
    /// The least important slots lose their higher layers first. When all are down to their lowest
    /// layer, the least important lose that too.
    private mutating func shedLoad(
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        guard gauge.kept < 1 || reducedSlots + stoppedSlots > 0 else {
            sheddingDue = nil
            return
        }
        // Repeated while overloaded, because slots come and go.
        sheddingDue = gauge.kept < 1 ? now.advanced(milliseconds: Self.sheddingMilliseconds) : nil
        var plan = SheddingPlan()
        for offset in 0..<forwarder.slots.capacity {
            guard let slot = forwarder.slots.index(at: offset),
                let claim = sheddingClaim(of: slot, receiver, forwarder, allocator)
            else { continue }
            plan.claims.append(claim)
        }
        plan.share(kept: gauge.kept)
        reducedSlots = 0
        stoppedSlots = 0
        for claim in plan.claims {
            switch claim.cut {
            case .none: break
            case .lowest: reducedSlots += 1
            case .off: stoppedSlots += 1
            }
            let slot = claim.slot
            guard allocator.shares[slot].value.cut != claim.cut else { continue }
            allocator.shares[slot].value.cut = claim.cut
            allocator.allocate(
                forwarder.slots[slot].transport,
                at: now,
                &transports,
                &receiver,
                &forwarder
            )
        }
    }

    func sheddingClaim(
        of slot: SlotIndex,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder,
        _ allocator: borrowing LayerAllocator
    ) -> SheddingPlan.Claim? {
        guard forwarder.slots[slot].kind == .video, forwarder.slots[slot].isOpen,
            let publication = forwarder.slots[slot].publication,
            let whole = allocator.shares[slot].value.whole
        else { return nil }
        let fallback: SheddingPlan.Fallback =
            if !receiver.publications[publication].configuration.audioFallback {
                .forbiddenByPublisher
            } else {
                forwarder.slotRecords[slot].mayFallBack ? .allowed : .forbiddenBySubscriber
            }
        let isFeatured =
            receiver.publications[publication].configuration.isFeatured
            || receiver.publications[publication].configuration.isScreen
        return SheddingPlan.Claim(
            slot: slot,
            priority: Int(forwarder.slotRecords[slot].priority),
            hasLargeAudience: receiver.publications[publication].hasLargeAudience,
            isFeatured: isFeatured,
            fallback: fallback,
            whole: whole.likelyBitrate,
            lowest: allocator.shares[slot].value.lowestBitrate,
            cut: allocator.shares[slot].value.cut
        )
    }
}

extension WorkerOverload {
    /// Whether the control plane should be told: the step has changed, or a figure has moved
    /// notably.
    func isNews(beside told: Self) -> Bool {
        step != told.step || Swift.abs(busyPercent - told.busyPercent) >= 5
            || Swift.abs(keptPermille - told.keptPermille) >= 50
            || (keptPermille == 1_000) != (told.keptPermille == 1_000)
            || (busyPercent < 5) != (told.busyPercent < 5)
    }
}
