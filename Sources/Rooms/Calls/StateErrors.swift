import WorkerInterface

// Refusals of calls that are valid, but not in the present state of a room or a participant.

extension CallError {
    private static func conflict(
        _ reason: String,
        _ message: String,
        _ details: [String: Detail] = [:]
    ) -> Self {
        Self(code: 4091, reason: reason, message: message, details: details)
    }

    /// Makes the refusal for a change of state that is not on the way; other rooms than live
    /// events have no way at all.
    static func wrongState(_ state: Room.State, to next: Room.State) -> Self {
        conflict("wrong-state", "no way from \(state.rawValue) to \(next.rawValue)")
    }

    static let eventNotOpen = conflict("event-not-open", "the live event is not open yet")
    static let eventEnded = conflict("event-ended", "the live event has ended")

    /// Makes the refusal for what somebody who awaits approval may not do, or take part in.
    package static func awaitsApproval(_ code: Int, _ participant: String) -> Self {
        Self(
            code: code,
            reason: "awaits-approval",
            message: "participant \"\(participant)\" awaits approval"
        )
    }

    static func notAwaited(_ participant: String) -> Self {
        conflict("not-awaited", "participant \"\(participant)\" awaits no approval")
    }

    static func signallingOnly(_ participant: String) -> Self {
        conflict(
            "signalling-only",
            "participant \"\(participant)\" is in SIGNALLING_ONLY, which is without media"
        )
    }

    static func modeMayNotPublish(_ participant: String, _ mode: Room.Mode) -> Self {
        conflict(
            "mode-may-not-publish",
            "participant \"\(participant)\" is in \(mode.rawValue), which publishes nothing"
        )
    }

    static func roomLocked(_ room: String) -> Self {
        conflict("room-locked", "room \"\(room)\" is locked")
    }

    static func followsTalkers(_ subscription: String) -> Self {
        conflict(
            "follows-talkers",
            "subscription \"\(subscription)\" follows the active talkers"
        )
    }

    static let modeIsFixed = conflict("mode-is-fixed", "a room's mode never changes")

    static let modeVocabulary = conflict(
        "mode-vocabulary",
        "the room has heard mode names of the other vocabulary"
    )

    static func noSuchTrack(_ kind: MediaKind, of stream: String) -> Self {
        conflict("no-such-track", "stream \"\(stream)\" has no \(kind)")
    }

    static let noRecorder = conflict("no-recorder", "this server does not record")
    static let noStreamer = conflict("no-streamer", "this server does not stream")
    static let noTaps = conflict("no-taps", "this server sends no plain RTP")
}

// Refusals that are about roles.

extension CallError {
    static func roleInUse(_ role: String) -> Self {
        conflict("role-in-use", "role \"\(role)\" is in use and cannot go", ["role": .text(role)])
    }

    static let roleClash = conflict("role-clash", "target role clash with requested roles")

    static func noSuchRequest(_ request: String, to participant: String) -> Self {
        conflict(
            "no-such-request",
            "participant \"\(participant)\" has no open request \"\(request)\""
        )
    }

    static func invalidRole(_ role: String) -> Self {
        Self(
            code: 4044,
            reason: "invalid-role",
            message: "invalid role",
            details: ["role": .text(role)]
        )
    }

    static func roleMayNotWatch(_ role: String, _ other: String) -> Self {
        Self(
            code: 4010,
            reason: "role-may-not-watch",
            message: "role \"\(role)\" may not watch role \"\(other)\"",
            details: ["role": .text(role)]
        )
    }

    static func roleMayNotPublish(_ role: String) -> Self {
        Self(
            code: 4010,
            reason: "role-may-not-publish",
            message: "role \"\(role)\" may publish nothing",
            details: ["role": .text(role)]
        )
    }

    static func notModerator(_ participant: String) -> Self {
        Self(
            code: 5085,
            reason: "not-moderator",
            message: "participant \"\(participant)\" is no moderator and has no role to hand over"
        )
    }

    static func alreadyModerator(_ participant: String) -> Self {
        Self(
            code: 5045,
            reason: "already-moderator",
            message: "participant \"\(participant)\" is a moderator already"
        )
    }

    static func transferToSelf(_ participant: String) -> Self {
        Self(
            code: 5045,
            reason: "transfer-to-self",
            message: "participant \"\(participant)\" cannot hand its role over to itself"
        )
    }
}
