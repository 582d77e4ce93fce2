import HostilePeer
import LoadPeer
import RTP
import TestSupport
import WorkerInterface

// Hostile connectivity checks and spoofed sources.
extension World {
    private static let usedSource: UInt64 = 56

    /// Sends a check with the peer's own password, from an address that it must not use.
    private func nominate(
        _ adversary: Adversary,
        _ client: WorldClient,
        from source: Path,
        _ check: ForgedCheck = ForgedCheck()
    ) {
        guard let answer = client.answer else { return }
        let bytes = check.bytes(
            username: "\(answer.fragment):\(client.peer.localFragment)",
            password: answer.password,
            transaction: adversary.nextTransaction(),
            &adversary.values,
            using: &adversary.random
        )
        guard source != client.path else {
            return schedule.add(
                .toWorker(client.worker, source, bytes),
                at: now.advanced(nanoseconds: 1_000_000)
            )
        }
        spoof(bytes, from: source, to: client.worker)
    }

    /// Sends a packet under its own keys with a spoofed source: audio, or a report.
    private func sendEncrypted(_ adversary: Adversary, _ client: WorldClient, from source: Path) {
        if adversary.random.chance(0.5) {
            let report = ForgedReport.receiver.bytes(
                from: 1,
                about: client.newestSource,
                &adversary.values,
                using: &adversary.random
            )
            return send(from: client, as: source) { sent in
                client.peer.sendRTCP(into: &sent) { output in
                    for byte in report { output.append(byte) }
                }
            }
        }
        var media = ForgedMedia()
        media.mid = "0"
        media.extensions = WorldOffer.everyExtension
        let number = adversary.random.pick(0...0xffff)
        let ssrc = UInt64(client.index) * 64 + Self.usedSource
        adversary.values.plain = [
            .sequence: UInt64(number), .source: ssrc, .payloadType: 111, .audioLevel: 90,
        ]
        let mark = adversary.nextMark(of: client, .audio)
        let bytes = media.bytes(mark: mark, &adversary.values, using: &adversary.random)
        let index = adversary.index(of: UInt16(number), source: UInt32(ssrc))
        send(from: client, as: source) { sent in
            client.peer.sendRTP(bytes.span, index: index, into: &sent)
        }
    }

    /// Names an address that requested nothing, and spoofs packets from there.
    func spoof(_ adversary: Adversary, _ client: WorldClient) {
        if adversary.done % 8 == 1 { nominate(adversary, client, from: adversary.victim) }
        sendEncrypted(adversary, client, from: adversary.victim)
    }

    /// Goes silent at its own address, and names one that requested nothing.
    func keepSilent(_ adversary: Adversary, _ client: WorldClient) {
        guard adversary.left > 0 else { return client.isStill = false }
        guard adversary.done > 11 else { return }
        nominate(adversary, client, from: adversary.victim)
    }

    /// Names another participant's address, and spoofs packets from there.
    func impersonate(_ adversary: Adversary, _ client: WorldClient) {
        let others = livingClients.filter { $0.worker == client.worker && $0.isConnected }
        guard !others.isEmpty else { return adversary.abandon() }
        let other = others[Int(adversary.choice % UInt64(others.count))]
        if adversary.done % 2 == 1 { nominate(adversary, client, from: other.path) }
        if adversary.random.chance(0.5) {
            sendEncrypted(adversary, client, from: other.path)
        } else {
            let record = ForgedRecord.alert.bytes(&adversary.values, using: &adversary.random)
            spoof(record, from: other.path, to: client.worker)
        }
    }

    /// Names one address after the other.
    func scatter(_ adversary: Adversary, _ client: WorldClient) {
        let number = UInt32(truncatingIfNeeded: adversary.choice) &+ UInt32(adversary.done)
        var check = ForgedCheck()
        check.nominates = adversary.choice % 2 == 0
        nominate(adversary, client, from: Adversary.stranger(number), check)
    }

    /// Sends an invalid check from its own address.
    func sendCheck(_ adversary: Adversary, _ client: WorldClient) {
        var check = ForgedCheck()
        let length = adversary.values.next(.attributeLength, using: &adversary.random)
        switch adversary.random.pick(0...7) {
        case 0: check.isControlled = true
        case 1: check.isAuthentic = false
        case 2: check.hasFingerprint = false
        case 3: check.extra = (0x8022, Int(length % 1_200))
        case 4: check.extra = (0x0099, Int(length % 1_200))
        case 5: check.messageType = 0x0101
        case 6: check.messageType = 0x0011
        default: check.nominates = false
        }
        nominate(adversary, client, from: client.path, check)
    }
}
