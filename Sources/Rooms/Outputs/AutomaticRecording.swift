import RTP
import WorkerInterface

// Automatic recording of a room's sessions.

extension Room {
    /// Automatic recording in the present session of a room.
    ///
    /// A session lasts until nobody is in the room. It is recorded from its first stream on, unless
    /// a caller has recorded it before or stops the recording.
    struct AutomaticRecording: Sendable, Codable {
        enum State: Hashable, Sendable, Codable {
            case due
            case begun(OutputID)
            /// A caller's recording has made it needless.
            case covered(OutputID)
            /// It could not begin; `retry` is the time of the next attempt, if another may succeed.
            case refused(reason: String, retry: Instant?)
        }

        private(set) var state = State.due
        /// Reason that was announced last; it is announced once, however often it recurs.
        private var announced: String?

        /// Whether it is still to be begun.
        var isPending: Bool {
            switch state {
            case .due, .refused: true
            case .begun, .covered: false
            }
        }

        mutating func reset() { self = Self() }

        mutating func begin(_ id: OutputID) { state = .begun(id) }

        mutating func cover(_ id: OutputID) { state = .covered(id) }

        /// Notes that the recording of the session has broken.
        ///
        /// The automatic one is begun at once in the place of a caller's, and at `retry` in the
        /// place of its own predecessor.
        mutating func notice(brokenRecording id: OutputID, _ reason: String, retry: Instant) {
            switch state {
            case .covered(id): state = .due
            case .begun(id): state = .refused(reason: reason, retry: retry)
            case .due, .begun, .covered, .refused: break
            }
        }

        /// Forgets what was announced, as a recording is under way.
        mutating func succeed() { announced = nil }

        /// Notes a refusal.
        ///
        /// - Returns: whether it is to be announced.
        mutating func refuse(_ reason: String, retry: Instant?) -> Bool {
            state = .refused(reason: reason, retry: retry)
            defer { announced = reason }
            return announced != reason
        }
    }

    /// Interval between attempts to begin an automatic recording.
    static let retryMilliseconds: Int64 = 30_000

    /// Whether the settings and the streams call for an automatic recording.
    private var wantsRecording: Bool { settings.autoRecord && !streams.isEmpty }

    /// Time of the next attempt to begin the automatic recording, if any.
    var automaticRecordingDeadline: Instant? {
        guard wantsRecording, case .refused(_, let retry) = taps.automatic.state else { return nil }
        return retry
    }

    /// Starts the automatic recording with the first stream of a session, and ends it with the
    /// session.
    ///
    /// If recording is not possible, the room continues without it, and the start is tried again.
    mutating func recordAutomatically(_ transaction: inout RoomTransaction) {
        if participants.listedNames.isEmpty { endAutomaticRecording(&transaction) }
        guard wantsRecording, taps.automatic.isPending else { return }
        if let recording { return taps.automatic.cover(recording.id) }
        guard isDue(transaction.shared) else { return }
        do throws(CallError) {
            let id = try openRecording(of: nil, by: nil, isAwaited: false, &transaction)
            taps.automatic.begin(id)
        } catch {
            // A server without a recorder has none later either.
            let isFinal = error.reason == CallError.noRecorder.reason
            refuseAutomaticRecording(nil, error.reason, isFinal: isFinal, &transaction)
        }
    }

    /// Whether an attempt to begin the automatic recording is due.
    private func isDue(_ shared: Shared) -> Bool {
        switch taps.automatic.state {
        case .due: return true
        case .begun, .covered: return false
        case .refused(let reason, let retry):
            guard let retry else { return false }
            if retry <= shared.now { return true }
            guard let service = shared.taps else { return false }
            return reason == CallError.limitReason && service.open < service.limit
        }
    }

    private mutating func endAutomaticRecording(_ transaction: inout RoomTransaction) {
        guard taps.automatic.state != .due else { return }
        if case .begun(let id) = taps.automatic.state, let tap = taps[id] {
            end(tap: id, &transaction)
            transaction.announce(
                .recordingStopped(tap, reason: EndReason.sessionEnded, by: transaction.actor),
                to: .everyone
            )
        }
        taps.automatic.reset()
    }

    /// Reasons for the end of a recording at a limit of its own, after which nothing is wrong.
    private static let limitReasons: Set = ["size-limit", "too-many-files"]

    /// Lets the automatic recording follow one that has ended by itself and was ready, or a
    /// caller's that could not begin.
    mutating func recordAutomatically(
        after tap: Tap,
        endedBy reason: String?,
        at now: Instant
    ) {
        guard let reason, !Self.limitReasons.contains(reason) else { return }
        let retry = now.advanced(milliseconds: Self.retryMilliseconds)
        taps.automatic.notice(brokenRecording: tap.id, reason, retry: retry)
    }

    /// Whether a recording that has ended is the automatic one of this session.
    func isAutomatic(_ id: OutputID) -> Bool { taps.automatic.state == .begun(id) }

    /// Announces that the automatic recording could not begin, once for each reason.
    mutating func refuseAutomaticRecording(
        _ name: String?,
        _ reason: String,
        isFinal: Bool,
        _ transaction: inout RoomTransaction
    ) {
        let retry = transaction.shared.now.advanced(milliseconds: Self.retryMilliseconds)
        guard taps.automatic.refuse(reason, retry: isFinal ? nil : retry) else { return }
        transaction.announce(
            .recordingFailed(name: name, reason: reason, by: transaction.actor),
            to: .everyone
        )
    }
}
