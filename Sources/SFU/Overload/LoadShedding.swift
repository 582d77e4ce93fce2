package import RTP
package import WorkerInterface

/// Reduction of a slot's video while its worker is overloaded.
enum VideoReduction: UInt8, BitwiseCopyable {
    case none
    /// Only the lowest layer is sent.
    case lowest
    /// No video is sent.
    case off
}

/// Load shedding: the video that an overloaded worker reduces, by slot.
extension Core {
    /// Processes the worker's load sample, and reduces or restores video accordingly.
    ///
    /// It runs between two batches, so no packet pays for it.
    package mutating func noteLoad(_ sample: LoadSample, at now: Instant) {
        self.now = now
        let isOther = gauge.note(sample, at: now)
        if isOther || sheddingDue.isDue(at: now) { shedLoad(at: now) }
        let told = gauge.pressure(reduced: reducedSlots, stopped: stoppedSlots)
        statistics.pressure = told
        guard told.isNews(beside: reportedOverload) else { return }
        reportedOverload = told
        emit(.pressure(told, transports: transports.count))
    }

    /// Time of the next call of `noteLoad`; `nil` if none is needed.
    package var loadSampleDeadline: Instant? { gauge.deadline }

    package func needsLoadSample(at now: Instant) -> Bool { gauge.isDue(at: now) }

    /// Distributes the bitrate that may still be sent among all slots of the worker.
    ///
    /// The least important slots lose their higher layers first. When all are down to their lowest
    /// layer, the least important lose that too.
    private mutating func shedLoad(at now: Instant) {
        guard gauge.kept < 1 || reducedSlots + stoppedSlots > 0 else {
            sheddingDue = nil
            return
        }
        // Repeated while overloaded, because slots come and go.
        sheddingDue = gauge.kept < 1 ? now.advanced(milliseconds: Self.sheddingMilliseconds) : nil
        var plan = SheddingPlan()
        for slot in 0..<slots.capacity where slots.isOccupied(slot) {
            guard let claim = sheddingClaim(of: slot) else { continue }
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
            let slot = Int(claim.slot)
            guard slotRecords[slot].share.value.cut != claim.cut else { continue }
            slotRecords[slot].share.value.cut = claim.cut
            allocate(slots[slot].transport, at: now)
        }
    }

    private func sheddingClaim(of slot: Int) -> SheddingPlan.Claim? {
        let publication = Int(slots[slot].publication)
        guard slots[slot].kind == .video, slots[slot].isOpen, publication >= 0,
            let whole = slotRecords[slot].share.value.whole
        else { return nil }
        let isFeatured =
            publications[publication].configuration.isFeatured
            || publications[publication].configuration.isScreen
        return SheddingPlan.Claim(
            slot: Int32(slot),
            priority: Int(slotRecords[slot].priority),
            hasLargeAudience: publications[publication].hasLargeAudience,
            isFeatured: isFeatured,
            mayPause: slotRecords[slot].mayFallBack,
            whole: whole.likelyBitrate,
            lowest: slotRecords[slot].share.value.lowestBitrate,
            cut: slotRecords[slot].share.value.cut
        )
    }

    private static let sheddingMilliseconds: Int64 = 2_000
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
