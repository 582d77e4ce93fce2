import RTP
import SFU
import WorkerInterface

// Packets from before another node wanted them. Warm pictures: a node's first viewer is shown the
// lowest encoding's last keyframe and what came since, like a first viewer at the publisher's own
// node. Held sound: who begins to talk is heard from the first syllable on.
extension LinkMedia {
    /// Sends a node the warm picture of a publication of which it wants further encodings.
    ///
    /// It goes before the live packets that continue it, in one burst; a narrow path has no room
    /// for that.
    mutating func showPicture(
        of id: PublicationID,
        among encodings: UInt8,
        to node: String,
        at now: Instant
    ) {
        guard encodings != 0, let peer = peers[node], peer.path.bandwidth.limit == nil,
            let subscriber = sending[id]?.subscribers[node]
        else { return }
        let picture = core.linkedPicture(of: id, among: encodings, at: now)
        guard picture.allSatisfy({ $0.1.count <= Self.packetLimit }) else { return }
        for (part, bytes) in picture {
            counters.packetsOut &+= 1
            let record = LinkRecord.picture(
                header(of: part.packet, for: subscriber, at: now),
                covered: UInt16(clamping: part.covered),
                isLast: part.isLast,
                packet: bytes
            )
            append(record, to: node, isVideo: true, at: now)
        }
    }

    /// Time for which sound is held, in milliseconds.
    private static let heldMilliseconds: Int64 = 400

    /// Sends a node the sound of a talker from before the node wanted it; live packets continue it.
    mutating func sendHeldAudio(of id: PublicationID, to node: String, at now: Instant) {
        guard let subscriber = sending[id]?.subscribers[node] else { return }
        let start = now.advanced(milliseconds: -Self.heldMilliseconds)
        for (packet, bytes) in core.heldAudio(of: id, since: start) {
            transmit(packet, bytes, to: node, subscriber, at: now)
        }
    }

    /// Takes a packet of a publication's warm picture.
    mutating func take(
        _ header: LinkedMediaHeader,
        covered: Int,
        isLast: Bool,
        _ packet: [UInt8],
        from node: String,
        at now: Instant
    ) {
        guard let linked = linked(header, from: node, at: now) else { return }
        let picture = LinkedPicture(linked, covered: covered, isLast: isLast)
        if !core.receiveLinkedPicture(picture, packet.span, at: now) {
            counters.packetsRefused &+= 1
        }
    }
}
