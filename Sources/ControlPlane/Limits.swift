import Contract
import Rooms

extension ControlLimits {
    /// Limits that apply within one room.
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

    /// Handle pools of one worker, larger than average transports need.
    var identifiers: WorkerIdentifiers {
        WorkerIdentifiers(
            transports: transportsPerWorker,
            publications: transportsPerWorker * 8,
            slots: transportsPerWorker * 64
        )
    }

    /// Limits as `server.info` returns them.
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
