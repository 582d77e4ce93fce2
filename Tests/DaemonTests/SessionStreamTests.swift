import JSON
import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import WorkerInterface

/// Vonage's session: streams that come and go, and subscribers to them.
@Suite struct SessionStreamTests {
    /// Makes a room in which `a` publishes sound and a picture, and `b` has slots for both.
    private func call() throws -> (driver: ControlDriver, stream: StreamID) {
        var driver = ControlDriver()
        try driver.room()
        for id in ["a", "b"] { try driver.join(id) }
        let mids = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        return (driver, try #require(mids[0].stream))
    }

    @Test func `O-1 all hear of a new stream and whose it is, and who comes later is shown it`()
        throws
    {
        var (driver, stream) = try call()
        let created = driver.events.filter { $0.event == "stream.created" }
        #expect(created.map(\.audience) == [.all], "its publisher too")
        let info = try #require(created.first?.data["streamInfo"])
        #expect(info["stream"] == .string(stream.rawValue) && info["participant"] == "a")
        let join: JSON = ["room": "r", "participant": "late"]
        let reply = try driver.done("participant.join", join).decode(ParticipantJoin.Result.self)
        #expect(reply.roomInfo.streams?.map(\.stream) == [stream])
        #expect(driver.takeEvents().filter { $0 == "stream.created" }.count == 1)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var before: [ModeratorCodeTests.Step] = []
        var participant: JSON = "b"
        /// Stream to watch; `nil` for that of `a`.
        var stream: JSON?
        var code: Int
    }

    static let rows = [
        Row(testDescription: "O-2 a stream that is unknown", stream: "none", code: 4006),
        Row(
            testDescription: "O-2 a stream that has ended",
            before: [.init("participant.leave", ["participant": "a"])],
            code: 4006
        ),
        Row(
            testDescription: "O-2 a role that may not watch",
            before: [.init("role.change", ["participant": "b", "role": "blind", "force": true])],
            code: 4010
        ),
        Row(
            testDescription: "O-2 a stream that is watched already",
            before: [.init("subscription.add", ["participant": "b"])],
            code: 4009
        ),
        Row(testDescription: "O-2 somebody unknown", participant: "x", code: 4005),
        Row(
            testDescription: "O-2 somebody without slots",
            before: [.init("participant.join", ["participant": "c"])],
            participant: "c",
            code: 4030
        ),
    ]

    @Test(arguments: rows)
    func `a subscription that cannot be is refused at once`(_ row: Row) throws {
        var (driver, stream) = try call()
        let roles: JSON = [
            ["name": "participant", "publish": ["audio": true, "video": true]],
            ["name": "blind", "subscribe": ["roles": ["moderator"]]],
        ]
        try driver.done("room.update", ["room": "r", "settings": ["roles": roles]])
        let watched: [String: JSON] = ["stream": .string(stream.rawValue)]
        for step in row.before {
            let params = step.params.members
            let isAdd = step.method == "subscription.add"
            let full = isAdd ? params.merging(watched) { $1 } : params
            try driver.done(step.method, .object(full))
        }
        driver.events = []
        let call: JSON = [
            "room": "r", "participant": row.participant,
            "stream": row.stream ?? .string(stream.rawValue),
        ]
        guard case .failure(let error) = driver.call("subscription.add", call) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == row.code && driver.takeEvents() == [])
    }

    @Test func `O-6 all hear once that a stream is gone, and its subscriptions with it`() throws {
        var (driver, stream) = try call()
        let subscription = try driver.watch("b", stream).subscription
        driver.events = []
        try driver.offer("a", "0:audio:inactive", "1:video:inactive")
        let gone = driver.events.filter { $0.event == "stream.destroyed" }
        #expect(gone.map(\.audience) == [.all])
        #expect(gone.first?.data["stream"] == .string(stream.rawValue))
        #expect(gone.first?.data["reason"] == "unpublished")
        let remove: JSON = ["room": "r", "subscription": .string(subscription.rawValue)]
        guard case .failure(let error) = driver.call("subscription.remove", remove) else {
            Issue.record("the subscription is still there")
            return
        }
        #expect(error.code == 4007)
        _ = driver.takeEvents()
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        #expect(!driver.takeEvents().contains("stream.destroyed"))
    }

    @Test func `O-11 a subscription tells bytes, packets, losses and their time`() throws {
        var (driver, stream) = try call()
        try driver.watch("b", stream)
        let id = driver.send("stats.get", ["room": "r", "participant": "b"])
        let (_, ids, token) = try #require(driver.takeReports().last)
        var statistics = WorkerStatistics()
        statistics.time = driver.now
        statistics.transports = ids.map { TransportStatistics(id: $0) }
        let room = try #require(driver.plane.rooms["r"]?.room)
        let slots = try #require(room.participants["b"]?.transports.first?.slots)
        for (number, slot) in slots.enumerated() {
            var one = SlotStatistics(id: slot.id)
            one.packets = 100 + UInt64(number)
            one.bytes = 10_000 + UInt64(number)
            one.packetsLost = 3 + Int64(number)
            statistics.slots.append(one)
        }
        driver.tell(.statistics(token: token, statistics))
        let result = try #require(try driver.replies[id]?.get()).decode(StatsGet.Result.self)
        #expect(result.subscriptions.map(\.kind) == [.audio, .video])
        #expect(result.subscriptions.map(\.packets) == [100, 101])
        #expect(result.subscriptions.map(\.bytes) == [10_000, 10_001])
        #expect(result.subscriptions.map(\.packetsLost) == [3, 4])
        #expect(result.subscriptions.allSatisfy { $0.time != nil && $0.stream == stream })
    }
}
