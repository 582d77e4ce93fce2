import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

/// Plain RTP output as signalling servers see it, and the commands to the tap's thread.
@Suite struct OutputStoryTests {
    private static let tap = 1

    private func stream(of name: String, _ driver: ControlDriver) throws -> String {
        try #require(driver.plane.rooms["r"]?.room.participants[name]?.streams.first)
    }

    private func params(
        _ stream: String,
        _ more: [String: JSON] = [:],
        kinds: [String] = ["audio", "video"]
    ) -> JSON {
        var params: [String: JSON] = ["room": "r", "stream": .string(stream)]
        for (index, kind) in kinds.enumerated() {
            params[kind] = ["address": .string("127.0.0.1:\(5_000 + 2 * index)")]
        }
        return .object(params.merging(more) { $1 })
    }

    private func orders(_ driver: inout ControlDriver) -> [OutputCommand] {
        driver.takeCommands().compactMap { if case .tap(let order) = $0 { order } else { nil } }
    }

    private func words(_ orders: [OutputCommand]) -> [String] {
        orders.compactMap { order in
            switch order {
            case .open(let setup):
                if case .output = setup.purpose { "open" } else { "open another" }
            case .attach(_, let track): "attach \(track.participant) \(track.kind)"
            case .detach: "detach"
            case .close: "close"
            case .forget, .tiles, .note: nil
            }
        }
    }

    @Test func `E-3 E-30 a stream goes out, and all hear of it`() throws {
        var driver = try ControlDriver.tapped("a", "b")
        let stream = try stream(of: "a", driver)
        _ = driver.takeEventSummaries()
        driver.commands = []
        let reply = try driver.done("tap.start", params(stream, ["by": "m"]))
        let result = try reply.decode(TapStart.Result.self)
        #expect(
            words(orders(&driver)) == ["open", "attach a audio", "attach a video"],
            "and nothing of b"
        )
        let started = try #require(driver.events.last).data.decode(TapStarted.self)
        #expect(driver.takeEventSummaries() == ["tap.started all"])
        #expect(started.tap == result.tap && started.stream.rawValue == stream)
        #expect(started.by == "m")

        var counts = RTPForwardCounts()
        (counts.packets, counts.bytes, counts.dropped, counts.refused) = (5, 6_000, 1, 2)
        driver.tell(.tap(.sent(1, counts)), from: Self.tap)
        let listed = try driver.done("tap.list", ["room": "r"]).decode(TapList.Result.self)
        let info = try #require(listed.taps.first)
        #expect(info.tap == result.tap && info.audio?.address == "127.0.0.1:5000")
        #expect(info.video?.address == "127.0.0.1:5002")
        #expect((info.packets, info.bytes, info.dropped, info.refused) == (5, 6_000, 1, 2))

        try driver.done("tap.stop", ["room": "r", "tap": .string(result.tap.rawValue)])
        let stopped = try #require(driver.events.last).data.decode(TapStopped.self)
        #expect(stopped.reason == "requested" && stopped.tap == result.tap)
        #expect(words(orders(&driver)) == ["close"])
        #expect(driver.plane.shared.outputs.open == 0 && driver.plane.roomOutputs.forwards.isEmpty)
        #expect(driver.plane.shared.identifiers[Self.tap].publications.used == 0)
        let none = try driver.done("tap.list").decode(TapList.Result.self)
        #expect(none.taps.isEmpty)
    }

    @Test func `the description says what goes where`() throws {
        var driver = try ControlDriver.tapped("a")
        let stream = try stream(of: "a", driver)
        let more: [String: JSON] = ["video": ["address": "[::1]:6000"]]
        let result = try driver.done("tap.start", params(stream, more))
            .decode(TapStart.Result.self)
        #expect(
            result.sdp.split(separator: "\r\n", omittingEmptySubsequences: false) == [
                "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=\(result.tap)", "t=0 0",
                "m=audio 5000 RTP/AVP 111", "c=IN IP4 127.0.0.1", "a=rtpmap:111 opus/48000/2",
                "a=fmtp:111 sprop-stereo=1", "a=recvonly", "m=video 6000 RTP/AVP 96",
                "c=IN IP6 ::1", "a=rtpmap:96 VP8/90000", "a=recvonly", "",
            ]
        )
    }

    @Test func `one kind alone may go out`() throws {
        var driver = try ControlDriver.tapped("a")
        let stream = try stream(of: "a", driver)
        driver.commands = []
        try driver.done("tap.start", params(stream, kinds: ["video"]))
        #expect(words(orders(&driver)) == ["open", "attach a video"])
    }

    @Test func `E-3 with the stream, the room or its codec it ends, and says why`() throws {
        var driver = try ControlDriver.tapped("a", "b")
        for (name, reason) in [("a", "stream-ended"), ("b", "codec-changed")] {
            let stream = try stream(of: name, driver)
            try driver.done("tap.start", params(stream))
            let id = driver.plane.shared.taps?.lastID ?? 0
            driver.commands = []
            if reason == "stream-ended" {
                try driver.done("participant.leave", ["room": "r", "participant": .string(name)])
                #expect(words(orders(&driver)) == ["close"])
            } else {
                driver.tell(.tap(.ended(id, reason: reason, [])), from: Self.tap)
                driver.fence()
            }
            let stopped = try #require(driver.events.last { $0.event == "tap.stopped" })
            #expect(stopped.data["reason"] == .string(reason))
            #expect(driver.plane.roomOutputs.forwards.isEmpty)
            #expect(driver.plane.shared.outputs.open == 0)
        }
        try driver.done("tap.start", params(try stream(of: "b", driver)))
        try driver.done("room.close", ["room": "r"])
        let stopped = try #require(driver.events.last { $0.event == "tap.stopped" })
        #expect(stopped.data["reason"] == "room-closed")
        #expect(driver.plane.roomOutputs.forwards.isEmpty)
    }

    @Test func `with a room that goes on elsewhere it ends without a word`() throws {
        var driver = try ControlDriver.tapped("a")
        try driver.done("tap.start", params(try stream(of: "a", driver)))
        #expect(driver.plane.rtpForwardCount == 1)
        _ = driver.takeEvents()
        driver.plane.abandon("r", at: driver.now)
        driver.drain()
        driver.fence()
        #expect(driver.takeEvents() == [])
        #expect(driver.plane.rtpForwardCount == 0 && driver.plane.shared.outputs.open == 0)
        let listed = try driver.done("tap.list").decode(TapList.Result.self)
        #expect(listed.taps.isEmpty)
    }

    struct Wrong: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var more: [String: JSON]
        var code: Int
        var reason: String
        var parameter: String?
    }

    static let wrong = [
        Wrong(
            testDescription: "another machine",
            more: ["video": ["address": "192.0.2.1:5002"]],
            code: 4010,
            reason: "address-not-allowed"
        ),
        Wrong(
            testDescription: "another machine over IPv6",
            more: ["audio": ["address": "[2001:db8::1]:5002"]],
            code: 4010,
            reason: "address-not-allowed"
        ),
        Wrong(
            testDescription: "no port",
            more: ["audio": ["address": "127.0.0.1"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "audio.address"
        ),
        Wrong(
            testDescription: "no port above",
            more: ["video": ["address": "127.0.0.1:65535"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "video.address"
        ),
        Wrong(
            testDescription: "port 0",
            more: ["video": ["address": "127.0.0.1:0"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "video.address"
        ),
        Wrong(
            testDescription: "a host's name",
            more: ["video": ["address": "localhost:5002"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "video.address"
        ),
        Wrong(
            testDescription: "any address",
            more: ["video": ["address": "0.0.0.0:5002"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "video.address"
        ),
        Wrong(
            testDescription: "video where audio's RTCP goes",
            more: ["video": ["address": "127.0.0.1:5001"]],
            code: -32602,
            reason: "invalid-params",
            parameter: "video.address"
        ),
        Wrong(
            testDescription: "a stream that is not there",
            more: ["stream": "str-x"],
            code: 4006,
            reason: "no-such-stream"
        ),
        Wrong(
            testDescription: "a participant without the right",
            more: ["by": "a"],
            code: 4010,
            reason: "not-permitted"
        ),
    ]

    @Test(arguments: wrong)
    func `E-30 invalid and forbidden outputs are refused`(_ row: Wrong) throws {
        var driver = try ControlDriver.tapped("a")
        let params = params(try stream(of: "a", driver), row.more)
        guard case .failure(let error) = driver.call("tap.start", params) else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == row.code && error.reason == row.reason)
        #expect(error.details["parameter"] == row.parameter.map { .string($0) })
        #expect(driver.plane.shared.outputs.open == 0)
    }

    @Test func `missing tracks and invalid kinds are refused`() throws {
        var driver = try ControlDriver.tapped()
        try driver.join("a")
        try driver.offer("a", "0:audio:sendonly")
        let stream = try stream(of: "a", driver)
        func code(_ method: String, _ params: JSON) -> (Int, String)? {
            guard case .failure(let error) = driver.call(method, params) else { return nil }
            return (error.code, error.reason)
        }
        let track = try #require(code("tap.start", params(stream)))
        #expect(track == (4091, "no-such-track"))
        let neither = try #require(code("tap.start", params(stream, kinds: [])))
        #expect(neither == (-32602, "invalid-params"))
        let tap = try #require(code("tap.stop", ["room": "r", "tap": "tap-x"]))
        #expect(tap == (4012, "no-such-tap"))
    }

    @Test func `a room has so many, and a server`() throws {
        var driver = try ControlDriver.tapped("a")
        let stream = try stream(of: "a", driver)
        driver.plane.shared.outputs.roomLimit = 2
        for _ in 0..<2 { try driver.done("tap.start", params(stream)) }
        for limit in ["tapsPerRoom", "taps"] {
            guard case .failure(let error) = driver.call("tap.start", params(stream)) else {
                Issue.record("not refused")
                return
            }
            #expect(error.code == 4029 && error.details["limit"] == .string(limit))
            driver.plane.shared.outputs.limit = 2
        }
    }

    struct Reach: CustomTestStringConvertible, Sendable {
        var network: String
        var inside: [String]
        var outside: [String]
        var testDescription: String { network }
    }

    static let networks = [
        Reach(
            network: "127.0.0.0/8",
            inside: ["127.0.0.1", "127.255.0.9"],
            outside: ["128.0.0.0"]
        ),
        Reach(network: "10.1.2.3", inside: ["10.1.2.3"], outside: ["10.1.2.2", "::1"]),
        Reach(network: "0.0.0.0/0", inside: ["192.0.2.1"], outside: ["2001:db8::1"]),
        Reach(network: "::1", inside: ["::1"], outside: ["::2", "127.0.0.1"]),
        Reach(network: "fd00::/8", inside: ["fdff::1"], outside: ["fe00::1"]),
        Reach(
            network: "2001:db8:0:0:8000::/65",
            inside: ["2001:db8::8000:0:0:1"],
            outside: ["2001:db8::1"]
        ),
        Reach(network: "::/0", inside: ["::1", "192.0.2.1"], outside: []),
    ]

    @Test(arguments: networks)
    func `a network says who is in it`(_ row: Reach) throws {
        let network = try #require(IPNetwork(text: row.network))
        #expect(network.text == row.network)
        for text in row.inside {
            #expect(network.contains(try #require(Address(text: text, port: 9))), "\(text)")
        }
        for text in row.outside {
            #expect(!network.contains(try #require(Address(text: text))), "\(text)")
        }
    }

    @Test(arguments: [
        "", "10.0.0.0/33", "10.0.0.1/8", "::1/129", "10.0.0.0/", "10.0.0.0/-1", "x/8",
    ])
    func `no network`(_ text: String) { #expect(IPNetwork(text: text) == nil) }
}
