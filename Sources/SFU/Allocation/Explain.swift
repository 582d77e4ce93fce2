import RTP
import WorkerInterface

/// Explanation of the layer that a subscriber is sent.
extension LayerAllocator {
    func explain(
        _ id: SlotID,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> LayerExplanation? {
        guard forwarder.slots.contains(id) else { return nil }
        let slot = id.place
        guard let publication = forwarder.slots[slot].publication,
            forwarder.slots[slot].kind == .video
        else { return nil }
        let given = shares[slot].value.given
        let isEmpty =
            given == nil && receiver.publications[publication].options.isEmpty
            && receiver.publications[publication].aboveCap != .all
        let isByLink = isLimitedByLink(slot, at: given, of: publication, receiver, forwarder)
        let limit =
            switch shares[slot].value.limit {
            case .none where isByLink, .publisher where isByLink: LayerLimit.link
            case let limit: isEmpty ? isByLink ? .link : .publisher : limit
            }
        var found = LayerExplanation(
            sent: sentLayer(of: slot, now, receiver, forwarder),
            offered: offeredLayers(of: publication, now, receiver),
            names: receiver.publications[publication].configuration.encodings.map(\.rid),
            estimate: transports[forwarder.slots[slot].transport].bandwidth?.usableEstimate(
                at: now
            ),
            share: given?.bitrate ?? 0,
            limit: limit,
            needed: shares[slot].value.needed > 0
                ? shares[slot].value.needed : nil,
            retryAt: shares[slot].value.retry(after: now),
            decisions: shares[slot].value.recentDecisions
        )
        if forwarder.slotRecords[slot].freezes.isMade {
            found.freezes = forwarder.slotRecords[slot].freezes.value.account(at: now)
        }
        return found
    }

    private func offeredLayers(
        of publication: PublicationIndex,
        _ now: Instant,
        _ receiver: borrowing Receiver
    ) -> [LayerDescription] {
        var layers: [LayerDescription] = []
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            let whole = receiver.layer(at: position, of: publication, now: now)
            guard receiver.encodings[encoding].layers.highest.spatial > 0 else {
                layers.append(whole)
                continue
            }
            for spatial in 0...receiver.encodings[encoding].layers.highest.spatial {
                guard let found = spatialLayer(spatial, of: encoding, within: whole, now, receiver)
                else {
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
        of encoding: EncodingIndex,
        within whole: LayerDescription,
        _ now: Instant,
        _ receiver: borrowing Receiver
    ) -> LayerDescription? {
        let live = receiver.encodings[encoding].layers.live
        var temporal: UInt8 = 3
        while !live.contains(LayerPoint(spatial: spatial, temporal: temporal)) {
            guard temporal > 0 else { return nil }
            temporal -= 1
        }
        let size = receiver.encodings[encoding].layers.size(of: spatial)
        let point = LayerPoint(spatial: spatial, temporal: temporal)
        let rate = receiver.encodings[encoding].layers.rate(of: point, at: now)
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
    private func sentLayer(
        of slot: SlotIndex,
        _ now: Instant,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> LayerDescription? {
        guard forwarder.slots[slot].isOpen,
            let publication = forwarder.slots[slot].publication
        else { return nil }
        let encoding: EncodingIndex
        switch forwarder.slots[slot].source {
        case .idle, .waiting: return nil
        case .flowing(let flowing): encoding = flowing
        case .switching(let from, to: _): encoding = from
        }
        let point = forwarder.slots[slot].rewriter.current.point
        var found = receiver.layer(
            at: receiver.encodings[encoding].position,
            of: publication,
            now: now
        )
        for index in 0..<receiver.publications[publication].options.count {
            let option = receiver.publications[publication].options[index]
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
