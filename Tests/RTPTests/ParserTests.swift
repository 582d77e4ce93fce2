import Testing

@testable import RTP

/// Every parser of bytes from the network, with samples that it takes.
private enum Parser: CaseIterable, CustomTestStringConvertible {
    case packet, rtcp, stun, vp8, vp9, h264, av1, dependencyDescriptor, layersAllocation, opus, red

    var testDescription: String { "\(self)" }

    var samples: [[UInt8]] {
        switch self {
        case .packet:
            [
                hex("b1e0abcd 01020304 05060708 0a0b0c0d bede0001 10ff0000 aabb0002"),
                hex("90600001 00000002 00000003 10000002 0100 0f02aabb 0000 ccdd"),
            ]
        case .rtcp:
            [
                ReportTests.senderReport + hex("81ca0002 00000001 01016100"),
                hex("afcd0008" + TransportFeedbackTests.header)
                    + hex("2002 0003 a800 d800 04 08 01 02 03 fffc 01"),
                hex("81cd0004 00000001 00000002 0005 8001 ffff 0001 81ce0002 00000001 00000002"),
                hex("84ce0004 00000001 00000000 00000002 07000000 82cb0002 00000001 ffffffff"),
                hex("8fce0006 00000001 00000000 52454d42 02 0e0000 00000002 00000003"),
            ]
        case .stun: STUNVectorTests.messages
        case .vp8: [VP8DescriptorTests.keyframe]
        case .vp9: [VP9DescriptorTests.keyframe, hex("d8 01 03 05 06")]
        case .h264:
            [
                H264PayloadTests.parameters(profile: 100, units: (40, 30), crop: [0, 1, 2, 3]),
                hex("78 0009 6742 c01f f402 80b7 20 0002 68ce 0002 6588"), hex("7c 85 88 00 01"),
            ]
        case .av1: [hex("18 0a")]
        case .dependencyDescriptor: [DependencyDescriptorTests.keyframe, hex("c0 1236")]
        case .layersAllocation:
            [hex("51 40 64 ac02 e807 013f00b31e 027f01671e"), hex("20 10 30 00 01 02 03")]
        case .opus: [hex("7b 06 00"), hex("f8 ff fe")]
        case .red: [REDPayloadTests.two]
        }
    }

    /// Parses, and reads all there is to read; the sum keeps the reading from being left out.
    func read(_ bytes: Span<UInt8>) -> Int {
        switch self {
        case .packet: readPacket(bytes)
        case .rtcp: readRTCP(bytes)
        case .stun: readSTUN(bytes)
        case .vp8:
            VP8Descriptor(bytes).map { $0.length + Int($0.resolution(bytes)?.width ?? 0) } ?? 0
        case .vp9: VP9Descriptor(bytes).map { Int($0.largestResolution?.width ?? 0) } ?? 0
        case .h264:
            Int(H264Payload.resolution(bytes)?.width ?? 0)
                + (H264Payload.isKeyframeStart(bytes) ? 1 : 0)
        case .av1: AV1AggregationHeader(bytes).map { Int($0.elementCount) } ?? 0
        case .dependencyDescriptor: readDependencyDescriptor(bytes)
        case .layersAllocation: readLayersAllocation(bytes)
        case .opus: OpusPacket(bytes)?.samples ?? 0
        case .red: readRED(bytes)
        }
    }
}

private func readPacket(_ bytes: Span<UInt8>) -> Int {
    guard case .some = Datagram(bytes), let packet = try? Packet(bytes) else { return 0 }
    var sum = packet.payload.count + Int(packet.timestamp) + packet.csrcCount
    var extensions = packet.extensions
    while let element = extensions.next() {
        let end = element.offset + element.length
        sum += bytes.extracting(element.offset..<end).count
    }
    return sum
}

private func readRTCP(_ bytes: Span<UInt8>) -> Int {
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
        if let loss = try? PictureLoss(block) { sum &+= Int(loss.media.rawValue) }
        if let request = try? FullIntraRequest(block) {
            for index in 0..<request.count { sum &+= Int(request[index].number) }
        }
        if let estimate = try? ReceiverEstimate(block) {
            for index in 0..<estimate.count { sum &+= Int(estimate[index].rawValue) }
        }
        if var feedback = try? TransportFeedback(block) {
            // Long runs would take all the time there is; their walk has no other paths.
            var left = 300
            while left > 0, let status = feedback.next() {
                sum &+= Int(status.arrival ?? 1)
                left -= 1
            }
        }
    }
    return sum
}

private func readSTUN(_ bytes: Span<UInt8>) -> Int {
    guard let message = try? STUNMessage(bytes) else { return 0 }
    var sum = message.username.count + Int(message.method) + (message.errorCode ?? 0)
    sum += message.isFingerprintValid ? 1 : 0
    sum &+= Int(message.priority ?? 0) + Int(message.mappedAddress?.port ?? 0)
    sum &+= Int(truncatingIfNeeded: message.iceControlled ?? message.iceControlling ?? 0)
    sum &+= message.integrityTag.count + message.unknownAttributes.count
    return sum
}

private func readDependencyDescriptor(_ bytes: Span<UInt8>) -> Int {
    var structure: DependencyStructure?
    let sample = DependencyDescriptorTests.keyframe
    _ = FrameDependencies(sample.span, structure: &structure)
    guard let frame = FrameDependencies(bytes, structure: &structure) else { return 0 }
    var sum = Int(frame.spatialID) + Int(frame.indication(ofDecodeTarget: 31).rawValue)
    for index in 0..<frame.frameDifferences.count { sum += Int(frame.frameDifferences[index]) }
    guard let structure else { return sum }
    for target in 0..<structure.decodeTargetCount {
        sum += Int(structure.layers(ofDecodeTarget: target).spatialID)
    }
    return sum + structure.resolutions.count
}

private func readLayersAllocation(_ bytes: Span<UInt8>) -> Int {
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

private func readRED(_ bytes: Span<UInt8>) -> Int {
    guard let payload = REDPayload(bytes) else { return 0 }
    var sum = payload.primary.count
    for index in 0..<payload.redundantCount {
        let block = payload[index]
        sum += bytes.extracting(block.offset..<block.offset + block.length).count
    }
    return sum
}

@Suite struct ParserTests {
    @Test(arguments: Parser.allCases)
    private func `takes its samples cut at every byte`(parser: Parser) {
        for sample in parser.samples {
            for length in 0...sample.count { _ = parser.read(sample.span.extracting(0..<length)) }
        }
    }

    @Test(arguments: Parser.allCases)
    private func `takes a share of a million mutations`(parser: Parser) {
        var generator = SeededGenerator(seed: 20_261_121)
        let samples = parser.samples
        var sum = 0
        for round in 0..<1_000_000 / Parser.allCases.count {
            var bytes = samples[round % samples.count]
            for _ in 0...generator.next() % 4 {
                let random = generator.next()
                let index = Int(random >> 32) % bytes.count
                bytes[index] = UInt8(truncatingIfNeeded: random)
            }
            let cut = generator.next()
            if cut % 4 == 0 { bytes.removeLast(Int(cut >> 32) % bytes.count) }
            sum &+= parser.read(bytes.span)
        }
        #expect(sum != 0)
    }

    @Test func `takes every file of the corpora`() {
        for folder in ["stun", "rtp", "dependency_descriptor"] {
            for (_, bytes) in Corpus.files(folder) {
                for parser in Parser.allCases {
                    _ = parser.read(bytes.span.extracting(first: 65_535))
                }
            }
        }
    }
}
