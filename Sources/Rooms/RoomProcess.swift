extension Room {
    /// A moderated operation that is in process from its call until all workers have passed it.
    ///
    /// A second one like it meets an "in process" code of the seeds meanwhile.
    package enum Process: Hashable, Sendable {
        case hardMute, hardUnmute
        case recordingStart, recordingStop
        /// Starting a live stream lasts longer than its fence: until the server has taken it.
        case streamingStop
        /// By the participant whose step it is, or whom it is about.
        case floor(FloorStep, String)
    }

    func isInProcess(_ process: Process) -> Bool { inProcess[process] != nil }

    /// Begins an operation: all workers have to pass it, whether they have something to do or not.
    mutating func begin(_ process: Process, _ shared: Shared, _ outcome: inout Outcome) {
        inProcess[process, default: 0] += 1
        outcome.process = process
        for worker in shared.locals.indices { outcome.change.fence(worker) }
    }

    /// All workers have passed an operation.
    package mutating func settle(_ process: Process) {
        guard let count = inProcess[process] else { return }
        inProcess[process] = count > 1 ? count - 1 : nil
        if process == .recordingStart, let recordingTap { taps[recordingTap]?.isAwaited = false }
    }
}
