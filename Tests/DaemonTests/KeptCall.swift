import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// A room at `a`: `p` at `b` and `h` at the home publish; `v` at `c` watches both, `w` at `b`
/// watches both, and `h` watches `p`.
struct KeptCall: PlaceStory {
    var world = PlaceWorld("a", "b", "c")
    var stream = ""
    var own = ""

    init() throws {
        _ = try world.done("room.create", ["room": "r"])
        stream = try #require(try world.join("p", by: "b", "0:video:sendonly").stream)
        own = try #require(
            try world.join("h", by: nil, "0:video:sendonly", "1:video:recvonly").stream
        )
        try world.join("v", by: "c", "0:video:recvonly", "1:video:recvonly")
        try world.join("w", by: "b", "0:video:recvonly", "1:video:recvonly")
        for (viewer, stream) in [
            ("v", stream), ("v", own), ("w", stream), ("w", own), ("h", stream),
        ] {
            try world.watch(viewer, stream)
        }
        for name in ["a", "b", "c"] {
            for transport in try worker(name).transports.keys {
                world.tell(.transport(transport, .connected), of: name)
            }
        }
        world.events = []
    }

    /// The resumptions that a node's worker was told of.
    func resumed(at name: String) -> [TransportID] {
        (world.nodes[name]?.commands ?? []).compactMap {
            if case .resume(let id, true) = $0 { id } else { nil }
        }
    }

    /// Whether each gate that a worker opened was under a lease by then.
    func firstOpened(at name: String) -> [Bool] {
        var leased: Set<PublicationID> = []
        return (world.nodes[name]?.commands ?? []).compactMap { command in
            switch command {
            case .lease(let id, .some):
                leased.insert(id)
                return nil
            case .gate(let id, open: true): return leased.contains(id)
            default: return nil
            }
        }
    }

    /// Lets the node's process begin again.
    mutating func restart(_ name: String = "b") {
        world.nodes[name]?.commands = []
        world.nodes[name]?.orders = []
        world.warnings = []
        world.restart(name, isKnown: true)
    }

    /// Ends the room; nothing is left at any node, nor saved.
    mutating func end(_ others: String...) throws {
        for who in ["p", "v", "w", "h"] + others where world.has(who) {
            let params: JSON = ["room": "r", "participant": .string(who)]
            _ = try world.done("participant.leave", params)
        }
        _ = try world.done("room.close", ["room": "r"])
        world.run(milliseconds: 16_000)
        try expectNothingLeft()
    }
}

extension PlaceStory {
    /// Checks that nothing of the room is left at any node, nor saved.
    func expectNothingLeft() throws {
        for name in ["a", "b", "c"] {
            let node = try #require(world.nodes[name])
            #expect(node.plane.leakedObjects == [], "\(name)")
            #expect(node.worker.transports.isEmpty && node.worker.mirrors.isEmpty, "\(name)")
            #expect(node.plane.places?.routes.isEmpty == true, "\(name)")
            #expect(node.plane.places?.guests.lost.isEmpty == true, "\(name)")
            #expect(!node.plane.awaitsHomes, "\(name)")
            #expect(node.saved.keys.filter { $0.hasPrefix("g/") } == [], "\(name)")
            #expect(node.plane.places?.guests.saved.isEmpty == true, "\(name)")
        }
    }
}
