package import WorkerInterface

extension Room {
    /// Placement of a room on the workers: its transports, the owners of its objects, its mirrors.
    struct Placement: Sendable {
        /// Worker of the room's first transport.
        let firstWorker: Int
        /// Participant that owns a worker-side object, to route worker events.
        private var owners: [WorkerResource: String] = [:]
        /// Number of the room's transports in each worker that has any.
        private var population: [Int: Int] = [:]
        /// Participants of ended transports that no fence has confirmed yet.
        var ending: [TransportLocation: String] = [:]
        /// Outcome of the transports' offers.
        var negotiated = TrackedDictionary<TransportLocation, NegotiatedState>()
        /// Mirrored publications, by their home.
        var relays = TrackedDictionary<RelayTarget, Relay>()

        init(firstWorker: Int) { self.firstWorker = firstWorker }

        /// Workers that have transports of the room, in order; its first worker if none has.
        var workers: [Int] { population.isEmpty ? [firstWorker] : population.keys.sorted() }

        func hasTransports(in workers: Range<Int>) -> Bool {
            population.keys.contains { workers.contains($0) }
        }

        func owner(of resource: WorkerResource) -> String? { owners[resource] }

        /// Returns the worker for a new transport of a participant at this node or at another one,
        /// if any has a handle left.
        ///
        /// It is the least loaded of the workers that the room uses already, because media within
        /// one worker needs no mirrors. If that one has over `workerSpread` transports more than
        /// the least loaded of all, the room spreads to the latter.
        func workerForTransport(_ shared: Shared, at node: String?) -> Int? {
            let load = shared.identifiers.map(\.transports.used)
            let places = shared.places(at: node)
            let open = places.filter { shared.identifiers[$0].transports.available > 0 }
            let calm = open.filter { !shared.load.isOverloaded($0) }
            let free = calm.isEmpty ? open : calm
            func least(_ workers: [Int]) -> Int? { workers.min { (load[$0], $0) < (load[$1], $1) } }
            guard let stranger = least(free) else { return nil }
            guard let own = least(workers.filter { free.contains($0) }) else { return stranger }
            return load[own] - load[stranger] > shared.limits.workerSpread ? stranger : own
        }

        mutating func add(_ resource: WorkerResource, of participant: String) {
            switch resource {
            case .transport(let worker, _):
                population[worker, default: 0] += 1
                owners[resource] = participant
            case .publication: owners[resource] = participant
            // The owner of a subscription or tap is known from the object itself, and worker events
            // about a slot name its subscription.
            case .subscription, .tap, .slot: break
            }
        }

        mutating func remove(_ resource: WorkerResource) {
            owners[resource] = nil
            guard case .transport(let worker, let id) = resource else { return }
            negotiated[TransportLocation(worker: worker, id: id)] = nil
            if let count = population[worker] { population[worker] = count > 1 ? count - 1 : nil }
        }

        /// Returns the handle of a publication in a worker that receives or mirrors it.
        func publication(_ home: RelayTarget, in worker: Int) -> PublicationID? {
            worker == home.worker ? home.publication : relays[home]?.mirrors[worker]?.id
        }
    }

    /// Outcome of a transport's offers: large, and changed by offers only.
    struct NegotiatedState: Sendable, Codable {
        let negotiation: Negotiation
        /// Configuration as last sent to the worker, but without the publications: those are in the
        /// tracks.
        let configuration: TransportConfiguration

        init(_ negotiation: Negotiation, _ configuration: TransportConfiguration) {
            self.negotiation = negotiation
            var configuration = configuration
            configuration.publications = []
            self.configuration = configuration
        }
    }

    /// Worker of the room's first transport.
    package var worker: Int { placement.firstWorker }

    /// Workers that have transports of the room, in order; its first worker if none has.
    package var workers: [Int] { placement.workers }

    /// Whether a recording, a live stream or an RTP forward runs that does not begin again by
    /// itself where the room goes on.
    package var hasLastingOutputs: Bool { taps.ids.contains { !isAutomatic($0) } }

    /// Whether a transport of the room is in one of these workers.
    package func hasTransports(in workers: Range<Int>) -> Bool {
        placement.hasTransports(in: workers)
    }

    /// Returns the transports of the room in a worker, those of the participants who wait to be let
    /// in last.
    package func transports(in worker: Int) -> [TransportID] {
        let places = (members + awaited).flatMap(\.transports).map(\.place)
        return places.filter { $0.worker == worker }.map(\.id)
    }

    mutating func open(
        _ resource: WorkerResource,
        for participant: String,
        _ transaction: inout RoomTransaction
    ) {
        placement.add(resource, of: participant)
        switch resource {
        case .transport, .publication, .subscription, .tap: transaction.open(resource)
        case .slot: break
        }
    }

    mutating func free(_ resource: WorkerResource, _ transaction: inout RoomTransaction) {
        placement.remove(resource)
        transaction.free(resource)
    }
}
