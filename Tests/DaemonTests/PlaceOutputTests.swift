import RTP
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Recordings and other outputs of a room with participants at several nodes.
@Suite struct PlaceOutputTests {
    /// Makes a room at `a` with publishers at `b`, in three encodings, and at `c`.
    private func call() throws -> (world: PlaceWorld, stream: String) {
        var world = PlaceWorld("a", "b", "c")
        _ = try world.done("room.create", ["room": "r"])
        let stream = try world.join("p", by: "b", "0:audio:sendonly", "1:video:sendonly:l,m,h")
            .stream
        try world.join("q", by: "c", "0:audio:sendonly")
        return (world, try #require(stream))
    }

    /// Returns what a node's link thread wants of each publication, as it was last told.
    private func wants(_ world: PlaceWorld, at node: String) -> [PublicationID: UInt8] {
        var wants: [PublicationID: UInt8] = [:]
        for order in world.nodes[node]?.orders ?? [] {
            switch order {
            case .link(.want(let id, let mask)): wants[id] = mask
            case .link(.end(let id)): wants[id] = nil
            default: break
            }
        }
        return wants
    }

    private func begin(_ world: inout PlaceWorld, by node: String) throws -> OutputID {
        let id = world.send("recording.start", ["room": "r"], by: node)
        let output = try #require(world.nodes["a"]?.recorder.taps.keys.first)
        world.tell(.tap(.started(output)), of: "a", worker: PlaceWorld.recorder)
        _ = try #require(world.replies[id], "a recording is not answered").get()
        return output
    }

    @Test func `a recording takes all encodings of streams at other nodes, each once`() throws {
        var (world, stream) = try call()
        #expect(wants(world, at: "a").isEmpty, "nobody watches")
        let output = try begin(&world, by: "c")
        let home = try #require(world.nodes["a"])
        #expect(home.recorder.taps[output]?.count == 3)
        #expect(home.recorder.mirrors.values.allSatisfy { $0.home.worker == PlaceWorld.link })
        #expect(home.recorder.gates.values.allSatisfy { $0 } && home.recorder.gates.count == 3)
        #expect(wants(world, at: "a").values.sorted() == [0b1, 0b1, 0b111])
        #expect(world.nodes["b"]?.recorder.mirrors.isEmpty == true)
        #expect(world.nodes["c"]?.recorder.mirrors.isEmpty == true)

        // A viewer at the home with a wish of its own changes nothing for the recording.
        try world.join("v", by: nil, "0:video:recvonly")
        try world.watch("v", stream)
        let mirror = try #require(world.nodes["a"]?.worker.mirrors.values.first)
        world.tell(.layersWanted(mirror.configuration.id, home: mirror.home, 0b001), of: "a")
        #expect(wants(world, at: "a").values.sorted() == [0b1, 0b1, 0b111])

        _ = try world.done("recording.stop", ["room": "r"])
        world.tell(
            .tap(.ended(output, reason: nil, [])),
            of: "a",
            worker: PlaceWorld.recorder
        )
        #expect(world.nodes["a"]?.recorder.mirrors.isEmpty == true)
        #expect(wants(world, at: "a").values.sorted() == [0b001], "only what the viewer watches")
    }

    @Test func `a mute reaches the recorder before it is answered`() throws {
        var (world, _) = try call()
        _ = try begin(&world, by: "b")
        let mute: JSON = ["room": "r", "participant": "p", "media": ["video"]]
        _ = try world.done("participant.hardMute", mute, by: "c")
        let gates = world.nodes["a"]?.recorder.gates.values.map { $0 } ?? []
        #expect(gates.count == 3 && gates.count { !$0 } == 1)
        _ = try world.done("participant.hardUnmute", mute, by: "c")
        #expect(world.nodes["a"]?.recorder.gates.values.allSatisfy { $0 } == true)
    }

    @Test func `a publisher that is lost with its node leaves nothing at the recorder`() throws {
        var (world, _) = try call()
        let output = try begin(&world, by: "a")
        world.kill("b")
        world.run(milliseconds: 20_000)
        let home = try #require(world.nodes["a"])
        #expect(home.recorder.taps[output]?.count == 1, "the stream at c is still recorded")
        #expect(home.recorder.mirrors.count == 1)
        #expect(wants(world, at: "a").values.sorted() == [0b1])
    }
}
