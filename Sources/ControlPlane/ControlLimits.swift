import Contract
import Rooms

extension ControlLimits {
    /// What one room is held to.
    var room: Room.Limits {
        var limits = Room.Limits()
        limits.participantsPerRoom = participantsPerRoom
        limits.transportsPerParticipant = transportsPerParticipant
        limits.subscriptionsPerParticipant = subscriptionsPerParticipant
        limits.workerSpread = workerSpread
        limits.workerLoadPercent = workerLoadPercent
        limits.memoryMegabytes = memoryMegabytes
        return limits
    }

    /// One worker's handles: enough for what an average transport has, and then some.
    var identifiers: WorkerIdentifiers {
        WorkerIdentifiers(
            transports: transportsPerWorker,
            publications: transportsPerWorker * 8,
            slots: transportsPerWorker * 64
        )
    }

    /// As `server.info` shows them.
    var shown: ServerLimits {
        ServerLimits(
            rooms: rooms,
            participantsPerRoom: participantsPerRoom,
            transportsPerWorker: transportsPerWorker,
            eventsPerRoom: eventsPerRoom,
            transportsPerParticipant: transportsPerParticipant,
            subscriptionsPerParticipant: subscriptionsPerParticipant
        )
    }
}
