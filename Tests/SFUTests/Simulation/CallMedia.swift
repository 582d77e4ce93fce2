import RTP

@testable import SFU
@testable import WorkerInterface

// Media and feedback of a call's peers.
extension Call {
    mutating func bind(
        slot: UInt32,
        publication: UInt32?,
        preference: LayerCap = .none,
        roleCap: LayerCap = .none
    ) {
        var binding = publication.map {
            Binding(
                publication: PublicationID(index: $0, generation: 1),
                subscription: 7,
                open: true
            )
        }
        binding?.preference = preference
        binding?.roleCap = roleCap
        apply(.bind(SlotID(index: slot, generation: 1), binding))
    }

    mutating func sendVideo(
        from peer: Int = 0,
        ssrc: UInt32 = 0x2222,
        rid: String? = nil,
        sequence: UInt16,
        pictureID: UInt16,
        isKeyframe: Bool,
        rollover: UInt64 = 0,
        width: UInt16 = 640,
        timestamp: UInt32? = nil
    ) {
        var elements: [(UInt8, [UInt8])] = [(4, Array("1".utf8)), (3, transportSequence.bytes)]
        transportSequence &+= 1
        if let rid { elements.append((10, Array(rid.utf8))) }
        let packet = Media.packet(
            payloadType: 96,
            sequence: sequence,
            timestamp: timestamp ?? UInt32(pictureID) &* 3_000,
            ssrc: ssrc,
            marker: true,
            elements: elements,
            payload: Media.vp8Payload(pictureID: pictureID, isKeyframe: isKeyframe, width: width)
        )
        send(packet, from: peer, rollover: rollover)
    }

    mutating func nack(_ number: UInt16, from peer: Int, ssrc: UInt32) {
        nack([number], from: peer, ssrc: ssrc)
    }

    mutating func nack(_ numbers: Range<UInt16>, from peer: Int, ssrc: UInt32) {
        nack(Array(numbers), from: peer, ssrc: ssrc)
    }

    private mutating func nack(_ numbers: [UInt16], from peer: Int, ssrc: UInt32) {
        sendRTCP(from: peer) { output in
            let lost = numbers.map { SequenceNumber(rawValue: $0) }
            GenericNACK.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: ssrc),
                lost: lost.span,
                into: &output
            )
        }
    }

    func keyframeRequests(at peer: Int) -> Int {
        var count = 0
        for report in peers[peer].reports {
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                if block.type == RTCPType.payloadFeedback, block.count == 1 { count += 1 }
            }
        }
        return count
    }

    /// Sequence numbers that were requested, each request once.
    func nacks(at peer: Int) -> [UInt16] {
        var numbers: [UInt16] = []
        for report in peers[peer].reports {
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                guard block.type == RTCPType.transportFeedback, block.count == 1,
                    let request = try? GenericNACK(block)
                else { continue }
                for index in 0..<request.count { numbers.append(request[index].packetID.rawValue) }
            }
        }
        return numbers
    }
}

extension WorkerStatistics {
    /// Whether every received packet is accounted for.
    var isBalanced: Bool {
        let firstRTP = DropReason.malformedRTP.index
        var beforeRTP: UInt64 = 0
        var ofRTP: UInt64 = 0
        for reason in DropReason.allCases
        where !reason.isOutgoing {
            if reason.index < firstRTP {
                beforeRTP += drops[reason.index]
            } else {
                ofRTP += drops[reason.index]
            }
        }
        return rtpIn == rtpForwarded + ofRTP
            && datagramsIn == stunIn + dtlsIn + rtcpIn + rtpIn + beforeRTP
    }
}
