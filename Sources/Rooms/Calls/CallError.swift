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

    private static let existsReason = "already-exists"

    static func alreadyExists(participant: String) -> Self {
        Self(
            code: 4009,
            reason: existsReason,
            message: "participant \"\(participant)\" is in the room already",
            details: ["participant": .text(participant)]
        )
    }

    static func alreadyExists(subscription: String, to stream: String) -> Self {
        Self(
            code: 4009,
            reason: existsReason,
            message: "the participant watches stream \"\(stream)\" already",
            details: ["subscription": .text(subscription)]
        )
    }

    /// Makes the refusal for a missing permission; `Room.check` adds which one.
    static func notPermitted(_ message: String) -> Self { seed(4010, message) }

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

    static let limitReason = "limit-reached"

    /// Makes the refusal for a reached limit; `limit` is its configuration key or room setting.
    static func limitReached(_ limit: String, _ value: Int) -> Self {
        Self(
            code: 4029,
            reason: limitReason,
            message: "the limit of \(value) \(limit) is reached",
            details: ["limit": .text(limit), "value": .number(value)]
        )
    }

    /// Makes the refusal for overloaded workers; `limit` and `busy` are percent of their time.
    static func overloaded(_ limit: Int, busy: Int) -> Self {
        Self(
            code: 4029,
            reason: limitReason,
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
            reason: limitReason,
            message:
                "there is no memory for more: \(resident) MiB are taken, the limit is \(limit) MiB",
            details: [
                "limit": .text("memoryMegabytes"), "value": .number(limit),
                "load": .number(resident),
            ]
        )
    }

    static let noFreeSlot = Self(
        code: 4030,
        reason: "no-free-slot",
        message: "the participant has no free slot for what the stream carries"
    )

    static func slotInUse(_ mid: String) -> Self {
        Self(
            code: 4030,
            reason: "slot-in-use",
            message: "slot \"\(mid)\" carries another subscription",
            details: ["mid": .text(mid)]
        )
    }

    static func slotFollowsTalkers(_ mid: String) -> Self {
        Self(
            code: 4030,
            reason: "slot-follows-talkers",
            message: "slot \"\(mid)\" follows the active talkers",
            details: ["mid": .text(mid)]
        )
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

    /// Makes the refusal for a method that is in process; `operation` is its name.
    static func inProcess(_ code: Int, _ operation: String) -> Self {
        Self(
            code: code,
            reason: "in-process",
            message: "\(operation) is in process",
            details: ["operation": .text(operation)]
        )
    }

    /// Makes the refusal for an unknown participant where a vendor has a code of its own.
    static func noSuchTarget(_ participant: String, code: Int = 5045) -> Self {
        var refusal = noSuchParticipant(participant)
        refusal.code = code
        return refusal
    }

    /// 100ms' words for an unknown participant.
    static func peerLeft(_ participant: String) -> Self {
        var refusal = noSuchParticipant(participant)
        refusal.message = "peer left"
        refusal.details["participant"] = .text(participant)
        return refusal
    }

    /// The same refusal where `by` names the participant in question.
    var asCaller: Self {
        var refusal = self
        refusal.details["parameter"] = .text("by")
        return refusal
    }
}
