import RTP
import WorkerInterface

/// Layer switching of slots, and its notifications to subscribers.
extension Core {
    /// Switches a slot to another target.
    ///
    /// A switch up happens at the next keyframe or decodable switch point, a switch down at once
    /// where the codec allows it. The present layer is forwarded until then, so the picture does
    /// not freeze. `keyframeAt` is the earliest time for a keyframe request, if not at once.
    mutating func retarget(
        _ slot: Int,
        at target: LayerTarget,
        at now: Instant,
        keyframeAt: Instant? = nil
    ) {
        let isOther = target != slotRecords[slot].target
        slotRecords[slot].target = target
        guard target.encoding >= 0 else {
            if slots[slot].isOpen { slots[slot].source = .waiting }
            return
        }
        slots[slot].point = point(of: target)
        if slotRecords[slot].encodingSent != .max,
            slotRecords[slot].spatialSent != highestSent(slots[slot])
        {
            // The publisher has added or removed a spatial layer.
            slots[slot].isLayerNoted = false
        }
        let isWaiting = slots[slot].follow(target.encoding) || needsKeyframe(slot, for: target)
        // A pending request is not repeated: repeated requests would look like a burst of new ones.
        let isSaid = !isOther && encodings[Int(target.encoding)].keyframes.isWanted
        if isWaiting, !isSaid {
            requestKeyframe(for: target, slot: slot, at: now, notBefore: keyframeAt ?? now)
        }
    }

    /// Returns the target's layers, or the maximum where the target includes the highest ones.
    ///
    /// Layers that the publisher adds later are then evaluated before their first packet is
    /// forwarded.
    private func point(of target: LayerTarget) -> LayerPoint {
        let highest = encodings[Int(target.encoding)].layers.highest
        return LayerPoint(
            spatial: target.spatial >= highest.spatial ? 7 : target.spatial,
            temporal: target.temporal >= highest.temporal ? 3 : target.temporal
        )
    }

    /// Whether a switch within the same encoding needs a keyframe.
    ///
    /// A higher spatial layer does. A lower one does not if it is nested in the layers sent now.
    private func needsKeyframe(_ slot: Int, for target: LayerTarget) -> Bool {
        guard case .flowing(target.encoding) = slots[slot].source else { return false }
        let encoding = Int(target.encoding)
        let span = slots[slot].rewriter.current
        guard span.encoding == UInt32(bitPattern: target.encoding) else { return false }
        let highest = encodings[encoding].layers.highest.spatial
        let sent = min(span.point.spatial, highest)
        let wanted = min(target.spatial, highest)
        return wanted > sent || wanted < sent && !encodings[encoding].nestsLayers
    }

    private mutating func requestKeyframe(
        for target: LayerTarget,
        slot: Int,
        at now: Instant,
        notBefore: Instant
    ) {
        if case .waiting = slots[slot].source, notBefore <= now {
            requestKeyframe(forSlot: slot, at: now)
        } else {
            requestKeyframe(of: Int(target.encoding), at: now, notBefore: notBefore)
        }
    }

    /// Clears the record of the layer that a slot last sent.
    mutating func forgetLayer(of slot: Int) {
        slots[slot].isLayerNoted = false
        slotRecords[slot].encodingSent = .max
    }

    /// Reports the first packet of a slot, or of another layer in it.
    mutating func noteLayer(_ place: Int32, of slotCursor: inout SlotCursor) {
        let slot = slotCursor.index
        let encoding = Int(pool[place].encoding)
        let previous = slotRecords[slot].encodingSent
        let previousSpatial = slotRecords[slot].spatialSent
        let spatial = highestSent(slotCursor.slot)
        slotCursor.slot.isLayerNoted = true
        slotRecords[slot].encodingSent = UInt32(encoding)
        slotRecords[slot].spatialSent = spatial
        guard previous != encoding || previousSpatial != spatial else { return }
        let subscription = slotRecords[slot].subscription
        let id = slots.handle(at: slot)
        if !slotRecords[slot].hasStarted {
            slotRecords[slot].hasStarted = true
            emit(.started(id, subscription: subscription))
        }
        guard slotCursor.slot.kind == .video else { return }
        let publication = encodings[encoding].publication
        var from: LayerName?
        if previous != .max, encodings.isOccupied(Int(previous)),
            encodings[Int(previous)].publication == publication
        {
            from = name(of: Int(previous), previousSpatial)
        }
        let to = name(of: encoding, spatial)
        guard from != to else { return }
        emit(.layerChanged(id, subscription: subscription, from: from, to: to))
    }

    /// Returns the highest spatial layer sent of the slot's current encoding; `.max` if it has only
    /// one.
    private func highestSent(_ slot: borrowing Slot) -> UInt8 {
        let span = slot.rewriter.current
        let encoding = Int(span.encoding)
        guard span.encoding != .max, encodings.isOccupied(encoding) else { return .max }
        let highest = encodings[encoding].layers.highest.spatial
        return highest > 0 ? min(span.point.spatial, highest) : .max
    }

    private func name(of encoding: Int, _ spatial: UInt8) -> LayerName? {
        let names = publications[encodings[encoding].publication].configuration.encodings
        return LayerName(
            rid: names[encodings[encoding].position].rid,
            spatial: spatial == .max ? nil : Int(spatial)
        ).distinct
    }
}

extension Slot {
    /// Switches to another encoding of the same publication; returns whether it needs a keyframe.
    mutating func follow(_ best: Int32) -> Bool {
        switch source {
        case .idle:
            return false
        case .waiting:
            return true
        case .flowing(best), .switching(from: best, to: _):
            source = .flowing(best)
            return false
        case .flowing(let current), .switching(from: let current, to: _):
            source = .switching(from: current, to: best)
            return true
        }
    }
}
