import RTP
import WorkerInterface

/// Step 6: review of the layers on offer, and layer selection for each subscriber.
extension Core {
    /// Interval between layer reviews.
    static let layersMilliseconds: Int64 = 100

    /// Reviews the layers of all video publications of a transport.
    mutating func reviewLayers(of transport: Int, at now: Instant) {
        var isBusy = false
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            guard publications[publication].kind == .video else { continue }
            if review(publication, at: now) { isBusy = true }
            reportLayers(of: publication, at: now)
        }
        transports[transport].layersDue =
            isBusy ? now.advanced(milliseconds: Self.layersMilliseconds) : nil
    }

    /// Measures a publication's layers, and selects layers again if they have changed.
    ///
    /// Returns whether another review is needed.
    mutating func review(_ publication: Int, at now: Instant) -> Bool {
        var isBusy = false
        var isNews = false
        // A closed publication's packets are not inspected, so its layers stay as they were.
        let isOpen = publications[publication].isOpen
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            if encodings[encoding].rate.measure(at: now) { isNews = true }
            if isOpen, encodings[encoding].layers.measure(at: now) { isNews = true }
            let isLive = encodings[encoding].isActive(at: now)
            if isLive != encodings[encoding].isLive { isNews = true }
            if !isLive,
                isResumable(position, of: publication, at: now) != encodings[encoding].isOffered
            {
                isNews = true
            }
            if isLive { isBusy = true }
        }
        if isNews { refreshLayers(of: publication, at: now) }
        let isPending = reviewInterruption(of: publication, isLive: isBusy, at: now)
        return reviewDemand(of: publication, at: now) || isPending || isBusy
    }

    /// Rebuilds the list of layers on offer, and selects one for each subscriber.
    mutating func refreshLayers(of publication: Int, at now: Instant) {
        guard publications[publication].kind == .video, publications[publication].isOpen else {
            return
        }
        var isLive = false
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            encodings[encoding].isLive = encodings[encoding].isActive(at: now)
            encodings[encoding].isOffered =
                encodings[encoding].isLive || isResumable(position, of: publication, at: now)
            if encodings[encoding].isLive {
                isLive = true
                encodings[encoding].resumeRequestedAt = nil
            }
        }
        // A publication without any live encoding keeps its options for when it resumes.
        guard isLive else { return }
        var options = UncountedArray<LayerOption>(capacity: LayerOption.maximumCount)
        self.options(of: publication, at: now, into: &options)
        for index in 0..<options.count {
            options[index].steady(by: publications[publication].options)
        }
        publications[publication].options.removeAll()
        for index in 0..<options.count {
            publications[publication].options.append(options[index])
            let encoding = Int(options[index].target.encoding)
            if encodings[encoding].isLive { encodings[encoding].lastOption = options[index] }
        }
        for index in 0..<publications[publication].subscribers.count {
            chooseLayer(of: Int(publications[publication].subscribers[index]), at: now)
        }
    }

    /// Requests a keyframe of this encoding for a subscriber, not earlier than `notBefore`.
    mutating func requestKeyframe(of encoding: Int, at now: Instant, notBefore: Instant? = nil) {
        let bitrate = encodings[encoding].rate.bitrate
        let outcome = encodings[encoding].keyframes
            .want(at: now, bitrate: bitrate, notBefore: notBefore ?? now)
        statistics.keyframeRequestCounts.count(outcome)
        scheduleKeyframe(of: encoding)
    }

    /// Schedules the keyframe request to the publisher, or to the origin worker of a mirrored
    /// publication.
    mutating func scheduleKeyframe(of encoding: Int) {
        guard let due = encodings[encoding].keyframes.deadline else { return }
        guard let transport = publications[encodings[encoding].publication].transport else {
            return scheduleMirrors(by: due)
        }
        if transports[transport].keyframeDue.map({ $0 > due }) ?? true {
            transports[transport].keyframeDue = due
            transports.schedule(transport, at: now)
        }
    }

    /// Reports a noticeable change of a publication's layers to the control plane.
    private mutating func reportLayers(of publication: Int, at now: Instant) {
        var layers: [LayerDescription] = []
        var codec: Codec?
        for position in 0..<publications[publication].encodings.count {
            layers.append(layer(at: position, of: publication, now: now))
            let encoding = Int(publications[publication].encodings[position])
            if encodings[encoding].isLive { codec = encodings[encoding].mapping?.format.codec }
        }
        guard layers.differ(notablyFrom: publications[publication].reported) else { return }
        // After a change of encodings none is live until its first packet arrives.
        guard let codec = codec ?? publications[publication].reportedCodec else { return }
        publications[publication].reported = layers
        publications[publication].reportedCodec = codec
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
