package import WorkerInterface

extension Room {
    /// Workers of other nodes, where participants of this home may have transports.
    ///
    /// Rooms know them as further workers: a place is a number above those of this node's workers
    /// and threads.
    package struct RemotePlaces: Sendable {
        /// First number of a place at another node.
        package let first: Int
        /// Numbers of the places, by node, in the order of its workers.
        private var places: [String: [Int]] = [:]
        private var names: [Int: RemotePlace] = [:]
        private var locals: [Int: LocalParameters] = [:]
        /// Nodes that are lost: nobody can connect there until they are back.
        fileprivate var lost: Set<String> = []
        /// Place of the objects that ended with another host, until their rooms have been told.
        fileprivate var void: Int?

        /// Nodes of a cluster times the workers that one may have.
        package static let limit = 64 * 256
        /// Handles of each kind that rooms may lose with another host at one time.
        fileprivate static let voidLimit = 1 << 22

        package init(first: Int) { self.first = first }

        /// Places with their numbers, as they are saved.
        package var saved: [SavedPlace] {
            names.sorted { $0.key < $1.key }.compactMap { place, name in
                locals[place].map { SavedPlace(place: place, name: name, local: $0) }
            }
        }

        package func name(of place: Int) -> RemotePlace? { names[place] }
        package func places(at node: String) -> [Int] { places[node] ?? [] }

        /// Returns the number of a node's worker.
        package func place(of worker: Int, at node: String) -> Int? {
            let known = places(at: node)
            return known.indices.contains(worker) ? known[worker] : nil
        }

        func local(of place: Int) -> LocalParameters? { locals[place] }
    }
}

extension Room {
    /// Place of another node's worker, as it is saved.
    package struct SavedPlace: Sendable, Codable {
        package var place: Int
        package var name: RemotePlace
        package var local: LocalParameters
    }
}

extension Room.Shared {
    /// Gives the workers of other nodes the numbers that an earlier process had given them.
    package mutating func restorePlaces(_ saved: [Room.SavedPlace], _ pools: WorkerIdentifiers) {
        guard let first = remote?.first else { return }
        let possible = first..<first + Room.RemotePlaces.limit
        for known in saved.sorted(by: { $0.place < $1.place })
        where possible.contains(known.place) && remote?.name(of: known.place) == nil {
            // The numbers grow with those of a node's workers.
            guard remote?.places(at: known.name.node).count == known.name.worker else { continue }
            addPools(upTo: known.place + 1, pools)
            remote?.add(known.name, known.local, as: known.place)
        }
    }

    /// Notes the workers of another node, or what has changed of them.
    package mutating func notePlaces(
        at node: String,
        _ parameters: [LocalParameters],
        _ pools: WorkerIdentifiers
    ) {
        guard let first = remote?.first else { return }
        remote?.lost.remove(node)
        for (worker, local) in parameters.enumerated() {
            if let place = remote?.place(of: worker, at: node) {
                remote?.set(local, of: place)
                continue
            }
            let place = max(first, identifiers.count)
            guard place < first + Room.RemotePlaces.limit else { return }
            addPools(upTo: place + 1, pools)
            remote?.add(RemotePlace(node: node, worker: worker), local, as: place)
        }
    }

    /// Notes that a node is lost; its places stay known for when it is back.
    package mutating func losePlaces(at node: String) { remote?.lost.insert(node) }

    /// Returns the place of objects that have ended with another host; `nil` without a cluster.
    ///
    /// Nobody hears commands for it, and no fence awaits it.
    package mutating func voidPlace() -> Int? {
        guard let remote else { return nil }
        if let void = remote.void { return void }
        let place = max(remote.first, identifiers.count)
        guard place < remote.first + Room.RemotePlaces.limit else { return nil }
        let most = Room.RemotePlaces.voidLimit
        addPools(
            upTo: place + 1,
            WorkerIdentifiers(transports: most, publications: most, slots: most)
        )
        self.remote?.void = place
        return place
    }

    /// Whether nobody can connect at a node, as it is lost; `nil` is this one.
    func isLost(_ node: String?) -> Bool {
        node.map { remote?.lost.contains($0) == true } ?? false
    }

    /// Other node of a worker; `nil` for this one.
    func node(of worker: Int) -> String? { remote?.name(of: worker)?.node }

    /// Makes the pools of places up to a number, for handles that a restored room has there.
    package mutating func addPools(upTo end: Int, _ pools: WorkerIdentifiers) {
        while identifiers.count < end { identifiers.append(pools) }
    }

    /// Whether a number is one of a worker, or may be one of another node's.
    func hasPlace(_ worker: Int) -> Bool {
        if locals.indices.contains(worker) { return true }
        guard let first = remote?.first else { return false }
        return (first..<first + Room.RemotePlaces.limit).contains(worker)
    }

    /// Places of a node; `nil` is this one, as is a node that is not known.
    func places(at node: String?) -> [Int] {
        let others = node.flatMap { remote?.places(at: $0) } ?? []
        return others.isEmpty ? Array(locals.indices) : others
    }

    package func local(of worker: Int) -> LocalParameters {
        locals.indices.contains(worker)
            ? locals[worker] : remote?.local(of: worker) ?? locals[0]
    }
}

extension Room.RemotePlaces {
    fileprivate mutating func set(_ local: LocalParameters, of place: Int) {
        locals[place] = local
    }

    fileprivate mutating func add(_ name: RemotePlace, _ local: LocalParameters, as place: Int) {
        places[name.node, default: []].append(place)
        names[place] = name
        locals[place] = local
    }
}
