import HostilePeer
import LoadPeer
import RTP
import TestSupport

// Hostile RTCP.
extension World {
    private static let maximalStep: UInt64 = 0x7f_ffff
    /// Blocks of a flood's datagram, which keep it below the largest size.
    private static let floodBlocks = 12
    /// Bytes of RTCP that fit into a datagram.
    private static let longest = 1_300

    func prepareReports(_ adversary: Adversary, _ client: WorldClient) {
        switch adversary.plan {
        case .clockSteps:
            let isUp = adversary.choice % 2 == 0
            adversary.values.play(
                .referenceTime,
                ValueSource(isUp ? .rising : .falling, bits: 24, step: Self.maximalStep, from: 0)
            )
        case .feedbackFields: adversary.play(ForgedReport.arrivals.fields)
        case .reportFields:
            adversary.play(ForgedReport.sender.fields)
        case .clocksApart:
            let strategies: [ValueStrategy] = [.extreme, .oscillating, .arbitrary]
            adversary.values.play(
                .ntp,
                ValueSource(
                    strategies[Int(adversary.choice % 3)],
                    bits: 64,
                    step: UInt64(adversary.random.pick(1...60)) << 57,
                    from: UInt64(2_208_988_800) << 32
                )
            )
        case .requests:
            adversary.play([.lostMask, .lostSequence, .requestSequence, .bitrateExponent])
        default:
            adversary.play(WireField.allCases.filter { $0.rawValue <= Self.lastReportField })
        }
    }

    private static let lastReportField = WireField.requestSequence.rawValue

    func sendReports(_ adversary: Adversary, _ client: WorldClient) {
        notePlainValues(adversary, client)
        var bytes: [UInt8] = []
        for block in blocks(adversary) {
            let more = block.bytes(
                from: sender(of: block, adversary, client),
                about: client.newestSource,
                &adversary.values,
                using: &adversary.random
            )
            if bytes.count + more.count <= Self.longest { bytes += more }
        }
        send(from: client) { sent in
            client.peer.sendRTCP(into: &sent) { output in
                for byte in bytes { output.append(byte) }
            }
        }
    }

    /// Returns the blocks of one datagram.
    private func blocks(_ adversary: Adversary) -> [ForgedReport] {
        switch adversary.plan {
        case .clockSteps, .feedbackFields: [.arrivals]
        case .reportFields: [adversary.random.chance(0.5) ? .sender : .receiver]
        case .clocksApart: [.sender]
        case .requests:
            [adversary.random.pick([.lost, .pictureLoss, .fullIntra, .estimate]) ?? .lost]
        default:
            (0..<Self.floodBlocks).map { _ in
                adversary.random.pick(ForgedReport.allCases.filter { $0 != .lost }) ?? .unknown
            }
        }
    }

    /// Returns the sender SSRC: its own streams in turn for sender reports, otherwise nobody's.
    private func sender(
        of block: ForgedReport,
        _ adversary: Adversary,
        _ client: WorldClient
    ) -> UInt32 {
        guard block == .sender, !client.offer.layers.isEmpty else { return 1 }
        return client.offer.layers[adversary.done % client.offer.layers.count].ssrc
    }

    /// Sets the fields that are not varied to an honest viewer's values.
    private func notePlainValues(_ adversary: Adversary, _ client: WorldClient) {
        let unix = unixOffset * 1e9 + Double(now.nanoseconds)
        adversary.values.plain = [
            .ntp: NTPTime(unixNanoseconds: Int64(unix)).rawValue,
            .rtpTime: UInt64(now.nanoseconds / 1_000_000 * 90),
            .packetCount: UInt64(adversary.done), .octetCount: UInt64(adversary.done) * 100,
            .highestSequence: UInt64(client.newestNumber),
            .baseSequence: UInt64(client.newestTransportNumber), .statusCount: 1,
            .referenceTime: UInt64(now.nanoseconds / 64_000_000) & 0xff_ffff,
            .feedbackCount: UInt64(adversary.done) & 0xff, .arrivalDelta: 4,
            .lostSequence: UInt64(client.newestNumber), .lostMask: 0xffff,
            .requestSequence: UInt64(adversary.done) & 0xff,
            .bitrateMantissa: 0x3_ffff, .bitrateExponent: 2,
        ]
    }
}
