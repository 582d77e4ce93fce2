import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// One call with `by`, and the events that it causes.
struct CallerRow: CustomTestStringConvertible, Sendable {
    typealias Step = @Sendable (inout ControlDriver) throws -> Void

    var testDescription: String { "\(method): \(events.joined(separator: ", "))" }
    var method: String
    /// Params besides `room`; `STREAM`, `SUBSCRIPTION` and `REQUEST` stand for the ids of those.
    var params: [String: JSON]
    var by: String
    /// Events in the order of their names, none of them twice.
    var events: [String]
    var settings: [String: JSON] = [:]
    /// Steps before the call, and after it.
    var before: Step = { _ in }
    var after: Step = { _ in }

    init(
        _ method: String,
        _ params: [String: JSON] = [:],
        by: String = "m",
        in settings: [String: JSON] = [:],
        before: @escaping Step = { _ in },
        after: @escaping Step = { _ in },
        tells events: [String]
    ) {
        self.method = method
        self.params = params
        self.by = by
        self.events = events
        self.settings = settings
        self.before = before
        self.after = after
    }
}

extension CallerRow {
    private static let silent: JSON = [
        ["name": "participant", "publish": ["audio": true, "video": true]],
        ["name": "viewer"],
        ["name": "deaf", "subscribe": ["roles": []]],
    ]

    private static func call(_ method: String, _ params: [String: JSON] = [:]) -> Step {
        { driver in try driver.done(method, .object(params.merging(["room": "r"]) { $1 })) }
    }

    private static func offer(_ lines: String...) -> JSON { .string(TestOffer(lines).text) }

    /// Calls of moderators about the room.
    static let rooms = [
        Self("room.lock", tells: ["room.locked"]),
        Self("room.unlock", before: call("room.lock"), tells: ["room.unlocked"]),
        Self("room.update", ["custom": ["k": 1]], tells: ["room.updated"]),
        Self(
            "room.update",
            ["settings": ["maxActiveTalkers": 1]],
            before: call("pin.add", ["participants": ["a"]]),
            tells: ["pins.changed", "room.updated", "talkers.changed"]
        ),
        Self(
            "room.update",
            ["settings": ["autoRecord": true]],
            before: { $0.plane.shared.taps?.limit = 0 },
            tells: ["recording.failed", "room.updated"]
        ),
        Self("room.hardMute", tells: ["room.hardMuted", "stream.changed"]),
        Self(
            "room.hardUnmute",
            before: call("room.hardMute"),
            tells: ["room.hardUnmuted", "stream.changed"]
        ),
        Self(
            "room.setState",
            ["state": "ended"],
            in: ["mode": "single_host"],
            before: { try $0.offer("m", "0:audio:sendonly") },
            tells: ["room.stateChanged", "stream.destroyed"]
        ),
        Self("room.close", tells: ["participant.left", "room.closed", "stream.destroyed"]),
        Self("pin.add", ["participants": ["a"]], tells: ["pins.changed", "talkers.changed"]),
        Self(
            "pin.remove",
            ["participants": ["a"]],
            before: call("pin.add", ["participants": ["a"]]),
            tells: ["pins.changed", "talkers.changed"]
        ),
    ]

    /// Calls of moderators about participants.
    static let participants = [
        Self(
            "participant.drop",
            ["participants": ["a"]],
            before: { try $0.begin("a") },
            tells: ["participant.left", "stream.destroyed", "talkers.changed"]
        ),
        Self(
            "participant.drop",
            ["participants": ["v"]],
            before: call("role.change", ["participant": "v", "role": "viewer"]),
            tells: ["participant.left", "role.requestExpired"]
        ),
        Self(
            "participant.drop",
            ["participants": ["v"]],
            in: ["mode": "lecture"],
            before: call("floor.request", ["participant": "v"]),
            tells: ["floor.cancelled", "participant.left"]
        ),
        Self(
            "participant.leave",
            ["participant": "a"],
            by: "a",
            before: call("pin.add", ["participants": ["a"]]),
            tells: ["participant.left", "pins.changed", "stream.destroyed", "talkers.changed"]
        ),
        Self(
            "participant.leave",
            ["participant": "v"],
            by: "v",
            in: ["mode": "lecture"],
            before: call("floor.request", ["participant": "v"]),
            tells: ["floor.cancelled", "participant.left"]
        ),
        Self(
            "participant.update",
            ["participant": "a", "name": "A"],
            tells: ["participant.changed"]
        ),
        Self(
            "participant.approve",
            ["participant": "k"],
            before: { driver in
                try call("room.update", ["settings": ["knock": true]])(&driver)
                try driver.join("k")
                try driver.offer("k", "0:audio:sendonly")
            },
            tells: ["participant.approved", "participant.joined", "stream.created"]
        ),
        Self(
            "participant.deny",
            ["participant": "k"],
            before: { driver in
                try call("room.update", ["settings": ["knock": true]])(&driver)
                try driver.join("k")
            },
            tells: ["participant.denied", "participant.left"]
        ),
        Self(
            "participant.setMode",
            ["participant": "a", "mode": "SIGNALLING_ONLY"],
            tells: ["participant.modeChanged", "stream.destroyed"]
        ),
        Self(
            "participant.hardMute",
            ["participant": "a", "media": ["video"]],
            tells: ["participant.hardMuted", "stream.changed", "subscription.videoDisabled"]
        ),
        Self(
            "participant.hardUnmute",
            ["participant": "a", "media": ["video"]],
            before: call("participant.hardMute", ["participant": "a", "media": ["video"]]),
            tells: ["participant.hardUnmuted", "stream.changed", "subscription.videoEnabled"]
        ),
    ]

    /// Calls about roles and the floor.
    static let roles =
        [
            Self(
                "role.change",
                ["participant": "a", "role": "viewer"],
                tells: ["role.changeRequested"]
            ),
            Self(
                "role.change",
                ["participant": "v", "role": "deaf", "force": true],
                in: ["roles": silent],
                tells: ["participant.roleChanged", "subscription.disconnected"]
            ),
            Self(
                "role.changeAll",
                ["role": "viewer", "from": ["participant"]],
                tells: ["participant.roleChanged", "stream.destroyed"]
            ),
            Self(
                "role.decline",
                ["participant": "a", "request": "REQUEST"],
                by: "a",
                before: call("role.change", ["participant": "a", "role": "viewer", "by": "m"]),
                tells: ["role.changeDeclined"]
            ),
            // The participant who asked changes the role; the one who accepts only agrees.
            Self(
                "role.accept",
                ["participant": "k", "request": "REQUEST"],
                before: { driver in
                    try call("room.update", ["settings": ["knock": true]])(&driver)
                    try driver.join("k")
                    try driver.offer("k", "0:audio:sendonly")
                    let change: [String: JSON] = ["participant": "k", "role": "moderator"]
                    try call("role.change", change.merging(["by": "m"]) { $1 })(&driver)
                },
                tells: [
                    "participant.approved", "participant.joined", "participant.roleChanged",
                    "stream.created",
                ]
            ),
            Self(
                "moderator.transfer",
                ["participant": "a"],
                tells: ["moderator.transferred", "participant.roleChanged"]
            ),
            Self(
                "floor.request",
                ["participant": "a"],
                by: "a",
                in: ["mode": "lecture"],
                tells: ["floor.requested"]
            ),
            Self(
                "floor.cancel",
                ["participant": "a"],
                by: "a",
                in: ["mode": "lecture"],
                before: call("floor.request", ["participant": "a"]),
                tells: ["floor.cancelled"]
            ),
            Self(
                "floor.grant",
                ["participant": "a"],
                in: ["mode": "lecture"],
                before: call("floor.request", ["participant": "a"]),
                tells: ["floor.granted", "stream.created"]
            ),
            Self(
                "floor.deny",
                ["participant": "a"],
                in: ["mode": "lecture"],
                before: call("floor.request", ["participant": "a"]),
                tells: ["floor.denied"]
            ),
        ]
        + ["release", "finish"].map { step in
            let isOwn = step == "finish"
            return Self(
                "floor.\(step)",
                ["participant": "a"],
                by: isOwn ? "a" : "m",
                in: ["mode": "lecture"],
                before: { driver in
                    try call("floor.request", ["participant": "a"])(&driver)
                    try call("floor.grant", ["participant": "a"])(&driver)
                },
                tells: [isOwn ? "floor.finished" : "floor.released", "stream.destroyed"]
            )
        }

    /// Calls of participants about their own media, and of moderators about that of others.
    static let media = [
        Self(
            "transport.offer",
            ["participant": "a", "sdp": offer("0:audio:sendonly", "1:video:inactive")],
            by: "a",
            tells: ["stream.changed"]
        ),
        Self(
            "transport.offer",
            ["participant": "v", "sdp": offer("0:audio:inactive", "1:video:inactive")],
            by: "v",
            tells: ["subscription.disconnected"]
        ),
        Self("transport.close", ["participant": "a"], by: "a", tells: ["stream.destroyed"]),
        Self(
            "stream.update",
            ["stream": "STREAM", "video": false],
            by: "a",
            tells: ["stream.changed", "subscription.videoDisabled"]
        ),
        Self("stream.unpublish", ["stream": "STREAM"], tells: ["stream.destroyed"]),
        Self(
            "subscription.update",
            ["subscription": "SUBSCRIPTION", "video": false],
            by: "v",
            tells: ["subscription.videoDisabled"]
        ),
        Self("subscription.remove", ["subscription": "SUBSCRIPTION"], by: "v", tells: []),
        Self("subscription.set", ["participant": "v", "subscriptions": []], by: "v", tells: []),
        Self(
            "recording.start",
            before: { driver in
                let (worker, id) = try driver.publication("a", .video)
                driver.tell(.layersWanted(id, home: nil, 0), from: worker)
            },
            after: { $0.tell(.tap(.started(1)), from: 1) },
            tells: ["recording.started", "stream.layersWanted"]
        ),
        Self("recording.stop", before: call("recording.start"), tells: ["recording.stopped"]),
        Self(
            "participant.drop",
            ["participants": ["m", "a", "v"]],
            in: ["autoRecord": true],
            before: { $0.tell(.tap(.started(1)), from: 1) },
            tells: ["participant.left", "recording.stopped", "stream.destroyed"]
        ),
        Self(
            "streaming.start",
            ["url": "rtmp://live.example/app/key"],
            after: { $0.tell(.tap(.started(1)), from: 1) },
            tells: ["streaming.started"]
        ),
        Self(
            "streaming.stop",
            before: { driver in
                driver.send("streaming.start", ["room": "r", "url": "rtmp://live.example/app/key"])
                driver.fence()
                driver.tell(.tap(.started(1)), from: 1)
            },
            tells: ["streaming.stopped"]
        ),
        Self(
            "tap.start",
            ["stream": "STREAM", "audio": ["address": "127.0.0.1:5000"]],
            tells: ["tap.started"]
        ),
        Self("tap.stop", ["tap": "TAP"], before: startTap, tells: ["tap.stopped"]),
        Self(
            "stream.unpublish",
            ["stream": "STREAM"],
            before: startTap,
            tells: ["stream.destroyed", "tap.stopped"]
        ),
    ]

    private static let startTap: Step = { driver in
        let stream = try #require(driver.plane.rooms["r"]?.room.streamsInOrder.first?.id)
        let params: [String: JSON] = [
            "stream": .string(stream), "audio": ["address": "127.0.0.1:5000"],
        ]
        try call("tap.start", params)(&driver)
    }
}
