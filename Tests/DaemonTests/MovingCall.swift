import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// A room at `a`: `p` publishes at `b`, `v` watches it at `c`, and publishes too; `w` watches
/// at the home.
struct MovingCall {
    var world = PlaceWorld("a", "b", "c")
    var stream = ""
    /// Transports that are connected, by node.
    private var connected: [String: Set<TransportID>] = [:]

    init() throws {
        _ = try world.done("room.create", ["room": "r"])
        stream = try #require(
            try world.join("p", by: "b", "0:audio:sendonly", "1:video:sendonly").stream
        )
        try world.join("v", by: "c", "0:video:recvonly", "1:audio:recvonly", "2:audio:sendonly")
        try world.join("w", by: nil, "0:video:recvonly", "1:audio:recvonly")
        for viewer in ["v", "w"] { try world.watch(viewer, stream) }
        for name in ["a", "b", "c"] { connectAll(at: name) }
        show(draining: [])
        world.events = []
    }

    /// Lets the nodes know which of them drain.
    mutating func show(draining: [String], loads: [String: Double] = [:]) {
        for name in world.nodes.keys {
            let nodes = world.nodes.keys.sorted().map { node in
                NodeInfo(
                    node: node,
                    state: draining.contains(node) ? .draining : .up,
                    load: loads[node] ?? 0,
                    address: "\(node):1",
                    boot: "boot-\(node)"
                )
            }
            world.nodes[name]?.plane.show(NodeList.Result(nodes: nodes), at: world.now)
        }
        world.settle()
    }

    mutating func connectAll(at name: String) {
        let all = Set(world.nodes[name]?.worker.transports.keys.map(\.self) ?? [])
        for transport in all.subtracting(connected[name] ?? []) {
            connected[name, default: []].insert(transport)
            world.tell(.transport(transport, .connected), of: name)
        }
    }

    func worker(_ name: String) throws -> WalkWorker {
        try #require(world.nodes[name]).worker
    }

    /// `participant.moveWanted` so far, as `participant node`.
    var asked: [String] {
        world.events.filter { $0.event == "participant.moveWanted" }
            .compactMap { try? $0.data.decode(ParticipantMoveWanted.self) }
            .map { "\($0.participant.rawValue) \($0.node) \($0.reason)" }
    }

    /// `participant.changed` so far, as `participant node`.
    var nodesTold: [String] {
        world.events.filter { $0.event == "participant.changed" }
            .compactMap { try? $0.data.decode(ParticipantChanged.self).participantInfo }
            .map { "\($0.participant.rawValue) \($0.node ?? "")" }
    }

    func told(_ event: String) -> [String] {
        world.events.filter { $0.event == event }.map(\.event)
    }

    /// Makes an offer on a peer connection that is told from the others by its number.
    mutating func offer(
        _ participant: String,
        peer: Int,
        _ lines: String...
    ) throws -> TransportOffer.Result {
        var offer = TestOffer(lines)
        offer.peer = peer
        let params: [String: JSON] = [
            "room": "r", "participant": .string(participant), "sdp": .string(offer.text),
        ]
        return try world.done("transport.offer", .object(params))
            .decode(TransportOffer.Result.self)
    }

    mutating func offerOfViewer(peer: Int) throws -> TransportOffer.Result {
        try offer("v", peer: peer, "0:video:recvonly", "1:audio:recvonly", "2:audio:sendonly")
    }

    mutating func offerOfPublisher(peer: Int) throws -> TransportOffer.Result {
        try offer("p", peer: peer, "0:audio:sendonly", "1:video:sendonly")
    }

    mutating func get(_ participant: String) throws -> ParticipantInfo {
        try world.done("participant.get", ["room": "r", "participant": .string(participant)])
            .decode(ParticipantInfo.self)
    }

    mutating func streams() throws -> [StreamInfo] {
        try world.done("stream.list", ["room": "r"]).decode(StreamList.Result.self).streams
    }

    /// Closes the room; nothing may be left at any node.
    mutating func end() throws {
        _ = try world.done("room.close", ["room": "r"])
        for (name, node) in world.nodes {
            #expect(node.plane.leakedObjects == [], "\(name)")
            #expect(node.worker.transports.isEmpty && node.worker.mirrors.isEmpty, "\(name)")
            #expect(node.plane.places?.guests.transportCount == 0, "\(name)")
            #expect(node.plane.places?.routes.isEmpty == true, "\(name)")
        }
        #expect(world.warnings == [])
    }
}
