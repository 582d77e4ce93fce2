import RTP
import WorkerInterface

/// Reports of a publication's layers to the control plane, and the timer of their review.
extension Receiver {
    /// Interval between layer reviews.
    static let layersMilliseconds: Int64 = 100

    /// Schedules a review of a publication's layers.
    mutating func scheduleReview(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        let due = now.advanced(milliseconds: Self.layersMilliseconds)
        guard let transport = publications[publication].transport else {
            if !publications[publication].isBusy {
                publications[publication].isBusy = true
                scheduleMirrors(by: due)
            }
            return
        }
        if transports[transport].layersDue == nil {
            transports[transport].layersDue = due
            transports.schedule(transport, at: now)
        }
    }

    /// Reports a noticeable change of a publication's layers to the control plane.
    mutating func reportLayers(of publication: PublicationIndex, at now: Instant) {
        var layers: [LayerDescription] = []
        var codec: Codec?
        for position in 0..<publications[publication].encodings.count {
            layers.append(layer(at: position, of: publication, now: now))
            let encoding = publications[publication].encodings[position]
            if encodings[encoding].isLive { codec = encodings[encoding].mapping?.format.codec }
        }
        guard layers.differ(notablyFrom: publications[publication].reported) else { return }
        // After a change of encodings none is live until its first packet arrives.
        guard let codec = codec ?? publications[publication].reportedCodec else { return }
        publications[publication].reported = layers
        publications[publication].reportedCodec = codec
        events.append(.layers(publications.handle(at: publication), codec: codec, layers))
    }

    func layer(at position: Int, of publication: PublicationIndex, now: Instant) -> LayerDescription
    {
        let encoding = publications[publication].encodings[position]
        return LayerDescription(
            rid: publications[publication].configuration.encodings[position].rid,
            width: encodings[encoding].width,
            height: encodings[encoding].height,
            frameRate: encodings[encoding].rate.frameRate,
            bitrate: encodings[encoding].rate.bitrate,
            active: encodings[encoding].isActive(at: now)
        )
    }
}

extension [LayerDescription] {
    /// Whether subscribers would notice: a layer more or less, another size, double or half the
    /// bitrate.
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
