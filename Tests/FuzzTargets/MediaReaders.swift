@testable import RTP

// Each function parses its input and reads every field.

func readPacket(_ bytes: Span<UInt8>) -> Int {
    guard case .some = Datagram(bytes), let packet = try? Packet(bytes) else { return 0 }
    var sum = packet.payload.count + Int(packet.timestamp) + packet.csrcCount
    var extensions = packet.extensions
    while let element = extensions.next() {
        let end = element.offset + element.length
        sum += bytes.extracting(element.offset..<end).count
    }
    return sum
}

func readRTCP(_ bytes: Span<UInt8>) -> Int {
    var sum = 0
    var blocks = RTCPBlocks(bytes)
    while let block = blocks.next() {
        if let report = try? SenderReport(block) { sum &+= Int(report.packets) }
        if let reports = try? ReceptionReports(block) {
            for index in 0..<reports.count { sum &+= Int(reports[index].jitter) }
        }
        if let description = try? SourceDescription(block) { sum &+= description.cname.count }
        if let goodbye = try? Goodbye(block) {
            for index in 0..<goodbye.count { sum &+= Int(goodbye[index].rawValue) }
        }
        if let nack = try? GenericNACK(block) {
            for index in 0..<nack.count { sum &+= Int(nack[index].bitmask) }
        }
        if let loss = try? PictureLossIndication(block) { sum &+= Int(loss.media.rawValue) }
        if let request = try? FullIntraRequest(block) {
            for index in 0..<request.count { sum &+= Int(request[index].number) }
        }
        if let estimate = try? ReceiverEstimatedBitrate(block) {
            for index in 0..<estimate.count { sum &+= Int(estimate[index].rawValue) }
        }
        if let time = try? ReceiverReferenceTime(block) {
            sum &+= Int(time.ntp.compact)
            let answer = try? LastReceiverTime.find(for: time.sender, in: block)
            sum &+= Int(answer?.delay ?? 0)
        }
        if var feedback = try? TransportFeedback(block) {
            while let status = feedback.nextArrived() { sum &+= Int(status.arrival) }
        }
    }
    return sum
}

func readSTUN(_ bytes: Span<UInt8>) -> Int {
    guard let message = try? STUNMessage(bytes) else { return 0 }
    var sum = message.username.count + Int(message.method) + (message.errorCode ?? 0)
    sum += message.isFingerprintValid ? 1 : 0
    sum &+= Int(message.priority ?? 0) + Int(message.mappedAddress?.port ?? 0)
    sum &+= Int(truncatingIfNeeded: message.iceControlled ?? message.iceControlling ?? 0)
    sum &+= message.integrityTag.count + message.unknownAttributes.count
    return sum
}

func readVP8(_ bytes: Span<UInt8>) -> Int {
    guard let descriptor = VP8Descriptor(bytes) else { return 0 }
    let isKeyframe = descriptor.isKeyframeStart(bytes)
    return descriptor.length + Int(descriptor.pictureID ?? 0) + (isKeyframe ? 1 : 0)
        + Int(descriptor.resolution(bytes)?.width ?? 0)
}

func readVP9(_ bytes: Span<UInt8>) -> Int {
    guard let descriptor = VP9Descriptor(bytes) else { return 0 }
    var sum = descriptor.length + Int(descriptor.largestResolution?.width ?? 0)
    for layer in 0..<8 {
        sum += Int(descriptor.resolution(ofLayer: layer, in: bytes)?.height ?? 0)
    }
    let frame = bytes.extracting(descriptor.length..<bytes.count)
    return sum + Int(VP9FrameHeader.resolution(frame)?.width ?? 0)
}

func readH264(_ bytes: Span<UInt8>) -> Int {
    Int(H264Payload.resolution(bytes)?.width ?? 0)
        + (H264Payload.isKeyframeStart(bytes) ? 1 : 0)
}

func readAV1(_ bytes: Span<UInt8>) -> Int {
    let sequence = AV1SequenceHeader.resolution(bytes)
    guard let header = AV1AggregationHeader(bytes) else { return 0 }
    return Int(header.elementCount) + (header.isKeyframeStart ? 1 : 0) + Int(sequence?.width ?? 0)
}

func readOpus(_ bytes: Span<UInt8>) -> Int { OpusPacket(bytes)?.samples ?? 0 }

/// Reads dependency descriptors of one stream, each preceded by a length byte.
func readDependencyDescriptors(_ bytes: [UInt8]) -> Int {
    var structure: DependencyStructure?
    var sum = 0
    var position = 0
    while position < bytes.count {
        let start = position + 1
        let end = min(start + Int(bytes[position]), bytes.count)
        position = end
        sum &+= readDependencyDescriptor(bytes.span.extracting(start..<end), &structure)
    }
    return sum
}

private func readDependencyDescriptor(
    _ bytes: Span<UInt8>,
    _ structure: inout DependencyStructure?
) -> Int {
    var sum = DependencyDescriptor(bytes).map { Int($0.frameNumber) } ?? 0
    guard let frame = FrameDependencies(bytes, structure: &structure) else { return sum }
    sum += Int(frame.spatialID) + Int(frame.indication(ofDecodeTarget: 31).rawValue)
    for index in 0..<frame.frameDifferences.count { sum += Int(frame.frameDifferences[index]) }
    guard let structure else { return sum }
    for target in 0..<structure.decodeTargetCount {
        sum += Int(structure.layers(ofDecodeTarget: target).spatialID)
    }
    return sum + structure.resolutions.count
}

func readLayersAllocation(_ bytes: Span<UInt8>) -> Int {
    guard let allocation = VideoLayersAllocation(bytes) else { return 0 }
    var sum = 0
    for index in 0..<allocation.layerCount {
        let layer = allocation[index]
        for temporal in 0..<layer.temporalLayerCount {
            sum += Int(layer.targetKilobits(temporalLayer: temporal))
        }
    }
    return sum
}

func readRED(_ bytes: Span<UInt8>) -> Int {
    guard let payload = REDPayload(bytes) else { return 0 }
    var sum = payload.primary.count
    for index in 0..<payload.redundantCount {
        let block = payload[index]
        sum += bytes.extracting(block.offset..<block.offset + block.length).count
    }
    return sum
}
