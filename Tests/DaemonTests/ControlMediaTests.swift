import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

@Suite struct ControlMediaTests {
    /// Makes a call in which `a` publishes; `b` has slots and watches.
    private func call(slots: [String]) throws -> (driver: ControlDriver, stream: StreamID) {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        let stream = try #require(
            try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        let params: JSON = [
            "room": "r", "participant": "b", "sdp": .string(TestOffer(slots).text),
        ]
        try driver.done("transport.offer", params)
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        return (driver, stream)
    }

    /// Returns the states set for gates and slots, in order.
    private func opened(_ commands: [WorkerCommand]) -> [Bool?] {
        commands.map { command in
            switch command {
            case .gate(_, let isOpen): isOpen
            case .bind(_, let binding): binding?.open
            case .configure, .close, .limit, .feature, .mirror, .unmirror, .relay, .hold, .explain,
                .report, .reportTransports, .fence, .tap, .resume, .endResumption,
                .postponeResumption, .link, .lease:
                nil
            }
        }
    }

    struct SlotRow: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var slots: [String]
        var named: [String: JSON] = [:]
        var audio: Mid?
        var video: Mid?
        var refusal: Int?
    }

    static let slotRows: [SlotRow] = [
        SlotRow(
            testDescription: "the first free ones",
            slots: ["0:audio:recvonly", "1:video:recvonly", "2:video:recvonly"],
            audio: "0",
            video: "1"
        ),
        SlotRow(
            testDescription: "the named ones",
            slots: ["0:audio:recvonly", "1:video:recvonly"],
            named: ["audioMid": "0", "videoMid": "1"],
            audio: "0",
            video: "1"
        ),
        SlotRow(
            testDescription: "one named, one free",
            slots: ["0:audio:recvonly", "1:video:recvonly", "2:video:recvonly"],
            named: ["videoMid": "2"],
            audio: "0",
            video: "2"
        ),
        SlotRow(
            testDescription: "the other kind alone",
            slots: ["0:audio:recvonly"],
            audio: "0"
        ),
        SlotRow(
            testDescription: "both ways on one m-line",
            slots: ["0:video:sendrecv"],
            video: "0"
        ),
        SlotRow(testDescription: "none", slots: ["0:audio:sendonly"], refusal: 4030),
        SlotRow(
            testDescription: "named of the wrong kind",
            slots: ["0:audio:recvonly"],
            named: ["videoMid": "0"],
            refusal: 4011
        ),
    ]

    @Test(arguments: slotRows)
    func `slots are assigned`(_ row: SlotRow) throws {
        var (driver, stream) = try call(slots: row.slots)
        do throws(IPCError) {
            let params: [String: JSON] = [
                "room": "r", "participant": "b", "stream": .string(stream.rawValue),
            ]
            let result = try driver.call(
                "subscription.add",
                .object(params.merging(row.named) { $1 })
            ).get().decode(SubscriptionAdd.Result.self)
            #expect(result.audioMid == row.audio && result.videoMid == row.video)
            #expect(row.refusal == nil)
        } catch {
            #expect(error.code == row.refusal)
        }
    }

    @Test func `a slot in use is not free, and is after unsubscribing`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        let first = try driver.watch("b", stream).subscription
        try driver.join("c")
        let other = try #require(try driver.offer("c", "0:video:sendonly")[0].stream)
        #expect(throws: IPCError.self) { try driver.watch("b", other) }
        #expect(throws: IPCError.self) { try driver.watch("b", other, ["videoMid": "1"]) }
        try driver.done(
            "subscription.remove",
            ["room": "r", "subscription": .string(first.rawValue)]
        )
        let second = try driver.watch("b", other)
        #expect(second.videoMid == "1" && second.audioMid == nil)
    }

    @Test func `the slot of a stream that ends is free for what the same offer brings`() throws {
        var driver = ControlDriver()
        try driver.room()
        for id in ["a", "viewer"] { try driver.join(id) }
        let sources: JSON = ["2": "screen"]
        let mids = try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:inactive",
            "2:video:sendonly",
            sources: sources
        )
        try driver.offer("viewer", "0:audio:recvonly", "1:video:recvonly")
        let camera = try driver.watch("viewer", try #require(mids[0].stream))
        try driver.watch("viewer", try #require(mids[2].stream))
        #expect(camera.videoMid == nil)
        try driver.offer(
            "a",
            "0:audio:sendonly",
            "1:video:sendonly",
            "2:video:inactive",
            sources: sources
        )
        let room = try #require(driver.plane.rooms["r"]?.room)
        #expect(room.subscriptions.count == 1)
        #expect(room.subscriptions.values.first?.videoSlot?.mid == "1")
    }

    @Test func `audio and video of one stream are played in sync`() throws {
        var (driver, stream) = try call(slots: [
            "0:audio:recvonly", "1:audio:recvonly", "2:video:recvonly", "3:video:recvonly",
        ])
        try driver.join("c")
        let voice = try #require(try driver.offer("c", "0:audio:sendonly")[0].stream)
        // It takes the first audio slot, whose video slot then has no audio to be in sync with.
        #expect(try driver.watch("b", voice).audioMid == "0")
        let both = try driver.watch("b", stream)
        #expect(both.audioMid == "1" && both.videoMid == "3")
    }

    @Test func `O-3 one's own stream can be watched`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let stream = try #require(
            try driver.offer("a", "0:audio:sendonly", "1:audio:recvonly")[0].stream
        )
        #expect(try driver.watch("a", stream).audioMid == "1")
    }

    @Test func `a slot changes its source while it plays`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        let subscription = try driver.watch("b", stream)
        try driver.join("c")
        let other = try #require(
            try driver.offer("c", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        _ = driver.takeEvents()
        _ = driver.takeCommands()
        let id = JSON.string(subscription.subscription.rawValue)
        let result = try driver.done(
            "subscription.update",
            ["room": "r", "subscription": id, "stream": .string(other.rawValue)]
        )
        #expect(try result.decode(Done.self).fence != nil)
        // No negotiation: two bindings and nothing else.
        let commands = driver.takeCommands()
        #expect(commands.count == 2)
        for command in commands {
            guard case .bind(_, let binding?) = command else {
                Issue.record("\(command)")
                continue
            }
            #expect(
                binding.open && "sub-\(binding.subscription)" == subscription.subscription.rawValue
            )
        }
        #expect(driver.takeEvents() == [])
        // The old one may be watched again, the new one not twice.
        #expect(throws: IPCError.self) { try driver.watch("b", other) }
    }

    @Test func `O-8 who switches video off is named, and again when it comes back`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        let subscription = try driver.watch("b", stream).subscription
        func reasons(_ driver: inout ControlDriver) -> [String] {
            defer { driver.events = [] }
            return driver.events.map { event in
                guard case .string(let reason)? = event.data["reason"] else { return event.event }
                return "\(event.event) \(reason) \(event.audience == .participants(["b"]))"
            }
        }
        let own: [String: JSON] = [
            "room": "r", "subscription": .string(subscription.rawValue),
        ]
        let publisher: [String: JSON] = ["room": "r", "stream": .string(stream.rawValue)]

        try driver.done("subscription.update", .object(own.merging(["video": false]) { $1 }))
        #expect(reasons(&driver) == ["subscription.videoDisabled subscriber true"])
        try driver.done("subscription.update", .object(own.merging(["video": true]) { $1 }))
        #expect(reasons(&driver) == ["subscription.videoEnabled subscriber true"])

        _ = driver.takeCommands()
        try driver.done("stream.update", .object(publisher.merging(["video": false]) { $1 }))
        #expect(
            reasons(&driver) == ["stream.changed", "subscription.videoDisabled publisher true"]
        )
        // One gate, however many watch.
        #expect(opened(driver.takeCommands()) == [false])
        try driver.done("stream.update", .object(publisher.merging(["video": true]) { $1 }))
        #expect(
            reasons(&driver) == ["stream.changed", "subscription.videoEnabled publisher true"]
        )
        // The subscriber's own audio switch has no event, but closes the slot.
        _ = driver.takeCommands()
        try driver.done("subscription.update", .object(own.merging(["audio": false]) { $1 }))
        #expect(opened(driver.takeCommands()) == [false])
        #expect(reasons(&driver) == [])
    }

    @Test func `a removed slot causes no events`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        let subscription = try driver.watch("b", stream).subscription
        let own: [String: JSON] = [
            "room": "r", "subscription": .string(subscription.rawValue),
        ]
        try driver.done("subscription.update", .object(own.merging(["video": false]) { $1 }))
        try driver.offer("b", "0:audio:recvonly", "1:video:inactive")
        _ = driver.takeEvents()
        try driver.done("subscription.update", .object(own.merging(["audio": false]) { $1 }))
        #expect(driver.takeEvents() == [])
    }

    @Test func `O-8 a codec that the slot cannot decode is told`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        try driver.watch("b", stream)
        let video = try #require(driver.plane.rooms["r"]?.room.streams[stream.rawValue]?.video)
        driver.tell(.layers(video, codec: .av1, []))
        #expect(driver.takeEvents() == ["stream.changed", "subscription.videoDisabled"])
        let layer = LayerDescription(
            rid: "h",
            width: 640,
            height: 360,
            frameRate: 30,
            bitrate: 500_000,
            active: true
        )
        driver.tell(.layers(video, codec: .vp8, [layer]))
        #expect(driver.takeEvents() == ["stream.changed", "subscription.videoEnabled"])
        let shown = try driver.shown().streams[0].video
        #expect(shown?.codec == .vp8 && shown?.layers.map(\.width) == [640])
    }

    @Test func `O-4 the first packet is told once`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        try driver.watch("b", stream)
        let slots = driver.takeCommands().compactMap { command -> (SlotID, UInt64)? in
            guard case .bind(let slot, let binding?) = command else { return nil }
            return (slot, binding.subscription)
        }
        for (slot, number) in slots { driver.tell(.started(slot, subscription: number)) }
        #expect(driver.events.map(\.event) == ["subscription.connected"])
        #expect(driver.events[0].audience == .participants(["b"]))
        let (slot, number) = try #require(slots.last)
        driver.tell(
            .layerChanged(
                slot,
                subscription: number,
                from: LayerName(rid: "h"),
                to: LayerName(rid: "f")
            )
        )
        #expect(driver.events.last?.event == "subscription.layerChanged")
        // Workers' events about removed objects are ignored.
        try driver.done("room.close", ["room": "r"])
        _ = driver.takeEvents()
        driver.tell(.started(slot, subscription: number))
        driver.tell(.layerChanged(slot, subscription: number, from: nil, to: LayerName(rid: "f")))
        #expect(driver.takeEvents() == [])
    }

    @Test func `a screen and its sound are a stream of their own`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        let lines = [
            "0:audio:sendonly", "1:video:sendonly", "2:video:sendonly", "3:audio:sendonly",
        ]
        let mids = try driver.offer(
            "a",
            lines[0],
            lines[1],
            lines[2],
            lines[3],
            sources: ["2": "screen", "3": "screen"]
        )
        #expect(mids[0].stream == mids[1].stream && mids[2].stream == mids[3].stream)
        #expect(mids[0].stream != mids[2].stream)
        #expect(try driver.shown().streams.map(\.source) == [.camera, .screen])
        // A name is kept over renegotiation, and a source that fits no m-line is refused.
        let again = try driver.offer("a", lines[0], lines[1], lines[2], lines[3])
        #expect(again == mids)
        let odd = try driver.offer(
            "a",
            lines[0],
            lines[1],
            lines[2],
            lines[3],
            sources: ["0": "camera"]
        )
        #expect(odd[0].refused == "source")
    }

    @Test func `a stream lasts while one of its m-lines sends`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly", "1:video:recvonly"])
        try driver.watch("b", stream)
        _ = driver.takeEvents()
        let half = try driver.offer("a", "0:audio:sendonly", "1:video:inactive")
        #expect(half.map(\.stream) == [stream, nil])
        #expect(driver.takeEvents() == ["stream.changed"])
        #expect(try driver.shown().streams[0].source == .microphone)
        let back = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(back.map(\.stream) == [stream, stream])
        #expect(driver.takeEvents() == ["stream.changed"])
        try driver.offer("a", "0:audio:inactive", "1:video:inactive")
        #expect(driver.takeEvents() == ["stream.destroyed"])
        #expect(driver.plane.rooms["r"]?.room.subscriptions.isEmpty == true)
    }

    @Test func `what is unpublished stays so until the client begins anew`() throws {
        var (driver, stream) = try call(slots: ["0:audio:recvonly"])
        let result = try driver.done(
            "stream.unpublish",
            ["room": "r", "stream": .string(stream.rawValue), "by": "a"]
        )
        #expect(try result.decode(Done.self).fence != nil)
        #expect(driver.takeEvents() == ["stream.destroyed"])
        let still = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(still.map(\.stream) == [nil, nil])
        try driver.offer("a", "0:audio:inactive", "1:video:inactive")
        let anew = try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")
        #expect(anew[0].stream != nil && anew[0].stream != stream)
    }

    @Test func `O-9 an update changes, keeps or unsets audioFallback`() throws {
        var driver = ControlDriver()
        try driver.room()
        try driver.join("a")
        try driver.join("b")
        let stream = try #require(
            try driver.offer("a", "0:audio:sendonly", "1:video:sendonly")[0].stream
        )
        try driver.offer("b", "0:audio:recvonly", "1:video:recvonly")
        let subscription = try driver.watch("b", stream).subscription
        for (change, expected): ([String: JSON], JSON?) in [
            (["audioFallback": false], false), (["priority": 3], false),
            (["audioFallback": true], true), (["audioFallback": .null], nil),
        ] {
            let call: [String: JSON] = [
                "room": "r", "subscription": .string(subscription.rawValue),
            ]
            try driver.done("subscription.update", .object(call.merging(change) { $1 }))
            let list = try driver.done("subscription.list", ["room": "r", "participant": "b"])
            #expect(list["subscriptions"]?.list.first?["audioFallback"] == expected)
        }
    }
}
