import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Lists from which a restarted signalling server learns what it has forgotten.
@Suite struct RecoveryListTests {
    private func list<M: IPCMethod>(
        _ method: M.Type,
        _ params: JSON,
        _ driver: inout ControlDriver
    ) throws -> M.Result {
        try driver.done(M.name, params).decode(M.Result.self)
    }

    @Test func `transports are listed with their state and what their m-lines carry`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        let answered = try driver.offer("a", "0:audio:sendonly", "1:video:sendrecv")
        let stream = try #require(answered[0].stream)
        try driver.offer(
            "b",
            "0:audio:recvonly",
            "1:video:recvonly",
            "2:audio:recvonly",
            more: ["transport": "tv"]
        )
        try driver.offer("b", "0:audio:sendonly", more: ["transport": "main"])
        let subscription = try driver.watch("b", stream).subscription
        try driver.done(
            "talkers.subscribe",
            [
                "room": "r", "participant": "b", "audioMids": ["2"], "videoMids": [],
                "preferredFrameRate": 15,
            ]
        )
        let place = try #require(driver.plane.rooms["r"]?.room.participants["b"])
            .transports.first { $0.name == "tv" }?.place
        driver.tell(.transport(try #require(place).id, .connected))

        let own = try list(TransportList.self, ["room": "r", "participant": "a"], &driver)
        var audio = LineInfo(mid: "0", kind: .audio, direction: .recvonly)
        audio.source = .microphone
        audio.stream = stream
        var video = LineInfo(mid: "1", kind: .video, direction: .sendrecv)
        video.source = .camera
        video.stream = stream
        video.followsTalkers = false
        let main = TransportInfo(transport: "main", connection: .connecting, mids: [audio, video])
        #expect(own.transports == [main])

        var seen: [TransportInfo] = []
        var params: [String: JSON] = ["room": "r", "participant": "b", "limit": 1]
        repeat {
            let page = try list(TransportList.self, .object(params), &driver)
            seen += page.transports
            params["after"] = page.next.map { .string($0.rawValue) }
        } while params["after"] != nil
        #expect(seen.map(\.transport) == ["main", "tv"])
        #expect(seen.map(\.connection) == [.connecting, .connected])
        let slots = try #require(seen.last).mids
        #expect(slots.map(\.subscription) == [subscription, subscription, nil])
        #expect(slots.map(\.followsTalkers) == [false, false, true])
        #expect(slots.map(\.preferredFrameRate?.framesPerSecond) == [nil, nil, 15])
        let none = driver.call("transport.list", ["room": "r", "participant": "x"])
        #expect(throws: IPCError.self) { try none.get() }
    }

    @Test func `topics are listed, of a room and of one participant`() throws {
        var driver = ControlDriver()
        try driver.room()
        for (id, topics) in [("a", ["chat", "hands"]), ("b", ["chat"])] {
            try driver.join(id)
            for topic in topics {
                try driver.done(
                    "message.subscribe",
                    ["room": "r", "participant": .string(id), "topic": .string(topic)]
                )
            }
        }
        try driver.done(
            "message.publish",
            ["room": "r", "topic": "notes", "message": "m", "persist": true]
        )
        let all = try list(MessageTopics.self, ["room": "r"], &driver).topics
        #expect(
            all == [
                TopicInfo(topic: "chat", subscribers: 2, kept: 0),
                TopicInfo(topic: "hands", subscribers: 1, kept: 0),
                TopicInfo(topic: "notes", subscribers: 0, kept: 1),
            ]
        )
        let own = try list(MessageTopics.self, ["room": "r", "participant": "b"], &driver)
        #expect(own.topics.map(\.topic) == ["chat"])
        let first = try list(MessageTopics.self, ["room": "r", "limit": 2], &driver)
        #expect(first.topics.count == 2)
        let next = JSON.string(try #require(first.next).rawValue)
        let rest = try list(MessageTopics.self, ["room": "r", "after": next], &driver)
        #expect(rest.topics.map(\.topic) == ["notes"] && rest.next == nil)
        let stranger = driver.call("message.topics", ["room": "r", "participant": "x"])
        #expect(throws: IPCError.self) { try stranger.get() }
    }

    @Test func `live streams are listed with their state, without their URL`() throws {
        var driver = ControlDriver(recordings: "/recordings")
        for room in ["r", "q"] { try driver.room(room) }
        var last: OutputID = 0
        for (number, room) in ["r", "q", "r"].enumerated() {
            let url = JSON.string("rtmp://h/a/secret\(number)")
            driver.send("streaming.start", ["room": .string(room), "url": url])
            driver.fence()
            last = driver.plane.shared.taps?.lastID ?? 0
            if room == "r" { driver.tell(.tap(.started(last)), from: 1) }
        }
        driver.tell(.tap(.interrupted(last, cause: "unreachable")), from: 1)
        let listed = try list(StreamingList.self, [:], &driver).streamings
        #expect(listed.map(\.room) == ["r", "q", "r"])
        #expect(listed.map(\.state) == [.streaming, .starting, .interrupted])
        #expect(listed[0].layout == "stage" && listed[0].width == 1_280)
        let text = String(decoding: JSON.encoded(listed), as: UTF8.self)
        #expect(!text.contains("secret"))
        driver.tell(.tap(.resumed(last)), from: 1)
        let own = try list(StreamingList.self, ["room": "r", "limit": 1], &driver)
        #expect(own.streamings == [listed[0]])
        let next = JSON.string(try #require(own.next).rawValue)
        let rest = try list(StreamingList.self, ["room": "r", "after": next], &driver)
        #expect(rest.streamings.map(\.state) == [.streaming] && rest.next == nil)
        driver.send("streaming.stop", ["room": "r"])
        #expect(try list(StreamingList.self, ["room": "r"], &driver).streamings.isEmpty)
    }
}
