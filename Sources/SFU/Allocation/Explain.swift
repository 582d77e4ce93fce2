import RTP
import WorkerInterface

/// Explanation of the layer that a subscriber is sent.
extension Core {
    func explain(_ id: SlotID, at now: Instant) -> LayerExplanation? {
        guard slots.contains(id) else { return nil }
        let slot = Int(id.index)
        let publication = Int(slots[slot].publication)
        guard publication >= 0, slots[slot].kind == .video else { return nil }
        let given = slotRecords[slot].share.value.given
        let limit = given == nil && publications[publication].options.isEmpty
        return LayerExplanation(
            sent: sentLayer(of: slot, now),
            offered: offeredLayers(of: publication, now),
            names: publications[publication].configuration.encodings.map(\.rid),
            estimate: transports[slots[slot].transport].bandwidth?.usableEstimate(at: now),
            share: given?.bitrate ?? 0,
            limit: limit ? .publisher : slotRecords[slot].share.value.limit,
            needed: slotRecords[slot].share.value.needed > 0
                ? slotRecords[slot].share.value.needed : nil,
            retryAt: slotRecords[slot].share.value.retry(after: now),
            decisions: slotRecords[slot].share.value.recentDecisions
        )
    }

    private func offeredLayers(of publication: Int, _ now: Instant) -> [LayerDescription] {
        var layers: [LayerDescription] = []
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            let whole = layer(at: position, of: publication, now: now)
            guard encodings[encoding].layers.highest.spatial > 0 else {
                layers.append(whole)
                continue
            }
            for spatial in 0...encodings[encoding].layers.highest.spatial {
                guard let found = spatialLayer(spatial, of: encoding, within: whole, now) else {
                    continue
                }
                layers.append(found)
            }
        }
        return layers
    }

    /// Returns one spatial layer at its full frame rate; `nil` if none of it is received.
    private func spatialLayer(
        _ spatial: UInt8,
        of encoding: Int,
        within whole: LayerDescription,
        _ now: Instant
    ) -> LayerDescription? {
        let live = encodings[encoding].layers.live
        var temporal: UInt8 = 3
        while !live.contains(LayerPoint(spatial: spatial, temporal: temporal)) {
            guard temporal > 0 else { return nil }
            temporal -= 1
        }
        let size = encodings[encoding].layers.size(of: spatial)
        let point = LayerPoint(spatial: spatial, temporal: temporal)
        let rate = encodings[encoding].layers.rate(of: point, at: now)
        var found = whole
        found.width = Int(size.width)
        found.height = Int(size.height)
        found.frameRate = rate.frameRate
        found.bitrate = rate.bitrate
        return found
    }

    /// Returns the layer forwarded now, as measured.
    ///
    /// It differs from the allotted one while a switch awaits its keyframe.
    private func sentLayer(of slot: Int, _ now: Instant) -> LayerDescription? {
        guard slots[slot].isOpen else { return nil }
        let encoding: Int32
        switch slots[slot].source {
        case .idle, .waiting: return nil
        case .flowing(let flowing): encoding = flowing
        case .switching(let from, to: _): encoding = from
        }
        let publication = Int(slots[slot].publication)
        let point = slots[slot].rewriter.current.point
        var found = layer(
            at: encodings[Int(encoding)].position,
            of: publication,
            now: now
        )
        for index in 0..<publications[publication].options.count {
            let option = publications[publication].options[index]
            guard option.target.encoding == encoding,
                option.target.spatial <= point.spatial, option.target.temporal <= point.temporal
            else { continue }
            found.width = option.width
            found.height = option.height
            found.frameRate = option.frameRate
            found.bitrate = option.bitrate
        }
        return found
    }
}
