import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Live streams as signalling servers see them, and the commands to the tap's thread.
@Suite struct StreamingStoryTests {
    private static let tap = 1

    @discardableResult
    private func start(_ driver: inout ControlDriver, _ more: [String: JSON] = [:]) throws -> String
    {
        let step = StreamingCodeTests.start(more)
        let id = driver.send(step.method, step.params)
        driver.settle(driver.plane.shared.taps?.lastID ?? 0)
        let reply = try #require(try driver.replies[id]?.get())
        return try reply.decode(StreamingStart.Result.self).streaming.rawValue
    }

    private func orders(_ driver: inout ControlDriver) -> [OutputCommand] {
        driver.takeCommands().compactMap { if case .tap(let order) = $0 { order } else { nil } }
    }

    /// Returns the publishers displayed by the last command; `nil`: there was no command.
    private func shown(_ driver: inout ControlDriver) -> [String]? {
        let room = driver.plane.rooms["r"]?.room
        for case .tiles(_, let tiles) in orders(&driver).reversed() {
            return tiles.map { room?.streams[$0]?.participant ?? "?" }
        }
        return nil
    }

    @Test func `E-29 E-37 all hear of a live stream, and who comes later is told`() throws {
        var driver = try ControlDriver.tapped()
        _ = driver.takeEventSummaries()
        let step = StreamingCodeTests.start(["by": "m", "width": 640])
        let id = driver.send(step.method, step.params)
        driver.fence()
        #expect(driver.replies[id] == nil, "the server has not taken it")
        #expect(try driver.shown().streaming == nil)
        driver.tell(.tap(.started(1)), from: Self.tap)
        let name = try #require(try driver.replies[id]?.get())
            .decode(StreamingStart.Result.self).streaming
        let started = try #require(driver.events.last).data.decode(StreamingStarted.self)
        #expect(driver.takeEventSummaries() == ["streaming.started all"])
        #expect(started.streaming == name && started.layout == "stage" && started.by == "m")
        #expect(started.width == 640 && started.height == 360)
        #expect(try driver.shown().streaming != nil)
        let joined = try driver.done("participant.join", ["room": "r", "participant": "late"])
        #expect(joined["roomInfo"]?["streaming"] != nil)
        _ = driver.takeEventSummaries()

        driver.holdsFences = true
        let stop = driver.send("streaming.stop", ["room": "r", "by": "m"])
        driver.fence(worker: 0)
        #expect(driver.replies[stop] == nil, "the process has not ended")
        driver.tell(.tap(.ended(1, reason: nil, [])), from: Self.tap)
        driver.fence(worker: Self.tap)
        #expect(try driver.replies[stop]?.get() == [:])
        let stopped = try #require(driver.events.last).data.decode(StreamingStopped.self)
        #expect(driver.takeEventSummaries() == ["streaming.stopped all"])
        #expect(stopped.streaming == name && stopped.reason == "requested" && stopped.by == "m")
        driver.holdsFences = false
        #expect(try driver.shown().streaming == nil)
        #expect(driver.plane.roomOutputs.streamings.isEmpty)
    }

    @Test func `E-29 a server that does not take it is the answer, and no event`() throws {
        var driver = try ControlDriver.tapped()
        _ = driver.takeEventSummaries()
        let step = StreamingCodeTests.start()
        let id = driver.send(step.method, step.params)
        driver.tell(.tap(.ended(1, reason: "unreachable", [])), from: Self.tap)
        driver.fence()
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == 4508 && error.details["cause"] == "unreachable")
        #expect(driver.takeEventSummaries() == [])
        try start(&driver)
    }

    @Test func `E-29 a server that goes and comes is told of, and one that stays away`() throws {
        var driver = try ControlDriver.tapped()
        try start(&driver)
        _ = driver.takeEventSummaries()
        driver.tell(.tap(.interrupted(1, cause: "connection-lost")), from: Self.tap)
        #expect(driver.events.last?.data["cause"] == "connection-lost")
        driver.tell(.tap(.resumed(1)), from: Self.tap)
        driver.tell(.tap(.interrupted(1, cause: "connection-lost")), from: Self.tap)
        driver.tell(.tap(.ended(1, reason: "unreachable", [])), from: Self.tap)
        driver.fence()
        #expect(driver.events.last?.data["reason"] == "unreachable")
        #expect(
            driver.takeEventSummaries() == [
                "streaming.interrupted all", "streaming.resumed all",
                "streaming.interrupted all", "streaming.stopped all",
            ]
        )
        #expect(driver.plane.shared.streaming.open == 0)
        #expect(try driver.shown().streaming == nil)
    }

    @Test func `E-29 a room has several, and stops one or all`() throws {
        var driver = try ControlDriver.tapped("a")
        let first = try start(&driver, ["url": "rtmp://h/1"])
        try start(&driver, ["url": "rtmp://h/2"])
        try start(&driver, ["url": "rtmp://h/3"])
        try driver.done("streaming.stop", ["room": "r", "streaming": .string(first)])
        #expect(driver.plane.rooms["r"]?.room.streamings.count == 2)
        try driver.done("streaming.stop", ["room": "r"])
        #expect(driver.plane.rooms["r"]?.room.streamings.isEmpty == true)
        #expect(driver.plane.shared.identifiers[Self.tap].publications.used == 0)
    }

    @Test func `E-29 with the room they end, those too that have not begun`() throws {
        var driver = try ControlDriver.tapped("a")
        try start(&driver)
        let step = StreamingCodeTests.start(["url": "rtmp://h/2"])
        let id = driver.send(step.method, step.params)
        driver.fence()
        _ = driver.takeEventSummaries()
        try driver.done("room.close", ["room": "r"])
        #expect(driver.takeEventSummaries().contains("streaming.stopped all"))
        driver.tell(.tap(.ended(1, reason: nil, [])), from: Self.tap)
        driver.tell(.tap(.ended(2, reason: nil, [])), from: Self.tap)
        guard case .failure(let error)? = driver.replies[id] else {
            Issue.record("not answered")
            return
        }
        #expect(error.code == 4508)
        #expect(driver.plane.roomOutputs.streamings.isEmpty)
        #expect(driver.plane.shared.streaming.open == 0)
    }

    @Test func `E-29 a caller that disconnects gets no answer`() throws {
        var driver = try ControlDriver.tapped()
        let step = StreamingCodeTests.start()
        let id = driver.send(step.method, step.params)
        driver.plane.connectionClosed(driver.connection)
        driver.settle(1)
        #expect(driver.replies[id] == nil)
        #expect(try driver.shown().streaming != nil)
    }

    @Test func `E-30 the stage follows who talks, and stays where nobody does`() throws {
        var driver = try ControlDriver.tapped("a", "b", "c")
        try start(&driver)
        #expect(shown(&driver) == ["a"], "somebody is better than nobody")
        try driver.begin("b")
        #expect(shown(&driver) == ["b"])
        try driver.begin("c")
        #expect(shown(&driver) == ["c"])
        try driver.end("c")
        #expect(shown(&driver) == ["b"], "b still talks")
        try driver.end("b")
        #expect(shown(&driver) == nil)
        try driver.begin("a")
        #expect(shown(&driver) == ["a"])
    }

    @Test func `E-30 V-10 the stage is with those pinned, and a screen before all`() throws {
        var driver = try ControlDriver.tapped("a", "b", "c")
        try start(&driver)
        try driver.begin("a")
        _ = shown(&driver)
        try driver.done("pin.add", ["room": "r", "participants": ["b", "c"]])
        #expect(shown(&driver) == ["b", "c"], "side by side")
        try driver.begin("c")
        #expect(shown(&driver) == nil, "whoever talks")
        try driver.end("c")
        try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:sendonly",
            sources: ["2": "screen"]
        )
        #expect(shown(&driver) == ["b", "c", "a"], "the screen joins them")
        try driver.done("pin.remove", ["room": "r", "participants": ["b"]])
        #expect(shown(&driver) == ["c", "a"])
        try driver.done("pin.remove", ["room": "r", "participants": ["c"]])
        #expect(shown(&driver) == ["a"])
        try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:inactive",
            sources: ["2": "screen"]
        )
        #expect(shown(&driver) == ["a"], "whose camera is back")
    }

    @Test func `E-30 on a stage one video is read, and all audio`() throws {
        var driver = try ControlDriver.tapped("a", "b")
        driver.commands = []
        try start(&driver)
        func tracks(_ orders: [OutputCommand]) -> [String] {
            orders.compactMap { order in
                switch order {
                case .attach(_, let track): "\(track.participant) \(track.kind)"
                case .detach: "detach"
                case .forget: "forget"
                case .tiles: "tiles"
                default: nil
                }
            }
        }
        #expect(tracks(orders(&driver)) == ["a audio", "a video", "b audio", "tiles"])
        try driver.begin("b")
        #expect(tracks(orders(&driver)) == ["b video", "detach", "tiles"])
        let mute: JSON = ["room": "r", "participant": "b", "media": ["video"]]
        try driver.done("participant.hardMute", mute)
        #expect(tracks(orders(&driver)) == ["a video", "forget", "detach", "tiles"])
        try driver.done("participant.leave", ["room": "r", "participant": "a"])
        let left = tracks(orders(&driver))
        #expect(left == ["forget", "detach", "forget", "detach", "tiles"])
    }

    @Test func `in a grid everybody keeps the tile`() throws {
        var driver = try ControlDriver.tapped("a", "b", "c")
        try start(&driver, ["layout": "grid"])
        #expect(shown(&driver) == ["a", "b", "c"])
        try driver.begin("c")
        #expect(shown(&driver) == nil)
        try driver.done("participant.leave", ["room": "r", "participant": "b"])
        #expect(shown(&driver) == ["a", "c"])
        try driver.join("d")
        try driver.offer("d", "0:video:sendonly")
        #expect(shown(&driver) == ["a", "c", "d"])
    }

    @Test func `V-10 a grid shows the pinned alone, until they are pinned no more`() throws {
        var driver = try ControlDriver.tapped("a", "b", "c", "d")
        try start(&driver, ["layout": "grid"])
        #expect(shown(&driver) == ["a", "b", "c", "d"])
        try driver.done("pin.add", ["room": "r", "participants": ["c"]])
        #expect(shown(&driver) == ["c"])
        try driver.done("pin.add", ["room": "r", "participants": ["a", "d"]])
        #expect(shown(&driver) == ["c", "a", "d"])
        try driver.begin("b")
        #expect(shown(&driver) == nil, "who talks is heard, not seen")
        try driver.done("pin.remove", ["room": "r", "participants": ["c"]])
        #expect(shown(&driver) == ["a", "d"])
        // Without a picture nobody is pinned for the stream; with one, both of somebody's are.
        let mute: JSON = ["room": "r", "participant": "d", "media": ["video"]]
        try driver.done("participant.hardMute", mute)
        #expect(shown(&driver) == ["a"])
        try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:sendonly",
            sources: ["2": "screen"]
        )
        #expect(shown(&driver) == ["a", "a"])
        try driver.done("pin.remove", ["room": "r", "participants": ["a"]])
        #expect(shown(&driver)?.sorted() == ["a", "a", "b", "c"], "d is pinned, but dark")
        try driver.done("participant.hardUnmute", mute)
        #expect(shown(&driver) == ["d"])
        try driver.done("pin.remove", ["room": "r", "participants": ["d"]])
        #expect(shown(&driver)?.count == 5)
    }

    @Test func `V-10 a pinned person who leaves makes place for the others`() throws {
        var driver = try ControlDriver.tapped("a", "b")
        for layout in ["grid", "stage"] {
            let id = try start(&driver, ["layout": .string(layout)])
            _ = shown(&driver)
            try driver.done("pin.add", ["room": "r", "participants": ["b"]])
            #expect(shown(&driver) == ["b"])
            try driver.done("participant.leave", ["room": "r", "participant": "b"])
            #expect(shown(&driver) == ["a"])
            try driver.join("b")
            try driver.offer("b", "0:audio:sendonly", "1:video:sendonly")
            try driver.done("streaming.stop", ["room": "r", "streaming": .string(id)])
        }
    }

    @Test func `a grid has nine tiles, for talkers first`() throws {
        var driver = try ControlDriver.tapped()
        for number in 0..<11 {
            try driver.join("p\(number)")
            try driver.offer("p\(number)", "0:audio:sendonly", "1:video:sendonly")
        }
        try start(&driver, ["layout": "grid"])
        #expect(shown(&driver)?.count == 9)
        try driver.begin("p10")
        let tiles = try #require(shown(&driver))
        #expect(tiles == (0..<8).map { "p\($0)" } + ["p10"])
    }

    struct Shown: CustomTestStringConvertible, Sendable {
        var url: String
        var server: String
        var testDescription: String { url }
    }

    static let urls = [
        Shown(url: "rtmp://h/app/key", server: "rtmp://h"),
        Shown(url: "RTMPS://live.example:443/app/key?x=1", server: "rtmps://live.example:443"),
        Shown(url: "rtmp://user:word@h/app/key", server: "rtmp://h"),
        Shown(url: "rtmp://[::1]:1935/app/key", server: "rtmp://[::1]:1935"),
    ]

    @Test(arguments: urls)
    func `E-29 a URL shows its server alone`(_ row: Shown) throws {
        let url = try #require(StreamURL(row.url))
        #expect("\(url)" == row.server && String(reflecting: url) == row.server)
        var dumped = ""
        dump(url, to: &dumped)
        #expect(!dumped.contains("key") && !dumped.contains("word"))
        #expect(url.text == row.url)
    }

    /// URLs whose host two parsers may read differently.
    static let confusing = [
        "rtmp://evil?@trusted/live/k",
        "rtmp://evil#@trusted/live/k",
        "rtmp://evil\\@trusted/live/k",
        "rtmp://evil\\/live@trusted/k",
        "rtmp://user@evil@trusted/live/k",
        "rtmp://user[@trusted/live/k",
        "rtmp://us er@trusted/live/k",
        "rtmp://trusted\u{9}/live/k",
        "rtmp://trusted\u{0}.evil/live/k",
        "rtmp://trusted\r\n/live/k",
        "rtmp://@trusted/live/k",
        "rtmp://user@/live/k",
        "rtmp://trusted:/live/k",
        "rtmp://trusted:+80/live/k",
        "rtmp://trusted:0/live/k",
        "rtmp://trusted:65536/live/k",
        "rtmp://trusted:80:81/live/k",
        "rtmp://[::1/live/k",
        "rtmp://[::1]1935/live/k",
        "rtmp://[10.1]/live/k",
        "rtmp://[evil]@trusted/live/k",
        "rtmp:///live/k",
        "rtmp:////evil/live/k",
        "rtmp:/trusted/live/k",
        "rtmp://trusted?/live/k",
        "rtmp://trusted#/live/k",
        "rtmp://tr%75sted/live/k",
        "rtmp://tr\u{fc}sted/live/k",
        "rtmp,tcp://trusted/live/k",
        // libavformat truncates names at 255 bytes; DNS has at most 253 (RFC 1035 §2.3.4).
        "rtmp://\(String(repeating: "a", count: 254))/live/k",
    ]

    @Test(arguments: confusing)
    func `A14 a URL whose server could be read in two ways is none`(_ text: String) {
        #expect(StreamURL(text) == nil)
    }
}
