import WorkerInterface

/// Error of a refused call: a stable reason word, a number and a sentence.
///
/// A refused call has changed nothing and emits no event.
package struct CallError: Error, Hashable, Sendable {
    /// Machine-readable value that accompanies the reason.
    package enum Detail: Hashable, Sendable {
        case text(String)
        case number(Int)
    }

    /// Numeric error code.
    ///
    /// It is the code of the vendor API that the call is compatible with, else that of JSON-RPC
    /// 2.0, else one of sfud's own from 4000 up.
    package var code: Int
    /// Reason word in kebab-case; never changes once published.
    package var reason: String
    package var message: String
    package var details: [String: Detail]

    package init(
        code: Int,
        reason: String,
        message: String,
        details: [String: Detail] = [:]
    ) {
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
    }
}

extension CallError {
    static func noSuchParticipant(_ participant: String) -> Self {
        Self(
            code: 4005,
            reason: "no-such-participant",
            message: "no participant \"\(participant)\""
        )
    }

    static func noSuchStream(_ stream: String) -> Self {
        Self(code: 4006, reason: "no-such-stream", message: "no stream \"\(stream)\"")
    }

    static func noSuchSubscription(_ subscription: String) -> Self {
        Self(
            code: 4007,
            reason: "no-such-subscription",
            message: "no subscription \"\(subscription)\""
        )
    }

    static func noSuchTransport(_ transport: String) -> Self {
        Self(code: 4008, reason: "no-such-transport", message: "no transport \"\(transport)\"")
    }

    static func alreadyExists(_ message: String) -> Self {
        Self(code: 4009, reason: "already-exists", message: message)
    }

    static func notPermitted(_ message: String) -> Self {
        Self(code: 4010, reason: "not-permitted", message: message)
    }

    static func noSuchMid(_ mid: String, _ kind: MediaKind) -> Self {
        Self(
            code: 4011,
            reason: "no-such-mid",
            message: "no \(kind) slot \"\(mid)\"",
            details: ["mid": .text(mid)]
        )
    }

    static func badSDP(line: Int, cause: String) -> Self {
        Self(
            code: 4022,
            reason: "bad-sdp",
            message: line > 0 ? "bad SDP in line \(line): \(cause)" : "bad SDP: \(cause)",
            details: ["line": .number(line), "cause": .text(cause)]
        )
    }

    /// Makes the refusal for a reached limit; `limit` is its configuration key or room setting.
    static func limitReached(_ limit: String, _ value: Int) -> Self {
        Self(
            code: 4029,
            reason: "limit-reached",
            message: "the limit of \(value) \(limit) is reached",
            details: ["limit": .text(limit), "value": .number(value)]
        )
    }

    /// Makes the refusal for overloaded workers; `limit` and `busy` are percent of their time.
    static func overloaded(_ limit: Int, busy: Int) -> Self {
        Self(
            code: 4029,
            reason: "limit-reached",
            message:
                "nobody new is let in: the workers are \(busy) % busy, the limit is \(limit) %",
            details: [
                "limit": .text("workerLoadPercent"), "value": .number(limit), "load": .number(busy),
            ]
        )
    }

    /// Makes the refusal for exhausted memory; both figures are in MiB (2^20 bytes).
    static func outOfMemory(_ limit: Int, resident: Int) -> Self {
        Self(
            code: 4029,
            reason: "limit-reached",
            message:
                "there is no memory for more: \(resident) MiB are taken, the limit is \(limit) MiB",
            details: [
                "limit": .text("memoryMegabytes"), "value": .number(limit),
                "load": .number(resident),
            ]
        )
    }

    static func noFreeSlot(_ message: String) -> Self {
        Self(code: 4030, reason: "no-free-slot", message: message)
    }

    static func roleInvalid(_ role: String) -> Self {
        Self(
            code: 4044,
            reason: "role-invalid",
            message: "role invalid",
            details: ["role": .text(role)]
        )
    }

    /// Makes the refusal for a missing permission that has a vendor's error code.
    static func seed(_ code: Int, _ message: String) -> Self {
        Self(code: code, reason: "not-permitted", message: message)
    }

    static func inProcess(_ code: Int, _ operation: String) -> Self {
        Self(code: code, reason: "in-process", message: "\(operation) is in process")
    }

    static func invalidClient(_ participant: String) -> Self {
        Self(
            code: 5045,
            reason: "no-such-participant",
            message: "no participant \"\(participant)\" that this could be done to"
        )
    }

    static func peerLeft(_ participant: String) -> Self {
        Self(
            code: 4005,
            reason: "no-such-participant",
            message: "peer left",
            details: ["participant": .text(participant)]
        )
    }

    static func roomLocked(_ room: String) -> Self {
        wrongState("room \"\(room)\" is locked", reason: "room-locked")
    }

    static func wrongState(_ message: String, reason: String = "wrong-state") -> Self {
        Self(code: 4091, reason: reason, message: message)
    }
}
