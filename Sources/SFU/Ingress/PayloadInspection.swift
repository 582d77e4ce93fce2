internal import RTP

/// Step 5: what the payload says that forwarding needs: keyframes, picture ids, sizes.
///
/// A descriptor that cannot be read makes a packet unremarkable, never fatal: end-to-end
/// encrypted payloads are forwarded as they are.
extension Core {
    /// Returns why the packet goes no further.
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
        let size = info.inspect(packet, payload: packet.extracting(start..<end), codec: codec)
        if codec.kind == .video {
            noteVideo(info, size: size, encoding: encoding)
        }
        return nil
    }

    private mutating func noteVideo(
        _ info: PacketInfo,
        size: Resolution?,
        encoding: Int
    ) {
        if info.flags.contains(.keyframeStart) { encodings[encoding].keyframes.satisfy() }
        if let size, size.width > 0, size.height > 0 {
            encodings[encoding].width = Int(size.width)
            encodings[encoding].height = Int(size.height)
        }
        let publication = encodings[encoding].publication
        if publications[publication].best < 0 {
            let encoding = publications[publication].encodings[encodings[encoding].position]
            let isStart = info.flags.contains(.keyframeStart)
            begin(publication, with: encoding, isKeyframe: isStart, at: info.arrival)
        }
        guard let transport = publications[publication].transport else { return }
        if transports[transport].layersDue == nil {
            transports[transport].layersDue = info.arrival.advanced(
                milliseconds: Self.layersMilliseconds
            )
            schedule(transport)
        }
    }

    /// The first packet has come: its encoding is the best until others have shown themselves.
    mutating func begin(
        _ publication: Int,
        with encoding: Int32,
        isKeyframe: Bool,
        at now: Instant
    ) {
        publications[publication].best = encoding
        // Viewers that were there before the publisher have had nobody to ask.
        for index in 0..<publications[publication].subscribers.count where !isKeyframe {
            wantKeyframe(forSlot: Int(publications[publication].subscribers[index]), at: now)
        }
    }
}

extension PacketInfo {
    /// Notes what rewriting and gating need; returns the picture's size where the packet tells.
    mutating func inspect(
        _ packet: Span<UInt8>,
        payload: Span<UInt8>,
        codec: Codec
    ) -> Resolution? {
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

    private mutating func inspectVP8(_ payload: Span<UInt8>) -> Resolution? {
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
        guard descriptor.isKeyframeStart(payload) else { return nil }
        flags.insert(.keyframeStart)
        return descriptor.resolution(payload)
    }

    private mutating func inspectVP9(_ payload: Span<UInt8>) -> Resolution? {
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
        guard descriptor.isKeyframeStart else { return nil }
        flags.insert(.keyframeStart)
        return descriptor.largestResolution
    }

    private mutating func inspectH264(_ payload: Span<UInt8>) -> Resolution? {
        guard H264Payload.isKeyframeStart(payload) else { return nil }
        flags.insert(.keyframeStart)
        return H264Payload.resolution(payload)
    }

    private mutating func inspectAV1(_ packet: Span<UInt8>, payload: Span<UInt8>) -> Resolution? {
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
