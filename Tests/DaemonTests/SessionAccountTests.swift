import JSON
import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import WorkerInterface

/// The account of a stay in `participant.left`.
@Suite struct SessionAccountTests {
    /// Makes a call in which `b` watches the camera of `a`.
    private func call() throws -> (driver: ControlDriver, stream: StreamID, subscription: String) {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a", ["role": "moderator"])
        try driver.join("b")
        let mids = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        let stream = try #require(mids[0].stream)
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        let subscription = try driver.watch("b", stream).subscription.rawValue
        driver.events = []
        return (driver, stream, subscription)
    }

    private func wait(_ seconds: Int64, _ driver: inout ControlDriver) {
        driver.now = driver.now.advanced(milliseconds: seconds * 1_000)
    }

    private func session(of id: String, _ driver: inout ControlDriver) throws -> SessionInfo {
        let events = driver.events.filter { $0.event == "participant.left" }
        let left = try events.map { try #require(try $0.data(as: ParticipantLeft.self)) }
        return try #require(left.first { $0.participant.rawValue == id }?.session)
    }

    private func leave(_ id: String, _ driver: inout ControlDriver) throws -> SessionInfo {
        driver.events = []
        try driver.done("participant.leave", ["room": "r", "participant": .string(id)])
        return try session(of: id, &driver)
    }

    private func isNear(_ minutes: Double, _ expected: Double) -> Bool {
        abs(minutes - expected) < 0.005
    }

    @Test func `minutes are those of streams and subscriptions`() throws {
        var (driver, _, subscription) = try call()
        wait(60, &driver)
        try driver.done(
            "subscription.update",
            ["room": "r", "subscription": .string(subscription), "video": false]
        )
        wait(60, &driver)
        let viewer = try leave("b", &driver)
        #expect(abs(viewer.duration - 120) < 0.1)
        #expect(isNear(viewer.received.audioMinutes, 2))
        #expect(isNear(viewer.received.videoMinutes, 1))
        #expect(viewer.received.screenMinutes == 0 && viewer.sent == SessionMedia())
        #expect(viewer.roundTripTime == nil && viewer.received.jitter == nil)
        wait(60, &driver)
        let publisher = try leave("a", &driver)
        #expect(isNear(publisher.sent.audioMinutes, 3) && isNear(publisher.sent.videoMinutes, 3))
        #expect(publisher.received == SessionMedia())
    }

    @Test func `screens count as screens, and streams at the same time add up`() throws {
        var (driver, _, _) = try call()
        try driver.join("c")
        let mids = try driver.offer("c", "0:video:sendonly", sources: ["0": "screen"])
        let screen = try #require(mids[0].stream)
        try driver.offer(
            "b",
            "0:audio:recvonly",
            "1:video:recvonly",
            "2:video:recvonly"
        )
        try driver.watch("b", screen)
        wait(60, &driver)
        try driver.done("stream.unpublish", ["room": "r", "stream": .string(screen.rawValue)])
        wait(60, &driver)
        let viewer = try leave("b", &driver)
        #expect(isNear(viewer.received.screenMinutes, 1))
        #expect(isNear(viewer.received.videoMinutes, 2))
        let sharer = try leave("c", &driver)
        #expect(isNear(sharer.sent.screenMinutes, 1) && sharer.sent.videoMinutes == 0)
    }

    @Test func `freezes are told by hop`() throws {
        var (driver, _, _) = try call()
        driver.holdsFences = true
        driver.events = []
        let transport = try driver.transport("b")
        driver.send("participant.leave", ["room": "r", "participant": "b"])
        var quality = LinkQuality()
        let began = Instant(nanoseconds: 0)
        for (reason, milliseconds) in [
            (FreezeReason.unacknowledged, 1_500), (.noFrame, 400), (.repairing, 250),
        ] as [(FreezeReason, Int64)] {
            let length = milliseconds * 1_000_000
            quality.freezes.add(Freeze(began: began, nanoseconds: length, reason: reason))
        }
        driver.tell(.closed(transport, quality))
        driver.fence()
        let viewer = try session(of: "b", &driver)
        #expect(viewer.freezes.count == 3 && viewer.freezes.seconds == 2.15)
        #expect(
            viewer.freezes.hops == [
                HopFreezes(hop: .publisherEncoder, count: 1, seconds: 0.4),
                HopFreezes(hop: .viewerDownlink, count: 2, seconds: 1.75),
            ]
        )
    }

    @Test func `an explanation has the last freezes with their evidence`() throws {
        var (driver, _, subscription) = try call()
        let id = driver.send(
            "subscription.explain",
            ["room": "r", "subscription": .string(subscription)]
        )
        var found = LayerExplanation(
            offered: [],
            names: [nil],
            share: 0,
            limit: .none,
            decisions: []
        )
        let ended = Freeze(began: driver.now, nanoseconds: 700_000_000, reason: .noFrame)
        found.freezes.totals.add(ended)
        found.freezes.recent = [
            ended,
            Freeze(
                began: driver.now,
                nanoseconds: 250_000_000,
                reason: .packetsMissing,
                figure: 12,
                hasEnded: false
            ),
        ]
        let question = try #require(driver.questions.last)
        driver.tell(.explained(token: question.token, found), from: question.worker)
        let explained = try #require(try driver.replies[id]?.get())
        let told = try #require(explained["freezes"])
        #expect(told["count"] == 1 && told["seconds"] == .number(0.7))
        let sum: [String: JSON] = [
            "hop": "publisher-encoder", "count": 1, "seconds": .number(0.7),
        ]
        #expect(told["hops"] == .array([.object(sum)]))
        let list = try #require(told["recent"])
        let recent: [JSON] = if case .array(let entries) = list { entries } else { [] }
        try #require(recent.count == 2)
        #expect(recent.map { $0["hop"] } == ["publisher-encoder", "publisher-uplink"])
        #expect(recent.map { $0["ongoing"] } == [false, true])
        #expect(recent[1]["reason"] == "packets from the publisher were lost (12 missing)")
    }

    @Test(arguments: FreezeHop.allCases)
    func `a hop has one name in the contract and in the metrics`(_ hop: FreezeHop) {
        #expect(FreezeHopName(hop).rawValue == hop.name)
    }

    /// Returns what a worker tells of a transport's path.
    private func quality(roundTrip: Double, lost: UInt8, estimate: Int? = nil) -> LinkQuality {
        var quality = LinkQuality()
        if let estimate { quality.add(estimate: estimate) }
        quality.roundTrip.add(roundTrip)
        quality.sent.add(fractionLost: lost, jitter: 480, clockRate: 48_000)
        quality.received.add(fractionLost: 0, jitter: 900, clockRate: 90_000)
        return quality
    }

    @Test func `the quality is that of all transports of the stay`() throws {
        var (driver, stream, _) = try call()
        driver.holdsFences = true
        let old = try driver.transport("b")
        driver.send("participant.join", ["room": "r", "participant": "b"])
        driver.tell(.closed(old, quality(roundTrip: 0.020, lost: 64, estimate: 2_000_000)))
        driver.fence()
        driver.holdsFences = false
        try driver.offer("b", "0:audio:recvonly")
        try driver.watch("b", stream)
        driver.holdsFences = true
        driver.events = []
        let new = try driver.transport("b")
        driver.send("participant.leave", ["room": "r", "participant": "b"])
        driver.tell(.closed(new, quality(roundTrip: 0.060, lost: 0, estimate: 500_000)))
        #expect(driver.events.isEmpty)
        driver.fence()
        let viewer = try session(of: "b", &driver)
        #expect(viewer.roundTripTime == MeanAndWorst(mean: 40, worst: 60))
        #expect(viewer.estimate == MeanAndWorst(mean: 1_250_000, worst: 500_000))
        #expect(viewer.received.fractionLost == MeanAndWorst(mean: 0.125, worst: 0.25))
        #expect(viewer.received.jitter == MeanAndWorst(mean: 10, worst: 10))
        #expect(viewer.sent.jitter == MeanAndWorst(mean: 10, worst: 10))
        #expect(viewer.sent.fractionLost == MeanAndWorst(mean: 0, worst: 0))
        #expect(driver.plane.operations.qualityCount == 0)
    }

    @Test func `a transport that ends just before its participant leaves counts, too`() throws {
        var (driver, _, _) = try call()
        driver.holdsFences = true
        driver.events = []
        let transport = try driver.transport("b")
        driver.send("transport.close", ["room": "r", "participant": "b"])
        driver.send("participant.leave", ["room": "r", "participant": "b"])
        driver.tell(.closed(transport, quality(roundTrip: 0.020, lost: 0)))
        driver.fence()
        let viewer = try session(of: "b", &driver)
        #expect(viewer.roundTripTime == MeanAndWorst(mean: 20, worst: 20))
        #expect(viewer.estimate == nil)
    }

    @Test func `the quality of somebody's transport is not his namesake's`() throws {
        var (driver, _, _) = try call()
        driver.holdsFences = true
        let transport = try driver.transport("b")
        driver.send("participant.leave", ["room": "r", "participant": "b"])
        driver.send("participant.join", ["room": "r", "participant": "b"])
        driver.tell(.closed(transport, quality(roundTrip: 0.020, lost: 0)))
        driver.fence()
        driver.holdsFences = false
        let namesake = try leave("b", &driver)
        #expect(namesake.roundTripTime == nil)
        #expect(namesake.received == SessionMedia())
        try driver.done("room.close", ["room": "r"])
        #expect(driver.plane.leakedObjects == [])
    }

    @Test func `quality of transports that nobody knows is not kept`() throws {
        var (driver, _, _) = try call()
        driver.tell(.closed(TransportID(index: 77, generation: 1), LinkQuality()))
        #expect(driver.plane.operations.qualityCount == 0)
    }
}
