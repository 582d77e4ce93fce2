import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Talkers at other nodes, who are heard from the first syllable on.
@Suite struct PlaceBeginningTests {
    /// Makes a room at `a` with somebody at `b` who may talk, and a listener at `c`.
    private func call() throws -> (world: PlaceWorld, stream: String) {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:audio:sendonly").stream
        try world.join("v", by: "c", "0:audio:recvonly")
        return (world, try #require(stream))
    }

    /// Returns what a node's link thread is told to want, in order.
    private func wants(_ world: PlaceWorld, at node: String) -> [UInt8] {
        (world.nodes[node]?.orders ?? []).compactMap { order in
            if case .link(.want(_, let mask)) = order { mask } else { nil }
        }
    }

    @Test func `who follows talkers elsewhere wants what is held of them`() throws {
        var (world, _) = try call()
        _ = try world.done(
            "talkers.subscribe",
            ["room": "r", "participant": "v", "audioMids": ["0"], "videoMids": []]
        )
        let origin = try #require(world.nodes["b"])
        let talker = try #require(origin.worker.transports.values.first?.publications.first)
        let began = world.now.advanced(milliseconds: -401)
        world.tell(.speech(talker.id, .began(at: world.now)), of: "b")
        world.run(milliseconds: 500)
        #expect(wants(world, at: "c") == [1 | LinkOrder.heldAudio])
        // A worker that has the sound for somebody else replays what it holds.
        let starts = (world.nodes["c"]?.commands ?? []).compactMap { command -> Instant? in
            if case .bind(_, let binding?) = command { binding.from } else { nil }
        }
        #expect(starts.count == 1 && starts.allSatisfy { $0 <= world.now && $0 > began })
    }

    @Test func `who subscribes to somebody elsewhere wants the present alone`() throws {
        var (world, stream) = try call()
        try world.watch("v", stream)
        #expect(wants(world, at: "c") == [1])
    }

    @Test(arguments: ["b", "a"])
    func `the link thread gets what the worker holds, before live packets`(node: String) throws {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: node, "0:audio:sendonly", "1:video:sendonly").stream
        try world.join("v", by: "c", "0:audio:recvonly", "1:video:recvonly")
        let before = world.nodes[node]?.commands.count ?? 0
        try world.watch("v", stream)
        let mirrors = (world.nodes[node]?.orders ?? []).compactMap { order -> Mirror? in
            if case .mirror(let mirror) = order { mirror } else { nil }
        }
        let start = world.now.advanced(milliseconds: -400)
        #expect(mirrors.count == 2)
        for mirror in mirrors {
            let isSound = mirror.configuration.kind == .audio
            #expect(mirror.from == (isSound ? start : nil))
            let hold = WorkerCommand.hold(
                mirror.home.publication,
                for: RelayTarget(worker: PlaceWorld.link, publication: mirror.configuration.id)
            )
            let commands = world.nodes[node]?.commands.dropFirst(before) ?? []
            #expect(commands.contains(hold) == isSound)
        }
    }
}
