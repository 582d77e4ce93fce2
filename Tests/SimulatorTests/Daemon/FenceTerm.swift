import JSON
import Testing
import WorkerInterface

/// Names that the calls of a trial refer to.
struct FenceCast: Sendable {
    /// Stream of the publisher `p`; below, that of the other publisher `q`.
    var stream: JSON = .null
    var otherStream: JSON = .null
    /// Subscriptions of `v0` and `v1`.
    var subscriptions: [JSON] = []
    /// Result of the previous call.
    var prepared: JSON = .null
    /// The publisher's offer with its microphone inactive; below, a viewer's with its video
    /// inactive.
    var offerWithoutMicrophone: JSON = .null
    var offersWithoutPicture: [JSON] = []
}

/// A term of the gate (A0-1), with calls that revoke it and restore it.
struct FenceTerm: CustomTestStringConvertible, Sendable {
    typealias Call = (method: String, params: [String: JSON])
    typealias Calls = @Sendable (FenceCast) -> [Call]

    var testDescription: String
    var settings: [String: JSON] = [:]
    /// Role of the publisher.
    var role: JSON = "participant"
    var viewerRole: JSON = "participant"
    /// Whether another participant publishes too, and did so first.
    var hasOther = false
    /// Calls before the viewers join.
    var early: Calls = { _ in [] }
    /// Calls that give the right for the first time, when media has been sent for a while.
    var first: Calls = { _ in [] }
    /// Calls once media flows.
    var prepare: Calls = { _ in [] }
    /// Calls of which the last revokes the right.
    var close: Calls
    var lost: Set<MediaKind> = [.audio, .video]
    /// Media that is sent and never forwarded.
    var never: Set<MediaKind> = []
    /// Viewers that lose it.
    var viewers = [0, 1]
    /// Calls that restore it without negotiation; `nil` where that is impossible.
    var open: Calls?
    /// Whether the reply has a fence.
    var hasFence = true
}

extension FenceTerm {
    static let all = mutes + own + roles + modes + rooms + waiting + kinds + endings + both

    private static let mutes = [
        Self(
            testDescription: "the room's hard mute",
            close: { _ in [("room.hardMute", [:])] },
            lost: [.audio],
            open: { _ in [("room.hardUnmute", [:])] }
        ),
        Self(
            testDescription: "a hard mute of audio",
            close: { _ in [("participant.hardMute", p(["media": ["audio"]]))] },
            lost: [.audio],
            open: { _ in [("participant.hardUnmute", p(["media": ["audio"]]))] }
        ),
        Self(
            testDescription: "a hard mute of video",
            close: { _ in [("participant.hardMute", p(["media": ["video"], "by": "m"]))] },
            lost: [.video],
            open: { _ in [("participant.hardUnmute", p(["media": ["video"]]))] }
        ),
        Self(
            testDescription: "a hard mute of both",
            close: { _ in [("participant.hardMute", p(["media": ["audio", "video"]]))] },
            open: { _ in [("participant.hardUnmute", p(["media": ["audio", "video"]]))] }
        ),
    ]

    private static let own = [
        Self(
            testDescription: "the publisher's microphone",
            close: { [("stream.update", ["stream": $0.stream, "audio": false])] },
            lost: [.audio],
            open: { [("stream.update", ["stream": $0.stream, "audio": true])] }
        ),
        Self(
            testDescription: "the publisher's camera",
            close: { [("stream.update", ["stream": $0.stream, "video": false])] },
            lost: [.video],
            open: { [("stream.update", ["stream": $0.stream, "video": true])] }
        ),
        Self(
            testDescription: "a stream that is unpublished",
            close: { [("stream.unpublish", ["stream": $0.stream])] }
        ),
        Self(
            testDescription: "an offer without the microphone",
            close: { [("transport.offer", p(["sdp": $0.offerWithoutMicrophone]))] },
            lost: [.audio],
            hasFence: false
        ),
    ]

    private static let roles = [
        Self(
            testDescription: "a role that publishes no sound",
            settings: ["roles": watching],
            role: "speaker",
            viewerRole: "audience",
            close: { _ in
                let roles: JSON = [
                    ["name": "speaker", "publish": ["video": true]],
                    ["name": "audience", "subscribe": ["roles": ["speaker"]]],
                ]
                return [("room.update", ["settings": ["roles": roles]])]
            },
            lost: [.audio],
            open: { _ in [("room.update", ["settings": ["roles": watching]])] },
            hasFence: false
        ),
        Self(
            testDescription: "a role that publishes nothing",
            close: { _ in [("role.change", p(["role": "viewer", "force": true]))] }
        ),
        Self(
            testDescription: "a role that was accepted",
            prepare: { _ in [("role.change", p(["role": "viewer"]))] },
            close: { [("role.accept", p(["request": $0.prepared["request"] ?? .null]))] }
        ),
        Self(
            testDescription: "a role for all",
            close: { _ in
                [("role.changeAll", ["role": "viewer", "from": ["participant"]])]
            }
        ),
        Self(
            testDescription: "a publisher's role that is not watched",
            settings: ["roles": watching],
            role: "speaker",
            viewerRole: "audience",
            close: { _ in [("role.change", p(["role": "hidden", "force": true]))] }
        ),
        Self(
            testDescription: "the rights of a role",
            close: { _ in
                let roles: JSON = [
                    ["name": "participant", "publish": ["video": true]], ["name": "viewer"],
                ]
                return [("room.update", ["settings": ["roles": roles]])]
            },
            lost: [.audio],
            hasFence: false
        ),
        Self(
            testDescription: "what a role may watch",
            settings: ["roles": watching],
            role: "speaker",
            viewerRole: "audience",
            close: { _ in
                let roles: JSON = [
                    ["name": "speaker", "publish": ["audio": true, "video": true]],
                    ["name": "audience", "subscribe": ["roles": ["moderator"]]],
                ]
                return [("room.update", ["settings": ["roles": roles]])]
            },
            hasFence: false
        ),
        Self(
            testDescription: "a moderator of a lecture who hands over",
            settings: ["mode": "lecture"],
            role: "moderator",
            close: { _ in [("moderator.transfer", ["participant": "v0", "by": "p"])] }
        ),
    ]

    private static let modes = [
        Self(
            testDescription: "a publisher that only receives",
            close: { _ in [("participant.setMode", p(["mode": "RECV_ONLY"]))] }
        ),
        Self(
            testDescription: "a publisher that only signals",
            close: { _ in [("participant.setMode", p(["mode": "SIGNALLING_ONLY"]))] }
        ),
        Self(
            testDescription: "a lecturer whose floor is released",
            settings: ["mode": "lecture"],
            early: takesFloor,
            close: { _ in [("floor.release", p())] }
        ),
        Self(
            testDescription: "a lecturer who finishes",
            settings: ["mode": "lecture"],
            early: takesFloor,
            close: { _ in [("floor.finish", p())] }
        ),
    ]

    private static let rooms = [
        Self(
            testDescription: "a live event that ends",
            settings: ["mode": "single_host"],
            role: "moderator",
            early: begins,
            close: { _ in [("room.setState", ["state": "ended"])] }
        ),
        Self(
            testDescription: "a host without a place",
            settings: ["mode": "single_host", "maxHosts": 2],
            role: "moderator",
            hasOther: true,
            early: begins,
            close: { _ in [("room.update", ["settings": ["maxHosts": 1]])] },
            hasFence: false
        ),
        Self(testDescription: "a room that closes", close: { _ in [("room.close", [:])] }),
    ]

    private static let waiting = [
        Self(
            testDescription: "a publisher that awaits approval",
            settings: ["knock": true],
            viewerRole: "moderator",
            first: { _ in [("participant.approve", p(["by": "m"]))] },
            close: { _ in [("participant.leave", p()), ("participant.join", p())] },
            hasFence: false
        )
    ]

    private static let kinds = [
        Self(
            testDescription: "video in an event of sound alone",
            settings: ["mode": "single_host_audio_only"],
            role: "moderator",
            early: begins,
            close: { _ in [("room.setState", ["state": "ended"])] },
            lost: [.audio],
            never: [.video]
        )
    ]

    private static let endings = [
        Self(
            testDescription: "a publisher that leaves",
            close: { _ in [("participant.leave", p())] }
        ),
        Self(
            testDescription: "a publisher that is dropped",
            close: { _ in [("participant.drop", ["participants": ["p"]])] }
        ),
        Self(
            testDescription: "a publisher's transport",
            close: { _ in [("transport.close", p())] }
        ),
        Self(
            testDescription: "a publisher that is taken over",
            close: { _ in [("participant.join", p())] },
            hasFence: false
        ),
    ]

    /// Terms for one viewer alone, on the publisher's worker and on the other one.
    private static let both = [0, 1].flatMap { viewer in
        let who = JSON.string("v\(viewer)")
        return [
            Self(
                testDescription: "viewer \(viewer) without sound",
                close: { [update($0, viewer, ["audio": false])] },
                lost: [.audio],
                viewers: [viewer],
                open: { [update($0, viewer, ["audio": true])] }
            ),
            Self(
                testDescription: "viewer \(viewer) without picture",
                close: { [update($0, viewer, ["video": false])] },
                lost: [.video],
                viewers: [viewer],
                open: { [update($0, viewer, ["video": true])] }
            ),
            Self(
                testDescription: "viewer \(viewer) turns to another stream",
                hasOther: true,
                close: { [update($0, viewer, ["stream": $0.otherStream])] },
                viewers: [viewer],
                open: { [update($0, viewer, ["stream": $0.stream])] }
            ),
            Self(
                testDescription: "viewer \(viewer) unsubscribes",
                close: { [("subscription.remove", ["subscription": $0.subscriptions[viewer]])] },
                viewers: [viewer]
            ),
            Self(
                testDescription: "viewer \(viewer) offers no slot for video",
                close: {
                    let sdp = $0.offersWithoutPicture[viewer]
                    return [("transport.offer", ["participant": who, "sdp": sdp])]
                },
                lost: [.video],
                viewers: [viewer],
                hasFence: false
            ),
            Self(
                testDescription: "viewer \(viewer) in a role that may not watch",
                settings: ["roles": watching],
                role: "speaker",
                close: { _ in
                    let params: [String: JSON] = [
                        "participant": who, "role": "blind", "force": true,
                    ]
                    return [("role.change", params)]
                },
                viewers: [viewer]
            ),
            host(viewer, whoIsDemotedAfter: []),
            host(viewer, whoIsDemotedAfter: ["ready"]),
            Self(
                testDescription: "viewer \(viewer) only signals",
                close: { _ in
                    [("participant.setMode", ["participant": who, "mode": "SIGNALLING_ONLY"])]
                },
                viewers: [viewer]
            ),
            Self(
                testDescription: "viewer \(viewer) leaves",
                close: { _ in [("participant.leave", ["participant": who])] },
                viewers: [viewer]
            ),
            Self(
                testDescription: "viewer \(viewer) is dropped",
                close: { _ in [("participant.drop", ["participants": [who], "by": "m"])] },
                viewers: [viewer]
            ),
            Self(
                testDescription: "viewer \(viewer) closes its transport",
                close: { _ in [("transport.close", ["participant": who])] },
                viewers: [viewer]
            ),
        ]
    }

    /// A host who watches another before the event is ongoing, and may not as a participant.
    private static func host(_ viewer: Int, whoIsDemotedAfter states: [String]) -> Self {
        @Sendable func give(_ role: JSON) -> Call {
            let params: [String: JSON] = [
                "participant": .string("v\(viewer)"), "role": role, "force": true,
            ]
            return ("role.change", params)
        }
        return Self(
            testDescription: "viewer \(viewer) of an event that is \(states.last ?? "created")",
            settings: ["mode": "single_host"],
            role: "moderator",
            viewerRole: "moderator",
            early: { _ in states.map { ("room.setState", ["state": .string($0)]) } },
            close: { _ in [give("participant")] },
            viewers: [viewer],
            open: { _ in [give("moderator")] }
        )
    }

    private static let watching: JSON = [
        ["name": "speaker", "publish": ["audio": true, "video": true]],
        ["name": "hidden", "publish": ["audio": true, "video": true]],
        ["name": "audience", "subscribe": ["roles": ["speaker"]]],
        ["name": "participant"], ["name": "blind", "subscribe": ["roles": ["moderator"]]],
    ]

    private static let takesFloor: Calls = { _ in
        [("floor.request", p()), ("floor.grant", p())]
    }

    private static let begins: Calls = { _ in
        [("room.setState", ["state": "ready"]), ("room.setState", ["state": "ongoing"])]
    }

    private static func p(_ more: [String: JSON] = [:]) -> [String: JSON] {
        more.merging(["participant": "p"]) { $1 }
    }

    private static func update(
        _ cast: FenceCast,
        _ viewer: Int,
        _ change: [String: JSON]
    ) -> Call {
        (
            "subscription.update",
            change.merging(["subscription": cast.subscriptions[viewer]]) { $1 }
        )
    }
}
