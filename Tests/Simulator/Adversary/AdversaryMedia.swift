import HostilePeer
import LoadPeer
import RTP
import TestSupport
import WorkerInterface

// Hostile media packets.
extension World {
    /// Payload types to try: negotiated ones and others.
    private static let payloadTypes: [UInt64] = [96, 97, 111, 0, 63, 72, 127]

    func prepareMedia(_ adversary: Adversary, _ client: WorldClient) {
        let isRotating = adversary.plan == .newSources
        let fields = ForgedMedia.fields.filter { isRotating || $0 != .source }
        adversary.play(fields)
        if isRotating { adversary.values.play(.source, using: &adversary.random) }
    }

    func sendMedia(_ adversary: Adversary, _ client: WorldClient) {
        let isVideo = adversary.choice >> 8 % 2 == 0
        var media = ForgedMedia()
        media.isVideo = isVideo
        media.isKeyframe = adversary.random.chance(0.1)
        media.mid = isVideo ? "1" : "0"
        media.extensions = WorldOffer.everyExtension
        notePlainValues(adversary, client, isVideo: isVideo)
        let mark = adversary.nextMark(of: client, isVideo ? .video : .audio)
        let bytes = media.bytes(mark: mark, &adversary.values, using: &adversary.random)
        // Bytes that look like RTCP are no RTP (RFC 5761 §4).
        guard bytes.count > 12, case .rtp = Datagram(bytes.span) else { return }
        let index = adversary.index(of: bytes.span.u16(at: 2), source: bytes.span.u32(at: 8))
        send(from: client) { sent in
            client.peer.sendRTP(bytes.span, index: index, into: &sent)
        }
    }

    private func notePlainValues(_ adversary: Adversary, _ client: WorldClient, isVideo: Bool) {
        let isRotating = adversary.plan == .newSources
        let type = adversary.random.pick(Self.payloadTypes) ?? 0
        let usual: UInt64 = isVideo ? 96 : 111
        let source = UInt64(client.index) * 64 + 40 + adversary.choice % 8
        adversary.values.plain = [
            .sequence: UInt64(adversary.done) & 0xffff,
            .timestamp: UInt64(now.nanoseconds / 1_000_000 * (isVideo ? 90 : 48)),
            .source: source,
            .payloadType: isRotating && adversary.random.chance(0.2) ? type : usual,
            .pictureID: UInt64(adversary.done) & 0x7fff,
            .tl0PictureIndex: UInt64(adversary.done) & 0xff,
            .audioLevel: adversary.choice % 3 == 0 ? 0x80 : 90,
            .descriptorFlags: 0xc0, .descriptorFrame: UInt64(adversary.done) & 0xffff,
            .transportSequence: UInt64(adversary.done) & 0xffff,
        ]
    }
}
