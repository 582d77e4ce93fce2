internal import RTP

/// Step 6: which encoding of a publication its viewers get: the highest that is live.
extension Core {
    /// How often layers are looked at.
    static let layersMilliseconds: Int64 = 100

    /// Looks at the layers of all publications of a transport.
    mutating func reviewLayers(of transport: Int, at now: Instant) {
        var isBusy = false
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            guard publications[publication].configuration.kind == .video else { continue }
            if selectBest(of: publication, at: now) { isBusy = true }
            reportLayers(of: publication, at: now)
        }
        transports[transport].layersDue =
            isBusy ? now.advanced(milliseconds: Self.layersMilliseconds) : nil
    }

    /// Returns whether any encoding is live.
    private mutating func selectBest(of publication: Int, at now: Instant) -> Bool {
        var best: Int32 = -1
        for position in 0..<publications[publication].encodings.count {
            let candidate = publications[publication].encodings[position]
            encodings[Int(candidate)].rate.measure(at: now)
            guard encodings[Int(candidate)].isActive(at: now) else { continue }
            if best < 0 || isHigher(Int(candidate), than: Int(best)) { best = candidate }
        }
        guard best >= 0 else { return false }
        if best != publications[publication].best {
            retarget(publication, to: best, at: now)
        }
        return true
    }

    /// More pixels are higher; where sizes are unknown, more bits, then the later in the offer.
    private func isHigher(_ left: Int, than right: Int) -> Bool {
        let leftPixels = encodings[left].width * encodings[left].height
        let rightPixels = encodings[right].width * encodings[right].height
        if leftPixels != rightPixels, leftPixels > 0, rightPixels > 0 {
            return leftPixels > rightPixels
        }
        // A tenth of difference is noise; sizes may be equal by configuration.
        let leftRate = encodings[left].rate.bitrate
        let rightRate = encodings[right].rate.bitrate
        if abs(leftRate - rightRate) * 10 > max(leftRate, rightRate) {
            return leftRate > rightRate
        }
        return encodings[left].position > encodings[right].position
    }

    /// Sends all viewers on to the best encoding, at its next keyframe.
    mutating func retarget(_ publication: Int, to best: Int32, at now: Instant) {
        publications[publication].best = best
        var isWaiting = false
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            if slots[slot].follow(best) { isWaiting = true }
        }
        if isWaiting { wantKeyframe(of: Int(best), at: now) }
    }

    /// A viewer cannot go on without a keyframe of this encoding.
    mutating func wantKeyframe(of encoding: Int, at now: Instant) {
        encodings[encoding].keyframes.want(at: now)
        guard let due = encodings[encoding].keyframes.deadline else { return }
        guard let transport = publications[encodings[encoding].publication].transport else {
            return scheduleMirrors(by: due)
        }
        if transports[transport].keyframeDue.map({ $0 > due }) ?? true {
            transports[transport].keyframeDue = due
            schedule(transport)
        }
    }

    /// Tells the control plane when a publication's layers look different.
    private mutating func reportLayers(of publication: Int, at now: Instant) {
        var layers: [LayerDescription] = []
        for position in 0..<publications[publication].encodings.count {
            layers.append(layer(at: position, of: publication, now: now))
        }
        guard layers.differ(notablyFrom: publications[publication].reported) else { return }
        // After a change of encodings none is live until its first packet.
        let live = Int(publications[publication].best)
        guard live >= 0, let codec = encodings[live].mapping?.format.codec else { return }
        publications[publication].reported = layers
        emit(.layers(publications.handle(at: publication), codec: codec, layers))
    }

    func layer(at position: Int, of publication: Int, now: Instant) -> LayerDescription {
        let encoding = Int(publications[publication].encodings[position])
        return LayerDescription(
            rid: publications[publication].configuration.encodings[position].rid,
            width: encodings[encoding].width,
            height: encodings[encoding].height,
            frameRate: encodings[encoding].rate.frameRate,
            bitrate: encodings[encoding].rate.bitrate,
            active: encodings[encoding].isActive(at: now)
        )
    }

    /// What a slot's viewer saw before does not count any more.
    mutating func forgetLayer(of slot: Int) {
        slots[slot].isLayerNoted = false
        slotRecords[slot].encodingSent = .max
    }

    /// The slot's viewer sees another layer from this packet on, or sees its first packet.
    mutating func noteLayer(_ place: Int32, of outlet: inout Outlet) {
        let slot = outlet.index
        let encoding = Int(pool[place].encoding)
        let previous = slotRecords[slot].encodingSent
        outlet.slot.isLayerNoted = true
        slotRecords[slot].encodingSent = UInt32(encoding)
        guard previous != encoding else { return }
        let subscription = slotRecords[slot].subscription
        let id = slots.handle(at: slot)
        if !slotRecords[slot].hasStarted {
            slotRecords[slot].hasStarted = true
            emit(.started(id, subscription: subscription))
        }
        guard outlet.slot.kind == .video else { return }
        let publication = encodings[encoding].publication
        let names = publications[publication].configuration.encodings
        let to = names[encodings[encoding].position].rid
        var from: String?
        if previous != .max, encodings.isOccupied(Int(previous)),
            encodings[Int(previous)].publication == publication
        {
            from = names[encodings[Int(previous)].position].rid
        }
        guard from != to else { return }
        emit(.layerChanged(id, subscription: subscription, from: from, to: to))
    }
}

extension Slot {
    /// Turns to another encoding of the same publication; returns whether it needs a keyframe.
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

extension [LayerDescription] {
    /// Whether viewers would notice: a layer more or less, another size, twice or half the rate.
    func differ(notablyFrom others: Self) -> Bool {
        guard count == others.count else { return true }
        return zip(self, others).contains { layer, other in
            layer.active != other.active || layer.width != other.width
                || layer.height != other.height
                || Swift.abs(layer.bitrate - other.bitrate) * 2
                    > Swift.max(layer.bitrate, other.bitrate)
        }
    }
}
