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

    /// Moderation operations that not all workers have applied yet, with the count of each.
    struct PendingOperations: Sendable {
        private var counts: [PendingOperation: Int] = [:]

        func contains(_ operation: PendingOperation) -> Bool { counts[operation] != nil }

        var isReleasingFloor: Bool {
            counts.keys.contains { operation in
                if case .floor(.release, _) = operation { true } else { false }
            }
        }

        mutating func begin(_ operation: PendingOperation) { counts[operation, default: 0] += 1 }

        /// Ends one operation.
        ///
        /// - Returns: whether it was pending.
        mutating func finish(_ operation: PendingOperation) -> Bool {
            guard let count = counts[operation] else { return false }
            counts[operation] = count > 1 ? count - 1 : nil
            return true
        }
    }

    func isInProcess(_ operation: PendingOperation) -> Bool {
        moderation.pending.contains(operation)
    }

    /// Begins an operation; all workers must pass its fence, even those without commands.
    mutating func begin(_ operation: PendingOperation, _ transaction: inout RoomTransaction) {
        moderation.pending.begin(operation)
        transaction.awaitFence(of: operation)
    }

    /// Ends one pending operation after all workers have passed its fence.
    package mutating func finish(_ operation: PendingOperation) {
        guard moderation.pending.finish(operation) else { return }
        if operation == .recordingStart { taps.answerRecording() }
    }
}
