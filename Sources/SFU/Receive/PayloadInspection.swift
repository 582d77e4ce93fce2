import RTP
import WorkerInterface

/// Payload inspection for keyframes, picture IDs and resolutions.
///
/// A packet with an unreadable descriptor is forwarded as an ordinary one: the payload may be
/// encrypted end to end.
extension Receiver {
    /// Inspects the payload; a packet of padding only is kept to close its gap in the numbering.
    mutating func inspectPayload(of packet: inout ReceivedPacket) throws(DropReason) {
        guard let isNews = try inspectMedia(of: &packet) else { return }
        packet.layers = noteVideo(
            packet.info,
            packet.place,
            isNews: isNews,
            encoding: packet.encoding
        )
    }

    /// Inspects the payload, but counts no video packet for its layers; returns whether a
    /// resolution has changed, or `nil` for audio and padding.
    @inline(__always)
    mutating func inspectMedia(of packet: inout ReceivedPacket) throws(DropReason) -> Bool? {
        guard packet.info.payloadLength > 0 else {
            packet.info.flags.insert(.skipped)
            packet.info.points = .none
            packet.info.drop = .padding
            return nil
        }
        let encoding = packet.encoding
        let codec = try updateCodec(of: encoding, payloadType: packet.info.payloadType)
        let start = Int(packet.info.payloadOffset)
        let end = start + Int(packet.info.payloadLength)
        let packets = pool.packets
        let bytes = packets.bytes(at: packet.place, count: end)
        let payload = bytes.extracting(start..<end)
        let size = packet.info.inspect(bytes, payload: payload, codec: codec)
        guard codec.kind.isVideo else { return nil }
        var isNews = false
        if let size { isNews = noteSize(size, codec: codec, payload, encoding: encoding) }
        let highest = encodings[encoding].layers.highest.temporal
        let temporal = LayerPoint(index: Int(packet.info.layer)).temporal
        if packet.info.switches != .none, temporal >= highest {
            // At the highest temporal layer, the switching point counts for all temporal layers.
            packet.info.switches.formUnion(LayerPoints(from: 0, highest))
        }
        if packet.info.dependencyDescriptor.length > 0,
            readDependencies(&packet.info, place: packet.place, encoding: encoding)
        {
            isNews = true
        }
        return isNews
    }

    /// Returns the codec of a media payload type, which becomes that of the encoding.
    private mutating func updateCodec(
        of encoding: EncodingIndex,
        payloadType: UInt8
    ) throws(DropReason) -> Codec {
        if encodings[encoding].mapping?.payloadType != payloadType {
            let publication = encodings[encoding].publication
            guard let mapping = publications[publication].mapping(of: payloadType),
                mapping.payloadType == payloadType
            else { throw .unknownPayloadType }
            encodings[encoding].mapping = mapping
        }
        guard let codec = encodings[encoding].mapping?.format.codec else {
            throw .unknownPayloadType
        }
        return codec
    }

    /// Stores an encoding's resolution; returns whether it has changed.
    private mutating func noteSize(
        _ size: PictureSize,
        codec: Codec,
        _ payload: Span<UInt8>,
        encoding: EncodingIndex
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

    /// Counts a video packet for its layers; `isNews` if a resolution has changed.
    mutating func noteVideo(
        _ info: PacketInfo,
        _ place: PacketPlace,
        isNews: Bool,
        encoding: EncodingIndex
    ) -> LayerNews {
        if info.layersAllocation.length > 0 { noteAllocation(info, place, encoding: encoding) }
        encodings[encoding].nestsLayers = info.flags.contains(.nestsLayers)
        let length = Int(info.payloadOffset) + Int(info.payloadLength)
        let isNewLayer = encodings[encoding].layers.receive(info, bytes: length)
        let isBack = !encodings[encoding].isLive
        return LayerNews(
            mayChangeOffers: isNews || isNewLayer || isBack,
            resumesEncoding: isBack
        )
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
