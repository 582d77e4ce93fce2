import RTP
import WorkerInterface

/// Step 7: payload inspection for keyframes, picture IDs and resolutions.
///
/// A packet with an unreadable descriptor is forwarded as an ordinary one: the payload may be
/// encrypted end to end.
extension Core {
    /// Inspects a packet's payload; returns the reason to drop it, or `nil`.
    mutating func inspect(
        _ info: inout PacketInfo,
        place: Int32,
        encoding: Int
    ) -> DropReason? {
        if encodings[encoding].mapping?.payloadType != info.payloadType {
            let publication = encodings[encoding].publication
            guard let mapping = publications[publication].mapping(of: info.payloadType),
                mapping.payloadType == info.payloadType
            else { return .unknownPayloadType }
            encodings[encoding].mapping = mapping
        }
        guard let codec = encodings[encoding].mapping?.format.codec else {
            return .unknownPayloadType
        }
        let start = Int(info.payloadOffset)
        let end = start + Int(info.payloadLength)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        let payload = packet.extracting(start..<end)
        let size = info.inspect(packet, payload: payload, codec: codec)
        guard codec.kind.isVideo else { return nil }
        var isNews = false
        if let size { isNews = noteSize(size, codec: codec, payload, encoding: encoding) }
        let highest = encodings[encoding].layers.highest.temporal
        if info.switches != .none, LayerPoint(index: Int(info.layer)).temporal >= highest {
            // At the highest temporal layer, the switching point counts for all temporal layers.
            info.switches.formUnion(LayerPoints(from: 0, highest))
        }
        if info.dependencyDescriptor.length > 0,
            readDependencies(&info, place: place, encoding: encoding)
        {
            isNews = true
        }
        noteVideo(info, place: place, isNews: isNews, encoding: encoding)
        return nil
    }

    /// Stores an encoding's resolution; returns whether it has changed.
    private mutating func noteSize(
        _ size: PictureSize,
        codec: Codec,
        _ payload: Span<UInt8>,
        encoding: Int
    ) -> Bool {
        guard size.width > 0, size.height > 0 else { return false }
        let isOther =
            encodings[encoding].width != Int(size.width)
            || encodings[encoding].height != Int(size.height)
        encodings[encoding].width = Int(size.width)
        encodings[encoding].height = Int(size.height)
        // AV1's dependency descriptor is read later and has each layer's resolution.
        guard codec != .av1 else { return isOther }
        guard codec == .vp9, let descriptor = VP9Descriptor(payload) else {
            return encodings[encoding].layers.set(LayerSize(size), of: 0) || isOther
        }
        for spatial in 0..<(descriptor.spatialLayerCount ?? 0) {
            guard let size = descriptor.resolution(ofLayer: spatial, in: payload) else { continue }
            _ = encodings[encoding].layers.set(LayerSize(size), of: UInt8(spatial))
        }
        return isOther
    }

    /// Counts a video packet for its layers; `isNews` if the layers on offer may have changed.
    mutating func noteVideo(_ info: PacketInfo, place: Int32, isNews: Bool, encoding: Int) {
        let publication = encodings[encoding].publication
        if info.layersAllocation.length > 0 { noteAllocation(info, place, encoding: encoding) }
        encodings[encoding].nestsLayers = info.flags.contains(.nestsLayers)
        let length = Int(info.payloadOffset) + Int(info.payloadLength)
        let isNewLayer = encodings[encoding].layers.receive(info, bytes: length)
        let isBack = !encodings[encoding].isLive
        if isNews || isNewLayer || isBack { refreshLayers(of: publication, at: info.arrival) }
        if isBack {
            encodings[encoding].keyframes.hear(at: info.arrival)
            scheduleKeyframe(of: encoding)
        }
        // Processed last, because a keyframe also answers the requests that the lines above have
        // made.
        encodings[encoding].keyframes.receive(info, bytes: length)
        scheduleReview(of: publication, at: info.arrival)
    }

    /// Schedules a review of a publication's layers.
    mutating func scheduleReview(of publication: Int, at now: Instant) {
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
}

extension PacketInfo {
    /// Records the fields for rewriting and gating; returns the picture's resolution if the packet
    /// carries it.
    mutating func inspect(
        _ packet: Span<UInt8>,
        payload: Span<UInt8>,
        codec: Codec
    ) -> PictureSize? {
        switch codec {
        case .opus:
            return nil
        case .red:
            inspectRED(payload)
            return nil
        case .vp8:
            return inspectVP8(payload)
        case .vp9:
            return inspectVP9(payload)
        case .h264:
            return inspectH264(payload)
        case .av1:
            return inspectAV1(packet, payload: payload)
        }
    }

    private mutating func inspectRED(_ payload: Span<UInt8>) {
        guard let red = REDPayload(payload) else { return }
        descriptorLength = UInt16(clamping: red.primaryHeaderOffset + 1)
        primaryOffset = UInt16(clamping: red.primaryOffset)
    }

    private mutating func inspectVP8(_ payload: Span<UInt8>) -> PictureSize? {
        guard let descriptor = VP8Descriptor(payload) else { return nil }
        if let picture = descriptor.pictureID {
            pictureID = picture
            pictureIDOffset = UInt16(clamping: descriptor.pictureIDOffset)
            if descriptor.hasLongPictureID { flags.insert(.longPictureID) }
            descriptorLength = UInt16(clamping: descriptor.length)
        }
        if let index = descriptor.tl0PictureIndex {
            tl0PictureIndex = index
            tl0PictureIndexOffset = UInt16(clamping: descriptor.tl0PictureIndexOffset)
            descriptorLength = UInt16(clamping: descriptor.length)
        }
        readLayers(descriptor)
        guard descriptor.isKeyframeStart(payload) else { return nil }
        flags.insert(.keyframeStart)
        return descriptor.resolution(payload)
    }

    private mutating func inspectVP9(_ payload: Span<UInt8>) -> PictureSize? {
        guard let descriptor = VP9Descriptor(payload) else { return nil }
        if let picture = descriptor.pictureID {
            pictureID = picture
            pictureIDOffset = UInt16(clamping: descriptor.pictureIDOffset)
            if descriptor.hasLongPictureID { flags.insert(.longPictureID) }
            descriptorLength = UInt16(clamping: descriptor.length)
        }
        if let index = descriptor.tl0PictureIndex {
            tl0PictureIndex = index
            tl0PictureIndexOffset = UInt16(clamping: descriptor.tl0PictureIndexOffset)
            descriptorLength = UInt16(clamping: descriptor.length)
        }
        readLayers(descriptor)
        guard descriptor.isKeyframeStart else { return nil }
        flags.insert(.keyframeStart)
        return descriptor.largestResolution
    }

    private mutating func inspectH264(_ payload: Span<UInt8>) -> PictureSize? {
        guard H264Payload.isKeyframeStart(payload) else { return nil }
        flags.insert(.keyframeStart)
        return H264Payload.resolution(payload)
    }

    private mutating func inspectAV1(_ packet: Span<UInt8>, payload: Span<UInt8>) -> PictureSize? {
        if let header = AV1AggregationHeader(payload), header.isKeyframeStart {
            flags.insert(.keyframeStart)
        }
        let start = Int(dependencyDescriptor.offset)
        let element = packet.extracting(start..<start + Int(dependencyDescriptor.length))
        guard let descriptor = DependencyDescriptor(element) else { return nil }
        pictureID = descriptor.frameNumber
        flags.insert(.frameNumbered)
        guard descriptor.attachesStructure, descriptor.startOfFrame else { return nil }
        var structure: DependencyStructure?
        guard FrameDependencies(element, structure: &structure) != nil else { return nil }
        return structure?.resolutions.last
    }
}
