import RTP
import TestSupport
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Participants that move from a node that drains to another one, as the control planes run them.
@Suite struct MoveTests {
    @Test func `the streams of a publisher that moves go on under their ids`() throws {
        var call = try MovingCall()
        let before = try call.streams()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        #expect(call.asked == ["p a drain"], "the home has the room's media")
        let answer = try call.offerOfPublisher(peer: 2)
        #expect(answer.sdp.contains("127.0.0.1 5004") && answer.sdp.contains("01:01:01"))
        #expect(answer.transport.rawValue == "main")
        #expect(answer.mids.map(\.stream?.rawValue) == [call.stream, call.stream])
        // The new transport waits, and the old one goes on.
        #expect(try call.worker("b").transports.count == 1)
        let (old, new) = (try call.worker("b"), try call.worker("a"))
        #expect(old.gates.values.allSatisfy { $0 })
        #expect(try call.get("p").node == "b")
        let own = new.transports.values.flatMap(\.publications).map(\.id)
        #expect(own.count == 2 && own.allSatisfy { new.gates[$0] != true })
        call.connectAll(at: "a")
        #expect(try call.worker("b").transports.isEmpty && call.worker("b").mirrors.isEmpty)
        #expect(try call.get("p").node == "a")
        #expect(try call.get("p").connection == .connected)
        let after = try call.streams()
        #expect(after.map(\.stream) == before.map(\.stream))
        #expect(after.map(\.created) == before.map(\.created))
        let near = try call.worker("a")
        #expect(near.mirrors.isEmpty, "the home has the media itself")
        for name in ["a", "c"] {
            let bindings = try call.worker(name).bindings.values
            #expect(bindings.count == 2 && bindings.allSatisfy(\.open), "\(name)")
        }
        #expect(call.told("stream.destroyed") == [] && call.told("stream.created") == [])
        #expect(call.told("participant.connection") == [])
        #expect(call.told("subscription.disconnected") == [])
        #expect(call.told("participant.changed").count == 1)
        call.world.run(milliseconds: 2_000)
        #expect(call.asked == ["p a drain"])
        try call.end()
    }

    @Test func `the subscriptions of a viewer that moves go on in its m-lines`() throws {
        var call = try MovingCall()
        let params: JSON = ["room": "r", "participant": "v"]
        let before = try call.world.done("subscription.list", params)
        call.show(draining: ["c"])
        call.world.run(milliseconds: 100)
        let node = try #require(call.asked.first).split(separator: " ")[1]
        #expect(["a", "b"].contains(node))
        _ = try call.offerOfViewer(peer: 2)
        #expect(try call.worker("c").bindings.values.count { $0.open } == 2)
        let count = try call.worker(String(node)).bindings.count
        call.connectAll(at: String(node))
        #expect(try call.worker("c").transports.isEmpty && call.worker("c").mirrors.isEmpty)
        let bindings = try call.worker(String(node)).bindings
        #expect(bindings.count == count + 2 && bindings.values.allSatisfy(\.open))
        #expect(try call.world.done("subscription.list", params) == before)
        #expect(call.told("subscription.disconnected") == [])
        try call.end()
    }

    @Test func `following slots go on following`() throws {
        var call = try MovingCall()
        let name: JSON = "v"
        for subscription in try call.world.done(
            "subscription.list",
            ["room": "r", "participant": name]
        ).decode(SubscriptionList.Result.self).subscriptions {
            let id = JSON.string(subscription.subscription.rawValue)
            _ = try call.world.done("subscription.remove", ["room": "r", "subscription": id])
        }
        _ = try call.world.done(
            "talkers.subscribe",
            ["room": "r", "participant": name, "audioMids": ["1"], "videoMids": ["0"]]
        )
        let talker = try #require(
            call.worker("b").transports.values.first?.publications.first { $0.kind == .audio }
        )
        call.world.tell(.speech(talker.id, .began(at: call.world.now)), of: "b")
        call.world.run(milliseconds: 500)
        #expect(try call.worker("c").bindings.values.count { $0.open } == 2)
        call.show(draining: ["c"])
        call.world.run(milliseconds: 100)
        let node = String(try #require(call.asked.first).split(separator: " ")[1])
        let count = try call.worker(node).bindings.values.count { $0.open }
        _ = try call.offerOfViewer(peer: 2)
        call.connectAll(at: node)
        #expect(try call.worker(node).bindings.values.count { $0.open } == count + 2)
        let list = try call.world.done("transport.list", ["room": "r", "participant": name])
            .decode(TransportList.Result.self)
        #expect(list.transports.map(\.transport.rawValue) == ["main"])
        #expect(list.transports.first?.mids.map(\.followsTalkers) == [nil, true, true])
        try call.end()
    }

    @Test func `nobody is shown anything on the new connection before it takes over`() throws {
        var call = try MovingCall()
        let other = try #require(
            try call.world.join("q", by: nil, "0:audio:sendonly").stream
        )
        call.show(draining: ["c"])
        call.world.run(milliseconds: 100)
        _ = try call.offer("v", peer: 2, "0:video:recvonly", "1:audio:recvonly", "5:audio:recvonly")
        #expect(throws: IPCError.self) { try call.world.watch("v", other) }
        call.connectAll(at: "a")
        try call.world.watch("v", other)
        try call.end()
    }

    @Test func `m-lines that the new connection lacks end`() throws {
        var call = try MovingCall()
        call.show(draining: ["c", "b"])
        call.world.run(milliseconds: 100)
        #expect(call.asked.sorted() == ["p a drain", "v a drain"])
        _ = try call.offer("v", peer: 2, "1:audio:recvonly")
        _ = try call.offer("p", peer: 3, "0:audio:sendonly")
        call.connectAll(at: "a")
        #expect(try call.streams().map(\.source) == [.microphone])
        let params: JSON = ["room": "r", "participant": "v"]
        let rest = try call.world.done("subscription.list", params)
            .decode(SubscriptionList.Result.self).subscriptions
        #expect(rest.map(\.videoMid) == [nil] && rest.map(\.audioMid?.rawValue) == ["1"])
        try call.end()
    }

    @Test func `a moderator's mute holds over a move`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        _ = try call.world.done(
            "participant.hardMute",
            ["room": "r", "participant": "p", "media": ["audio", "video"]]
        )
        _ = try call.world.done(
            "stream.unpublish",
            ["room": "r", "stream": .string(call.stream)]
        )
        call.connectAll(at: "a")
        #expect(try call.streams().allSatisfy { $0.participant != "p" }, "it stays unpublished")
        let near = try call.worker("a")
        let own = near.transports.values.flatMap(\.publications).map(\.id)
        #expect(!own.isEmpty && own.allSatisfy { near.gates[$0] != true })
        try call.end()
    }

    @Test func `what a moderator has ended stays so on m-lines with other mids`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offer("p", peer: 2, "5:audio:sendonly", "6:video:sendonly")
        _ = try call.world.done(
            "stream.unpublish",
            ["room": "r", "stream": .string(call.stream)]
        )
        call.connectAll(at: "a")
        #expect(try call.streams().allSatisfy { $0.participant != "p" })
        try call.end()
    }

    @Test func `an interruption is over when the new connection takes over`() throws {
        var call = try MovingCall()
        let old = try #require(call.worker("b").transports.keys.first)
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        call.world.tell(.transport(old, .reconnecting), of: "b")
        call.world.events = []
        call.connectAll(at: "a")
        let told = call.world.events.filter { $0.event == "participant.connection" }
        #expect(told.map { $0.data["connection"] } == ["reconnected"])
        #expect(told.map { $0.data["transport"] } == ["main"])
        try call.end()
    }

    @Test func `an offer of the old connection goes on with that one`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        let old = TestOffer(["0:audio:sendonly", "1:video:sendonly", "2:video:recvonly"])
        let params: JSON = ["room": "r", "participant": "p", "sdp": .string(old.text)]
        for isMoving in [false, true] {
            if isMoving { _ = try call.offerOfPublisher(peer: 2) }
            let result = try call.world.done("transport.offer", params)
                .decode(TransportOffer.Result.self)
            #expect(result.sdp.contains("127.0.0.2 5004"))
        }
        #expect(try call.worker("b").transports.count == 1)
        #expect(try call.worker("a").transports.count == 2)
        // A second offer of the new one goes on with that.
        let again = try call.offer(
            "p",
            peer: 2,
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:recvonly"
        )
        #expect(again.sdp.contains("127.0.0.1 5004"))
        #expect(try call.worker("a").transports.count == 2)
        // A third connection takes the place of the second one.
        _ = try call.offerOfPublisher(peer: 3)
        #expect(try call.worker("a").transports.count == 2)
        #expect(try call.worker("b").transports.count == 1)
        call.connectAll(at: "a")
        #expect(try call.worker("b").transports.isEmpty)
        #expect(try call.streams().map(\.stream.rawValue).contains(call.stream))
        try call.end()
    }

    @Test func `a client may use one certificate for both connections`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        var other = TestOffer(["0:audio:sendonly", "1:video:sendonly"])
        other.session = 2
        let params: JSON = ["room": "r", "participant": "p", "sdp": .string(other.text)]
        let result = try call.world.done("transport.offer", params)
            .decode(TransportOffer.Result.self)
        #expect(result.sdp.contains("127.0.0.1 5004"))
        call.connectAll(at: "a")
        #expect(try call.get("p").node == "a")
        try call.end()
    }

    @Test func `who has not been asked cannot have two connections`() throws {
        var call = try MovingCall()
        #expect(throws: IPCError.self) { _ = try call.offerOfPublisher(peer: 2) }
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        call.connectAll(at: "a")
        #expect(throws: IPCError.self) { _ = try call.offerOfPublisher(peer: 3) }
        try call.end()
    }

    @Test func `the new connection stays when the old one is lost first`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        let old = try #require(call.worker("b").transports.keys.first)
        call.world.tell(.transport(old, .disconnected(.timeout)), of: "b")
        #expect(try call.get("p").node == "a")
        #expect(try call.get("p").connection == .connecting)
        #expect(call.nodesTold == ["p a"])
        call.connectAll(at: "a")
        #expect(call.nodesTold == ["p a"])
        #expect(try call.get("p").connection == .connected)
        #expect(try call.streams().contains { $0.participant == "p" })
        try call.end()
    }

    @Test func `the new connection stays when the home is lost with the old one`() throws {
        var call = try MovingCall()
        _ = try call.world.done("server.drain", [:])
        call.show(draining: ["a"])
        call.world.run(milliseconds: 100)
        let node = try #require(call.asked.first { $0.hasPrefix("w ") }).split(separator: " ")[1]
        _ = try call.offer("w", peer: 2, "0:video:recvonly", "1:audio:recvonly")
        call.world.kill("a")
        call.world.events = []
        call.world.adopt(from: "a", by: "b")
        #expect(call.nodesTold == ["w \(node)"])
    }

    @Test func `who loses the old connection in mid-move may begin again`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        let old = try #require(call.worker("b").transports.keys.first)
        call.world.tell(.transport(old, .disconnected(.timeout)), of: "b")
        let again = try call.offerOfPublisher(peer: 3)
        #expect(again.sdp.contains("127.0.0.1 5004"))
        #expect(try call.worker("a").transports.count == 3)
        let newest = try #require(
            call.worker("a").transports.keys.max { $0.index < $1.index }
        )
        call.world.tell(.transport(newest, .connected), of: "a")
        #expect(try call.worker("a").transports.count == 2)
        #expect(try call.get("p").connection == .connected)
        try call.end()
    }

    @Test func `a new connection that fails leaves the old one alone`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        let known = Set(try call.worker("a").transports.keys)
        _ = try call.offerOfPublisher(peer: 2)
        let new = try #require(call.worker("a").transports.keys.first { !known.contains($0) })
        call.world.tell(.transport(new, .disconnected(.timeout)), of: "a")
        #expect(try call.get("p").connection == .connected)
        #expect(try call.worker("a").transports.count == 1)
        #expect(call.told("participant.connection") == [])
        // It may try again.
        _ = try call.offerOfPublisher(peer: 3)
        call.connectAll(at: "a")
        #expect(try call.get("p").node == "a")
        try call.end()
    }

    @Test(arguments: ["transport.close", "participant.leave", "participant.join"])
    func `both connections end with what they are for`(method: String) throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        _ = try call.offerOfPublisher(peer: 2)
        _ = try call.world.done(method, ["room": "r", "participant": "p"])
        #expect(try call.worker("b").transports.isEmpty)
        #expect(try call.worker("a").transports.count == 1)
        try call.end()
    }

    @Test func `somebody whose node is lost while it moves is asked no more`() throws {
        var call = try MovingCall()
        call.show(draining: ["b"])
        call.world.run(milliseconds: 100)
        call.world.kill("b")
        call.world.run(milliseconds: 1_100)
        _ = try call.offerOfPublisher(peer: 2)
        #expect(try call.get("p").node == "a")
        call.connectAll(at: "a")
        #expect(try call.get("p").connection == .connected)
    }
}
