import RTP
import WorkerInterface

/// Step 6: what of a publication could be sent, and what each of its viewers is to get of it.
extension Core {
    /// How often layers are looked at.
    static let layersMilliseconds: Int64 = 100

    /// Looks at the layers of all publications of a transport.
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

    /// Measures a publication's layers, and chooses anew where they are others than before.
    ///
    /// Returns whether it is to be looked at again.
    mutating func review(_ publication: Int, at now: Instant) -> Bool {
        var isBusy = false
        var isNews = false
        // Behind a closed gate nothing is seen of layers: they stay as they were.
        let isOpen = publications[publication].isOpen
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            if encodings[encoding].rate.measure(at: now) { isNews = true }
            if isOpen, encodings[encoding].layers.measure(at: now) { isNews = true }
            let isLive = encodings[encoding].isActive(at: now)
            if isLive != encodings[encoding].isLive { isNews = true }
            if !isLive, rests(position, of: publication, at: now) != encodings[encoding].isOffered {
                isNews = true
            }
            if isLive { isBusy = true }
        }
        if isNews { refreshLayers(of: publication, at: now) }
        let isPending = reviewInterruption(of: publication, isLive: isBusy, at: now)
        return reviewWanted(of: publication, at: now) || isPending || isBusy
    }

    /// Makes the list of what could be sent anew, and chooses for each viewer.
    mutating func refreshLayers(of publication: Int, at now: Instant) {
        guard publications[publication].kind == .video, publications[publication].isOpen else {
            return
        }
        var isLive = false
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            encodings[encoding].isLive = encodings[encoding].isActive(at: now)
            encodings[encoding].isOffered =
                encodings[encoding].isLive || rests(position, of: publication, at: now)
            if encodings[encoding].isLive {
                isLive = true
                encodings[encoding].askedFor = nil
            }
        }
        // What has fallen silent altogether goes on as it was when it comes again.
        guard isLive else { return }
        var options = List<LayerOption>(capacity: LayerOption.maximumCount)
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

    /// A viewer cannot go on without a keyframe of this encoding; sooner than `notBefore` it would
    /// be of no use.
    mutating func wantKeyframe(of encoding: Int, at now: Instant, notBefore: Instant? = nil) {
        let bitrate = encodings[encoding].rate.bitrate
        let outcome = encodings[encoding].keyframes
            .want(at: now, bitrate: bitrate, notBefore: notBefore ?? now)
        statistics.keyframeWishes.count(outcome)
        scheduleKeyframe(of: encoding)
    }

    /// Has the publisher asked when it is time.
    mutating func scheduleKeyframe(of encoding: Int) {
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
        var codec: Codec?
        for position in 0..<publications[publication].encodings.count {
            layers.append(layer(at: position, of: publication, now: now))
            let encoding = Int(publications[publication].encodings[position])
            if encodings[encoding].isLive { codec = encodings[encoding].mapping?.format.codec }
        }
        guard layers.differ(notablyFrom: publications[publication].reported) else { return }
        // After a change of encodings none is live until its first packet.
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
