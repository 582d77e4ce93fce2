import LoadPeer
import RTP
import SFU
import WorkerInterface

/// One transport of a participant: full ICE, DTLS and SRTP, and media that names its sender.
package final class SimulatedClient {
    let index: Int
    /// Number of its room.
    let room: UInt32
    let participant: String
    /// Worker of its transport, by the answer.
    let worker: Int
    let path: Path
    let fragment: String
    let password: String
    var peer: LoadPeer
    var tracks: [SimulatedTrack]
    /// Recently received sequence numbers, by the SSRC of its slots.
    private(set) var recent: [UInt32: [UInt16]] = [:]

    /// Sequence numbers of a slot that a viewer remembers, to request again.
    private static let memory = 200

    init(
        index: Int,
        room: UInt32,
        participant: String,
        worker: Int,
        fragment: String,
        password: String,
        peer: consuming LoadPeer,
        tracks: [SimulatedTrack]
    ) {
        self.index = index
        self.room = room
        self.participant = participant
        self.worker = worker
        self.path = peer.path
        self.fragment = fragment
        self.password = password
        self.peer = peer
        self.tracks = tracks
    }

    var isConnected: Bool { peer.isConnected }

    static func path(of index: Int) -> Path {
        Path(remote: Address(ipv4: 0x0a00_0000 + UInt32(index), port: 10_000), local: 0)
    }

    func note(_ sequence: UInt16, of ssrc: UInt32) {
        recent[ssrc, default: []].append(sequence)
        if recent[ssrc, default: []].count > 2 * Self.memory {
            recent[ssrc]?.removeFirst(Self.memory)
        }
    }

    /// Encrypts the next packet of one of its tracks.
    func sendMedia(_ track: Int, size: Int, at now: Instant, into output: inout Batch) {
        guard isConnected else { return }
        let (bytes, number) = tracks[track].next(
            room: room,
            publisher: UInt32(index),
            size: size,
            at: now
        )
        peer.sendRTP(bytes.span, index: number, into: &output)
    }

    /// Requests some packets again, whether they have arrived or not.
    func sendNACK(_ numbers: [UInt16], of ssrc: UInt32, into output: inout Batch) {
        let lost = numbers.map { SequenceNumber(rawValue: $0) }
        peer.sendRTCP(into: &output) { output in
            GenericNACK.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: ssrc),
                lost: lost.span,
                into: &output
            )
        }
    }

    /// Takes a report or request of the SFU; a track that lacks a keyframe will send one.
    func take(report: [UInt8]) {
        var blocks = RTCPBlocks(report.span)
        while let block = blocks.next() {
            guard let loss = try? PictureLossIndication(block) else { continue }
            for index in tracks.indices where tracks[index].ssrc == loss.media.rawValue {
                tracks[index].wantsKeyframe = true
            }
        }
    }
}
