extension Room {
    /// Moderation operation that is pending from its call until all workers have passed its fence.
    ///
    /// Repeating it meanwhile is refused with its "in process" error code.
    package enum PendingOperation: Hashable, Sendable {
        case hardMute, hardUnmute
        case recordingStart, recordingStop
        /// Stopping live streams.
        ///
        /// Starting one is not a process: it lasts beyond its fence, until the server has accepted
        /// it.
        case streamingStop
        /// A floor step, by the participant that makes it or that it is about.
        case floor(FloorStep, String)
    }

    func isInProcess(_ process: PendingOperation) -> Bool { inProcess[process] != nil }

    /// Begins an operation; all workers must pass its fence, even those without commands.
    mutating func begin(_ process: PendingOperation, _ transaction: inout RoomTransaction) {
        inProcess[process, default: 0] += 1
        transaction.awaitFence(of: process)
    }

    /// Ends one pending operation after all workers have passed its fence.
    package mutating func finish(_ process: PendingOperation) {
        guard let count = inProcess[process] else { return }
        inProcess[process] = count > 1 ? count - 1 : nil
        if process == .recordingStart, let recordingTap { taps[recordingTap]?.isAwaited = false }
    }
}
