import HostilePeer
import LoadPeer
import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import SFU
@testable import Simulator
@testable import WorkerInterface

// Clients.
extension SimulatedDaemon {
    /// Offers a transport for a participant, and begins to connect it.
    func connect(
        _ participant: String,
        in room: String,
        number: UInt32,
        tracks kinds: [MediaKind] = [],
        slots: Int = 0
    ) throws -> (client: SimulatedClient, mids: [MidInfo]) {
        let index = takeIndex()
        let tracks = kinds.enumerated().map { position, kind in
            SimulatedTrack(kind: kind, ssrc: UInt32(index * 8 + 2 * position + 1))
        }
        let offer = offer(index: index, tracks: tracks, slots: slots)
        let params: [String: JSON] = [
            "room": .string(room), "participant": .string(participant), "sdp": .string(offer.text),
        ]
        let result = try done("transport.offer", params).decode(TransportOffer.Result.self)
        let client = try adopt(
            result.sdp,
            index: index,
            number: number,
            participant: participant,
            tracks: tracks
        )
        return (client, result.mids)
    }

    func takeIndex() -> Int {
        lastClient += 1
        return lastClient
    }

    func offer(index: Int, tracks: [SimulatedTrack], slots: Int) -> SimulatedOffer {
        SimulatedOffer(
            fragment: LoadPeer.fragment(seed: UInt64(index)),
            password: LoadPeer.password(seed: UInt64(index)),
            fingerprint: identity.fingerprint,
            tracks: tracks,
            slots: slots
        )
    }

    /// Makes the client for an answer, and starts its checks.
    func adopt(
        _ answer: String,
        index: Int,
        number: UInt32,
        participant: String,
        tracks: [SimulatedTrack]
    ) throws -> SimulatedClient {
        let session = try SessionDescription(answer)
        let media = try #require(session.media.first)
        let fragment = try #require(media.transport.fragment ?? session.transport.fragment)
        let password = try #require(media.transport.password ?? session.transport.password)
        let candidates = nodes.flatMap { $0.setup.candidates.map { $0[0] } }
        let worker = try #require(
            candidates.firstIndex { answer.contains(" \($0.text) \($0.port) typ") }
        )
        let client = SimulatedClient(
            index: index,
            room: number,
            participant: participant,
            worker: worker,
            fragment: fragment,
            password: password,
            peer: LoadPeer(
                identity: identity,
                context: context,
                path: SimulatedClient.path(of: index),
                seed: UInt64(index)
            ),
            tracks: tracks
        )
        clients[client.path] = client
        var sent = Batch(capacity: 16)
        client.peer.connect(
            fragment: fragment,
            password: password,
            fingerprint: identity.fingerprint,
            at: now,
            into: &sent
        )
        deliver(&sent, from: client)
        return client
    }

    /// Advances the clock until these have connected.
    func awaitConnected(_ waited: [SimulatedClient]) throws {
        for _ in 0..<8_000 where !waited.allSatisfy(\.isConnected) { step() }
        for client in waited {
            try #require(client.isConnected, "\(client.participant) does not connect")
        }
    }

    /// Forgets clients that have left, with all that is known of them.
    func forget(_ gone: [SimulatedClient]) {
        let indices = Set(gone.map(\.index))
        senders.removeAll { indices.contains($0.index) }
        for client in gone { clients[client.path] = nil }
        flows = flows.filter {
            !indices.contains($0.key.publisher) && !indices.contains($0.key.viewer)
        }
        flowsAtReply = [:]
        replies = [:]
        underWay = underWay.filter { clients[$0.key.path] != nil }
    }

    /// Lets a viewer request recent packets again.
    func askAgain(_ client: SimulatedClient) {
        var sent = Batch(capacity: 16)
        for (ssrc, numbers) in client.recent.sorted(by: { $0.key < $1.key }) {
            let choice = (0..<6).compactMap { _ in numbers.randomElement(using: &random) }
            guard let newest = numbers.last else { continue }
            let ordered = Set(choice).sorted { newest &- $0 > newest &- $1 }
            client.sendNACK(ordered, of: ssrc, into: &sent)
        }
        deliver(&sent, from: client)
    }

    func deliver(_ sent: inout Batch, from client: SimulatedClient) {
        for position in 0..<sent.count {
            worker(client.worker).arrived
                .append(.init(path: client.path, bytes: sent.bytes(at: position), at: now))
        }
        sent.removeAll()
    }
}
