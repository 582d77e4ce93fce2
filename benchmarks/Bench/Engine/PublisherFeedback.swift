import Kernel
import LoadPeer
import RTP
import SFU

// RTCP sent to the SFU and received from it.
extension Publisher {
    func sendReports(
        at now: Instant,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        let ntp = NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset())
        let reports = (tracks(.audio) + layers).map { track in
            SenderReport(
                sender: SSRC(rawValue: track.ssrc),
                ntp: ntp,
                rtpTimestamp: timestamp(
                    now,
                    clock: track.medium == .audio
                        ? OfferParameters.audioClock : OfferParameters.videoClock
                ),
                packets: UInt32(truncatingIfNeeded: track.count),
                octets: track.octets
            )
        }
        guard let first = reports.first else { return }
        wire.sendRTCP(into: &output) { bytes in
            for report in reports { report.encode(into: &bytes) }
            SourceDescription.encode(
                ssrc: first.sender,
                cname: Array("load".utf8).span,
                into: &bytes
            )
        }
    }

    /// Processes a decrypted RTCP compound and answers it.
    func receive(
        _ compound: Span<UInt8>,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        var blocks = RTCPBlocks(compound)
        while let block = blocks.next() {
            switch (block.type, block.count) {
            case (RTCPType.receiverReport, _): tally.receiverReports += 1
            case (RTCPType.transportFeedback, RTCPFormat.transportWide):
                tally.transportFeedback += 1
            case (RTCPType.transportFeedback, RTCPFormat.genericNACK):
                resend(block, &wire, into: &output)
            case (RTCPType.payloadFeedback, RTCPFormat.pictureLoss):
                if let request = try? PictureLossIndication(block) {
                    restart(request.media.rawValue)
                }
            case (RTCPType.payloadFeedback, RTCPFormat.fullIntraRequest):
                // All layers restart, whichever one the request names: requests come one at a time.
                for layer in layers { restart(layer.ssrc) }
            default: break
            }
        }
    }

    /// Restarts the recording of the layer, whose first frame is its keyframe.
    private func restart(_ ssrc: UInt32) {
        tally.keyframeRequests += 1
        for (index, layer) in layers.enumerated() where layer.ssrc == ssrc { position[index] = 0 }
    }

    private func resend(
        _ block: RTCPBlock,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        guard let nack = try? GenericNACK(block),
            let layer = layers.firstIndex(where: { $0.ssrc == nack.media.rawValue })
        else { return }
        for index in 0..<nack.count {
            let (first, mask) = nack[index]
            resend(first, layer, &wire, into: &output)
            for bit in 0..<16 where mask & 1 << UInt16(bit) != 0 {
                resend(first.advanced(by: bit + 1), layer, &wire, into: &output)
            }
        }
    }

    /// Retransmits a packet that is still remembered (RFC 4588).
    private func resend(
        _ sequence: SequenceNumber,
        _ layer: Int,
        _ wire: inout ClientTransport,
        into output: inout Batch
    ) {
        tally.nackedPackets += 1
        let track = layers[layer]
        guard output.free > 0, let line = format.video, let payloadType = line.rtxPayloadType,
            let sent = track.packet(sequence: sequence.rawValue)
        else { return }
        let header = Packetizer.Header(
            payloadType: payloadType,
            ssrc: track.rtxSSRC,
            sequence: UInt16(truncatingIfNeeded: rtxCounts[layer]),
            line: line,
            rid: rids[layer],
            originalSequence: sequence.rawValue
        )
        packetizer.write(sent, of: track, header)
        wire.sendRTP(packetizer.packet.span, index: rtxCounts[layer], into: &output)
        rtxCounts[layer] += 1
        tally.retransmissions += 1
    }
}
