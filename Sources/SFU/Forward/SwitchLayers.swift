import RTP
import WorkerInterface

/// Switches of slots to other layers, and what their subscribers are told of them.
extension Forwarder {
    /// Switches a slot to another target.
    ///
    /// A switch up happens at the next keyframe or decodable switch point, a switch down at once
    /// where the codec allows it. The present layer is forwarded until then, so the picture does
    /// not freeze; `bridge` is the highest temporal layer of it that is. `keyframeAt` is the
    /// earliest time for a keyframe request, if not at once.
    mutating func retarget(
        _ slot: SlotIndex,
        at target: LayerTarget?,
        at now: Instant,
        keyframeAt: Instant? = nil,
        bridge: UInt8 = 3,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        let isOther = target != slotRecords[slot].target
        slotRecords[slot].target = target
        guard let target else {
            let isKnown = slots[slot].publication.map {
                !receiver.publications[$0].options.isEmpty
                    || receiver.publications[$0].aboveCap == .all
            }
            if slotRecords[slot].isContinued, isKnown == false { return }
            if slots[slot].isOpen { slots[slot].source = .waiting }
            return
        }
        slotRecords[slot].isContinued = false
        slots[slot].point = point(of: target, receiver)
        if isOther { slotRecords[slot].bridge = bridge }
        if slotRecords[slot].encodingSent != nil,
            slotRecords[slot].spatialSent != highestSent(slots[slot], receiver)
        {
            // The publisher has added or removed a spatial layer.
            slots[slot].isLayerNoted = false
        }
        let isWaiting =
            slots[slot].follow(target.encoding) || needsKeyframe(slot, for: target, receiver)
        if !isWaiting { slotRecords[slot].isClimbing = false }
        // A pending request is not repeated: repeated requests would look like a burst of new ones.
        let isSaid = !isOther && receiver.encodings[target.encoding].keyframes.isWanted
        if isWaiting, !isSaid {
            requestKeyframe(
                for: target,
                slot: slot,
                at: now,
                notBefore: keyframeAt ?? now,
                &transports,
                &receiver
            )
        }
    }

    /// Stops what a slot is sent of a picture that is larger than a role permits, be it the
    /// publisher's or the subscriber's; returns whether there was any.
    ///
    /// The slot waits for a keyframe then. The switch to a permitted layer would go on until that
    /// layer's keyframe, or to the next whole picture, which a publisher may withhold.
    @discardableResult
    mutating func stopAboveCaps(
        _ slot: SlotIndex,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard isSentAboveCaps(slot, receiver) else { return false }
        slots[slot].source = .waiting
        dropPaced(of: slot, transports)
        return true
    }

    private func isSentAboveCaps(_ slot: SlotIndex, _ receiver: borrowing Receiver) -> Bool {
        guard let encoding = slots[slot].encodingForwarded else { return false }
        let span = slots[slot].rewriter.current
        // A warm picture that is on its way has the lowest layers only.
        let spatial = span.encoding.value == encoding ? span.point.spatial : 0
        return isAboveCaps(slot, spatial, of: encoding, receiver)
    }

    /// Whether a role forbids a slot pictures of an encoding up to this spatial layer.
    private func isAboveCaps(
        _ slot: SlotIndex,
        _ spatial: UInt8,
        of encoding: EncodingIndex,
        _ receiver: borrowing Receiver
    ) -> Bool {
        let highest = receiver.encodings[encoding].layers.highest.spatial
        let size = receiver.encodings[encoding].layers.size(of: min(spatial, highest))
        let publication = receiver.encodings[encoding].publication
        return !receiver.publications[publication].configuration.cap.admits(size)
            || !slotRecords[slot].roleCap.admits(size)
    }

    /// Returns the target's layers, or the maximum where the target includes the highest ones.
    ///
    /// Layers that the publisher adds later are then evaluated before their first packet is
    /// forwarded.
    private func point(of target: LayerTarget, _ receiver: borrowing Receiver) -> LayerPoint {
        let highest = receiver.encodings[target.encoding].layers.highest
        return LayerPoint(
            spatial: target.spatial >= highest.spatial ? 7 : target.spatial,
            temporal: target.temporal >= highest.temporal ? 3 : target.temporal
        )
    }

    /// Whether a switch within the same encoding needs a keyframe.
    ///
    /// A higher spatial layer does. A lower one does not if it is nested in the layers sent now.
    private func needsKeyframe(
        _ slot: SlotIndex,
        for target: LayerTarget,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard case .flowing(target.encoding) = slots[slot].source else { return false }
        let encoding = target.encoding
        let span = slots[slot].rewriter.current
        guard span.encoding.value == target.encoding else { return false }
        let highest = receiver.encodings[encoding].layers.highest.spatial
        let sent = min(span.point.spatial, highest)
        let wanted = min(target.spatial, highest)
        return wanted > sent || wanted < sent && !receiver.encodings[encoding].nestsLayers
    }

    private mutating func requestKeyframe(
        for target: LayerTarget,
        slot: SlotIndex,
        at now: Instant,
        notBefore: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        if case .waiting = slots[slot].source, notBefore <= now {
            requestKeyframe(forSlot: slot, at: now, &transports, &receiver)
        } else if slotRecords[slot].isClimbing {
            receiver.requestKeyframe(toClimbTo: target.encoding, at: now, &transports)
        } else {
            receiver.requestKeyframe(
                of: target.encoding,
                at: now,
                notBefore: notBefore,
                &transports
            )
        }
    }

    /// Makes the encoding's subscribers wait for a keyframe, as they cannot decode past dropped
    /// packets.
    mutating func holdViewers(of encoding: EncodingIndex, _ receiver: inout Receiver) {
        guard receiver.encodings[encoding].kind.isVideo else { return }
        let publication = receiver.encodings[encoding].publication
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            switch slots[slot].source {
            case .flowing(encoding), .switching(from: encoding, to: _):
                slots[slot].source = .waiting
            case .idle, .waiting, .flowing, .switching: break
            }
        }
        for index in 0..<receiver.publications[publication].mirrors.count {
            receiver.publications[publication].mirrors[index].hasGap = true
        }
    }

    /// Sends nothing to subscribers whose picture is larger than a role permits, until layers are
    /// selected again.
    mutating func holdViewersAboveCaps(
        of publication: PublicationIndex,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) {
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            stopAboveCaps(slot, transports, receiver)
            guard slots[slot].isOpen, let target = slotRecords[slot].target,
                isAboveCaps(slot, slots[slot].point.spatial, of: target.encoding, receiver)
            else { continue }
            slotRecords[slot].target = nil
            slots[slot].source = .waiting
        }
    }

    /// Shows a slot that waits a warm picture, or requests a keyframe from the publisher, if the
    /// slot can be served.
    mutating func requestKeyframe(
        forSlot slot: SlotIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        guard slots[slot].kind == .video, slots[slot].isOpen,
            let publication = slots[slot].publication,
            transports[slots[slot].transport].canSend, case .waiting = slots[slot].source
        else { return }
        guard receiver.publications[publication].isOpen,
            let target = slotRecords[slot].target
        else { return }
        let isShown = showWarmPicture(
            in: slot,
            of: publication,
            upTo: target,
            at: now,
            &transports,
            &receiver
        )
        guard !isShown else { return }
        receiver.requestKeyframe(of: target.encoding, at: now, &transports)
        if slotRecords[slot].isFresh, let lowest = receiver.lowestLive(of: publication),
            lowest != target.encoding
        {
            // Whoever comes next has a warm picture, also if the publisher's encodings are apart.
            receiver.requestKeyframe(of: lowest, at: now, &transports)
        }
    }

    /// Clears the record of the layer that a slot last sent.
    mutating func forgetLayer(of slot: SlotIndex) {
        slots[slot].isLayerNoted = false
        slotRecords[slot].encodingSent = nil
    }

    /// Reports the first packet of a slot, or of another layer in it.
    mutating func noteLayer(
        _ place: PacketPlace,
        of slotCursor: inout SlotCursor,
        _ receiver: borrowing Receiver
    ) {
        let slot = slotCursor.index
        let encoding = receiver.pool[place].encoding
        let previous = slotRecords[slot].encodingSent
        let previousSpatial = slotRecords[slot].spatialSent
        let spatial = highestSent(slotCursor.slot, receiver)
        slotCursor.slot.isLayerNoted = true
        noteFlow(of: encoding, in: slot, receiver)
        slotRecords[slot].isFresh = false
        let isReached = slotRecords[slot].target.map { target in
            encoding == target.encoding && spatial >= target.spatial
        }
        if isReached == true { slotRecords[slot].isClimbing = false }
        slotRecords[slot].encodingSent = encoding
        slotRecords[slot].spatialSent = spatial
        guard previous != encoding || previousSpatial != spatial else { return }
        let subscription = slotRecords[slot].subscription
        let id = slots.handle(at: slot)
        if !slotRecords[slot].hasStarted {
            slotRecords[slot].hasStarted = true
            events.append(.started(id, subscription: subscription))
        }
        guard slotCursor.slot.kind == .video else { return }
        let publication = receiver.encodings[encoding].publication
        var from: LayerName?
        if let previous, receiver.encodings.isOccupied(previous),
            receiver.encodings[previous].publication == publication
        {
            from = name(of: previous, previousSpatial, receiver)
        }
        let to = name(of: encoding, spatial, receiver)
        guard from != to else { return }
        events.append(.layerChanged(id, subscription: subscription, from: from, to: to))
    }

    /// Stores what a slot carries, for the next process.
    mutating func noteFlow(
        of encoding: EncodingIndex,
        in slot: SlotIndex,
        _ receiver: borrowing Receiver
    ) {
        let publication = receiver.publications.handle(
            at: receiver.encodings[encoding].publication
        )
        repairs[slot].flow = SavedFlow(
            publication: publication.index,
            generation: publication.generation,
            encoding: OptionalIndex(encoding),
            epoch: receiver.encodings[encoding].epoch,
            homeEpoch: receiver.encodings[encoding].homeEpoch ?? 0,
            position: UInt8(clamping: receiver.encodings[encoding].position)
        )
    }

    /// Returns the highest spatial layer sent of the slot's current encoding; `.max` if it has only
    /// one.
    private func highestSent(_ slot: borrowing Slot, _ receiver: borrowing Receiver) -> UInt8 {
        let span = slot.rewriter.current
        guard let encoding = span.encoding.value, receiver.encodings.isOccupied(encoding) else {
            return .max
        }
        let highest = receiver.encodings[encoding].layers.highest.spatial
        return highest > 0 ? min(span.point.spatial, highest) : .max
    }

    private func name(
        of encoding: EncodingIndex,
        _ spatial: UInt8,
        _ receiver: borrowing Receiver
    ) -> LayerName? {
        let names = receiver.publications[receiver.encodings[encoding].publication].configuration
            .encodings
        return LayerName(
            rid: names[receiver.encodings[encoding].position].rid,
            spatial: spatial == .max ? nil : Int(spatial)
        ).distinct
    }
}

extension Slot {
    /// Encoding whose packets are forwarded, if any.
    var encodingForwarded: EncodingIndex? {
        switch source {
        case .idle, .waiting: nil
        case .flowing(let encoding), .switching(from: let encoding, to: _): encoding
        }
    }

    /// Switches to another encoding of the same publication; returns whether it needs a keyframe.
    mutating func follow(_ best: EncodingIndex) -> Bool {
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
