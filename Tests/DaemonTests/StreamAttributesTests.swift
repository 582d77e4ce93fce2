import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// Attributes that offers give to streams: `name`, `custom` and `audioFallback`.
@Suite struct StreamAttributesTests {
    private static let lines = [
        "0:audio:sendonly", "1:video:sendonly", "2:video:sendonly", "3:audio:sendonly",
    ]

    private func driver(_ settings: JSON = [:]) throws -> ControlDriver {
        var driver = ControlDriver()
        try driver.room("r", settings)
        try driver.join("m", ["role": "moderator"])
        try driver.join("a")
        driver.events = []
        return driver
    }

    /// Offers a camera with a microphone and a screen with its sound.
    private func offer(_ driver: inout ControlDriver, _ more: [String: JSON]) throws {
        driver.commands = []
        driver.events = []
        try driver.offer(
            "a",
            Self.lines[0],
            Self.lines[1],
            Self.lines[2],
            Self.lines[3],
            sources: ["2": "screen", "3": "screen"],
            more: more
        )
    }

    /// Returns the camera's and the screen's stream as they are shown.
    private func shown(_ driver: inout ControlDriver) throws -> (StreamInfo, StreamInfo) {
        let streams = try driver.shown().streams
        let camera = try #require(streams.first { $0.source != .screen })
        return (camera, try #require(streams.first { $0.source == .screen }))
    }

    @Test func `O-10 a stream has the name and the data that an offer gives it`() throws {
        var driver = try driver()
        let custom: JSON = ["face": ["x": 1, "y": [true, .null]]]
        try offer(&driver, ["streams": ["1": ["name": "Ann", "custom": custom]]])
        let created = try driver.events.filter { $0.event == "stream.created" }
            .map { try $0.data.decode(StreamCreated.self).streamInfo }
        #expect(created.map(\.name) == ["Ann", nil] && created.map(\.custom) == [custom, [:]])
        var (camera, screen) = try shown(&driver)
        #expect([camera, screen] == created)
        // Another offer keeps what it does not name, and tells no change where there is none.
        try offer(&driver, [:])
        #expect(driver.takeEvents() == [])
        try offer(&driver, ["streams": ["0": ["custom": [:]], "2": ["name": "Slides"]]])
        #expect(driver.takeEvents() == ["stream.changed", "stream.changed"])
        (camera, screen) = try shown(&driver)
        #expect(camera.name == "Ann" && camera.custom == [:] && screen.name == "Slides")
        try offer(&driver, ["streams": ["0": ["name": .null, "custom": .null]]])
        (camera, screen) = try shown(&driver)
        #expect(camera.name == nil && camera.custom == [:] && screen.name == "Slides")
    }

    @Test func `O-10 of several m-lines of a stream the last counts`() throws {
        var driver = try driver()
        let streams: JSON = [
            "1": ["name": "video"], "0": ["name": "audio", "custom": ["k": 1]],
            "3": ["name": "sound"], "2": ["name": "screen"], "9": ["name": "nowhere"],
        ]
        try offer(&driver, ["streams": streams])
        let (camera, screen) = try shown(&driver)
        #expect(camera.name == "video" && camera.custom == ["k": 1] && screen.name == "sound")
    }

    @Test func `O-10 a stream that is made anew has its attributes`() throws {
        var driver = try driver(["mode": "lecture"])
        let streams: JSON = ["0": ["name": "Ann", "custom": ["k": 1], "audioFallback": false]]
        try offer(&driver, ["streams": streams])
        #expect(try driver.shown().streams.isEmpty)
        for round in 0..<2 {
            try driver.done("floor.request", ["room": "r", "participant": "a"])
            try driver.done("floor.grant", ["room": "r", "participant": "a"])
            let (camera, screen) = try shown(&driver)
            #expect(camera.name == "Ann" && camera.custom == ["k": 1], "round \(round)")
            #expect(!camera.audioFallback && screen.name == nil)
            try driver.done("floor.release", ["room": "r", "participant": "a"])
        }
        // Another transport begins without any.
        try driver.join("a")
        try offer(&driver, [:])
        try driver.done("floor.request", ["room": "r", "participant": "a"])
        try driver.done("floor.grant", ["room": "r", "participant": "a"])
        #expect(try shown(&driver).0.name == nil)
    }

    @Test func `O-10 an m-line that is refused keeps them for later`() throws {
        var driver = try driver()
        let change: JSON = ["room": "r", "participant": "a", "role": "viewer", "force": true]
        try driver.done("role.change", change)
        try offer(&driver, ["streams": ["0": ["name": "Ann"]]])
        #expect(try driver.shown().streams.isEmpty)
        let back: JSON = ["room": "r", "participant": "a", "role": "participant", "force": true]
        try driver.done("role.change", back)
        try offer(&driver, [:])
        #expect(try shown(&driver).0.name == "Ann")
    }

    @Test func `O-10 what is too long or unknown is refused`() throws {
        var driver = try driver()
        let long = String(repeating: "x", count: 65_536)
        let wrong: [JSON] = [
            ["name": .string(String(repeating: "n", count: 257))], ["custom": ["k": .string(long)]],
            ["custom": []], ["audioFallback": "no"], ["title": "x"],
        ]
        for attributes in wrong {
            let params: JSON = [
                "room": "r", "participant": "a", "sdp": .string(TestOffer(Self.lines).text),
                "streams": ["0": attributes],
            ]
            guard case .failure(let error) = driver.call("transport.offer", params) else {
                Issue.record("not refused: \(attributes)")
                continue
            }
            #expect(error.code == -32602)
        }
        #expect(try driver.shown().streams.isEmpty)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var offer: [String: JSON]
        var camera: Bool
        var screen: Bool
    }

    static let rows = [
        Row(testDescription: "the default", offer: [:], camera: true, screen: false),
        Row(
            testDescription: "for all",
            offer: ["audioFallback": true],
            camera: true,
            screen: true
        ),
        Row(
            testDescription: "for none",
            offer: ["audioFallback": false],
            camera: false,
            screen: false
        ),
        Row(
            testDescription: "for one",
            offer: ["streams": ["1": ["audioFallback": false]]],
            camera: false,
            screen: false
        ),
        Row(
            testDescription: "for one against the others",
            offer: ["audioFallback": false, "streams": ["2": ["audioFallback": true]]],
            camera: false,
            screen: true
        ),
        Row(
            testDescription: "said by the microphone",
            offer: ["streams": ["0": ["audioFallback": false]]],
            camera: false,
            screen: false
        ),
    ]

    @Test(arguments: rows)
    func `O-9 each stream says whether its video may be switched off`(_ row: Row) throws {
        var driver = try driver()
        try offer(&driver, row.offer)
        let (camera, screen) = try shown(&driver)
        #expect(camera.audioFallback == row.camera && screen.audioFallback == row.screen)
        // The worker is told with the video itself.
        var configured: [String: Bool] = [:]
        for case .configure(_, let configuration) in driver.takeCommands() {
            for video in configuration.publications where video.kind == .video {
                configured[video.mid] = video.audioFallback
            }
        }
        #expect(configured == ["1": row.camera, "2": row.screen])
        // And with every viewer.
        try driver.offer("m", "0:video:recvonly", "1:video:recvonly")
        driver.commands = []
        for stream in [camera, screen] { try driver.watch("m", stream.stream) }
        #expect(bindings(&driver) == [row.camera, row.screen])
    }

    private func bindings(_ driver: inout ControlDriver) -> [Bool] {
        driver.takeCommands().compactMap { command in
            guard case .bind(_, let binding?) = command else { return nil }
            return binding.mayFallBack
        }
    }

    @Test(
        arguments: zip(
            [VideoHold.quality, .interrupted, .role],
            ["quality", "interrupted", "role"]
        )
    )
    func `O-8 O-9 who loses such video all the same is told as ever`(
        _ reason: VideoHold,
        _ word: String
    ) throws {
        var driver = try driver()
        try offer(&driver, ["audioFallback": false])
        let (camera, _) = try shown(&driver)
        try driver.offer("m", "0:video:recvonly")
        let added = try driver.watch("m", camera.stream)
        driver.events = []
        let room = try #require(driver.plane.rooms["r"]?.room)
        let subscription = try room.subscription(added.subscription.rawValue)
        let slot = try #require(room.participants["m"]?.transports[0].slots[0].id)
        for hold in [reason, nil] {
            driver.tell(.videoHeld(slot, subscription: subscription.number, hold))
        }
        let told = JSON.string(word)
        #expect(driver.events.map { $0.data["reason"] } == [told, told])
        #expect(
            driver.takeEventSummaries() == [
                "subscription.videoDisabled m", "subscription.videoEnabled m",
            ]
        )
    }

    @Test func `O-9 null takes back what was said of all streams`() throws {
        var driver = try driver()
        try offer(&driver, ["audioFallback": false])
        try offer(&driver, [:])
        var (camera, screen) = try shown(&driver)
        #expect(!camera.audioFallback && !screen.audioFallback)
        try offer(&driver, ["audioFallback": .null])
        (camera, screen) = try shown(&driver)
        #expect(camera.audioFallback && !screen.audioFallback)
    }

    @Test func `O-9 a change reaches who watches already`() throws {
        var driver = try driver()
        try offer(&driver, [:])
        let (camera, _) = try shown(&driver)
        try driver.offer("m", "0:video:recvonly")
        try driver.watch("m", camera.stream)
        try offer(&driver, ["streams": ["1": ["audioFallback": false]]])
        #expect(bindings(&driver) == [false])
        #expect(driver.takeEvents() == ["stream.changed"])
        try offer(&driver, ["streams": ["1": ["audioFallback": .null]]])
        #expect(bindings(&driver) == [true])
        #expect(driver.takeEvents() == ["stream.changed"])
    }
}
