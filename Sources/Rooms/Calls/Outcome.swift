package import RTP
package import WorkerInterface

extension Room {
    /// Outcome of a call.
    package struct Outcome: Sendable {
        package var result = Result.none
        package var change = Change()
        /// Whether the call revokes a right; the reply then carries the fence's figures.
        package var isFenced = false
        /// Whether the announcements come before the reply.
        package var announcesFirst = false
        /// Operation that is pending until all workers have passed the fence.
        package var process: PendingOperation?

        package init(
            result: Result = .none,
            change: Change = Change(),
            isFenced: Bool = false,
            announcesFirst: Bool = false,
            process: PendingOperation? = nil
        ) {
            self.result = result
            self.change = change
            self.isFenced = isFenced
            self.announcesFirst = announcesFirst
            self.process = process
        }
    }

    package indirect enum Result: Hashable, Sendable {
        case none
        case joined
        case awaited
        case answered(Answered)
        /// A subscription was made; its number.
        case subscribed(UInt64)
        /// A role change was requested; the request's id.
        case requested(String)
        /// Results of several calls, in their order.
        case each([Swift.Result<Result, CallError>])
        /// The named participants that were present and have been dropped.
        case dropped([String])
        /// A recording was started.
        case recording(OutputID)
        /// A live stream was requested; it begins when its server accepts it.
        case streaming(OutputID)
        /// Forwarding a stream as plain RTP was started.
        case tapped(OutputID)
    }

    package struct Answered: Hashable, Sendable {
        package var sdp: String
        package var transport: String
        package var media: [AnsweredLine]
    }

    package struct AnsweredLine: Hashable, Sendable {
        package var mid: String
        package var kind: MediaKind?
        package var direction: Direction
        package var stream: String?
        package var refused: String?
    }
}
