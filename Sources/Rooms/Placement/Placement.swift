import WorkerInterface

extension Room {
    /// Workers that have transports of the room, in order; its first worker if none has.
    package var workers: [Int] { population.isEmpty ? [worker] : population.keys.sorted() }

    /// Returns the worker for a new transport, if any has a handle left.
    ///
    /// It is the least loaded of the workers that the room uses already, because media within one
    /// worker needs no mirrors. If that one has over `workerSpread` transports more than the least
    /// loaded of all, the room spreads to the latter.
    func workerForTransport(_ shared: Shared) -> Int? {
        let load = shared.identifiers.map(\.transports.used)
        let open = load.indices.filter { shared.identifiers[$0].transports.available > 0 }
        let calm = open.filter { !shared.load.isOverloaded($0) }
        let free = calm.isEmpty ? open : calm
        func least(_ workers: [Int]) -> Int? { workers.min { (load[$0], $0) < (load[$1], $1) } }
        guard let stranger = least(free) else { return nil }
        guard let own = least(workers.filter { free.contains($0) }) else { return stranger }
        return load[own] - load[stranger] > shared.limits.workerSpread ? stranger : own
    }

    mutating func open(
        _ place: WorkerResource,
        for participant: String,
        _ transaction: inout RoomTransaction
    ) {
        switch place {
        case .transport(let worker, _):
            population[worker, default: 0] += 1
            owners[place] = participant
            transaction.open(place)
        case .publication:
            owners[place] = participant
            transaction.open(place)
        // The owner of these is known from the object itself.
        case .subscription, .tap: transaction.open(place)
        // Worker events about a slot name its subscription.
        case .slot: break
        }
    }

    mutating func free(_ place: WorkerResource, _ transaction: inout RoomTransaction) {
        owners[place] = nil
        transaction.free(place)
        if case .transport(let worker, _) = place, let count = population[worker] {
            population[worker] = count > 1 ? count - 1 : nil
        }
    }
}
