import JSON
import Rooms
import WorkerInterface

/// New names of a room's objects at its new home, and the orders that make them known.
struct AdoptionPlan {
    /// A worker whose transports go on.
    fileprivate struct Site: Hashable {
        var node: String
        var worker: Int
        /// Its number in the former home's words.
        var formerPlace: Int
    }

    private let adoption: Adoption
    private let own: String
    private(set) var renaming = Room.Renaming()
    private(set) var negotiations: [Room.SavedNegotiation] = []
    private var orders: [Site: [AdoptionOrder]] = [:]
    /// Sites by the former home's numbers.
    private var sites: [Int: Site] = [:]
    /// Workers that have transports of the room, whether these go on or not.
    private var asked: Set<Site> = []
    /// Places of other transports, with their nodes.
    private var others: [Int: String] = [:]

    init(_ adoption: Adoption, own: String) {
        self.adoption = adoption
        self.own = own
    }

    /// Orders by their nodes.
    var sortedOrders: [(node: String, order: AdoptionOrder)] {
        orders.sorted { ($0.key.node, $0.key.worker) < ($1.key.node, $1.key.worker) }
            .flatMap { site, orders in orders.map { (site.node, $0) } }
    }

    /// Ends of the takeover, by their nodes.
    var ends: [(node: String, end: AdoptionEnd)] {
        func end(_ place: Int, _ worker: Int?) -> AdoptionEnd {
            AdoptionEnd(
                room: adoption.room.name,
                former: adoption.former,
                worker: worker,
                formerPlace: place
            )
        }
        let known = asked.sorted { ($0.node, $0.worker) < ($1.node, $1.worker) }
        let rest = others.sorted { $0.key < $1.key }
        return known.map { ($0.node, end($0.formerPlace, $0.worker)) }
            + rest.map { ($0.value, end($0.key, nil)) }
    }

    /// Names all objects.
    ///
    /// - Throws: `UnreadableRecord` if there are more than can be named.
    mutating func nameAll(
        _ guests: Guests?,
        keepsTransports: Bool,
        _ shared: inout Room.Shared
    ) throws(UnreadableRecord) {
        var kept: [Room.TransportLocation: (site: Site, negotiation: [UInt8])] = [:]
        for (node, transport) in adoption.kept {
            let site = Site(
                node: node,
                worker: transport.worker,
                formerPlace: transport.transport.worker
            )
            asked.insert(site)
            kept[transport.transport] = (site, transport.negotiation)
        }
        let parts = adoption.room.parts
        let here = guests?.formerHome(adoption.former)
        for transport in parts.transports {
            if transport.node == own, let here,
                let known = here.kept(transport.place, of: adoption.room.name)
            {
                let site = Site(
                    node: own,
                    worker: known.worker,
                    formerPlace: transport.place.worker
                )
                asked.insert(site)
                kept[transport.place] = (site, known.negotiation)
            }
            guard keepsTransports, let (site, negotiation) = kept[transport.place],
                site.node == transport.node,
                keep(transport, at: site, negotiation, here, &shared)
            else {
                try lose(transport, &shared)
                continue
            }
        }
        let places = Set(asked.map(\.formerPlace))
        for transport in parts.transports where !places.contains(transport.place.worker) {
            others[transport.place.worker] = transport.node
        }
        try nameMirrors(of: parts, here, &shared)
    }

    /// Names a transport that goes on with its objects; returns whether it can.
    private mutating func keep(
        _ transport: Room.ForeignParts.Transport,
        at site: Site,
        _ negotiation: [UInt8],
        _ here: Guests.Home?,
        _ shared: inout Room.Shared
    ) -> Bool {
        let old = transport.place.worker
        guard
            let saved = JSON.sent(Room.SavedNegotiation.self, negotiation),
            saved.transport == transport.place, saved.handles.areAmong(transport.handles),
            let place = number(of: site, shared), sites[old].map({ $0 == site }) ?? true,
            site.node == own || shared.identifiers[place].hasRoom(for: transport.handles)
        else { return false }
        let guest = site.node == own ? here?.workers[site.worker] : nil
        let objects = guest?.objects[transport.place.id]
        var names = AdoptionOrder(site, place, adoption.former)
        guard
            let id = guest?.transports[their: transport.place.id]
                ?? shared.identifiers[place].transports.allocate()
        else { return false }
        renaming.transports[transport.place] = Room.TransportLocation(worker: place, id: id)
        let name = AdoptionOrder.Name(old: transport.place.id, new: id)
        names.transports.append(
            AdoptionOrder.Transport(
                name: name,
                isConnected: transport.connection == .connected,
                isReconnecting: transport.connection == .reconnecting
            )
        )
        for publication in transport.handles.publications {
            let isHere = objects?.publications.contains(publication) == true
            let known = isHere ? guest?.publications[their: publication] : nil
            guard let new = known ?? shared.identifiers[place].publications.allocate() else {
                return false
            }
            renaming.publications[RelayTarget(worker: old, publication: publication)] =
                RelayTarget(worker: place, publication: new)
            names.publications.append(AdoptionOrder.Name(old: publication, new: new))
        }
        for slot in transport.handles.slots {
            let isHere = objects?.slots.contains(slot) == true
            let known = isHere ? guest?.slots[their: slot] : nil
            guard let new = known ?? shared.identifiers[place].slots.allocate() else {
                return false
            }
            renaming.slots[Room.SlotLocation(worker: old, id: slot)] = new
            names.slots.append(AdoptionOrder.Name(old: slot, new: new))
        }
        guard let renamed = saved.renamed(renaming, local: shared.local(of: place)) else {
            return false
        }
        negotiations.append(renamed)
        renaming.kept.insert(transport.place)
        add(names, at: site)
        sites[old] = site
        return true
    }

    /// Number of a worker here.
    private func number(of site: Site, _ shared: Room.Shared) -> Int? {
        if site.node != own { return shared.remote?.place(of: site.worker, at: site.node) }
        return shared.locals.indices.contains(site.worker) ? site.worker : nil
    }

    /// Names a transport that has ended, at a place where nobody hears of it.
    private mutating func lose(
        _ transport: Room.ForeignParts.Transport,
        _ shared: inout Room.Shared
    ) throws(UnreadableRecord) {
        let tooMany = UnreadableRecord(cause: "too many transports are lost at one time")
        let old = transport.place.worker
        guard let void = shared.voidPlace(),
            let id = shared.identifiers[void].transports.allocate()
        else { throw tooMany }
        renaming.transports[transport.place] = Room.TransportLocation(worker: void, id: id)
        for publication in transport.handles.publications {
            guard let new = shared.identifiers[void].publications.allocate() else {
                throw tooMany
            }
            renaming.publications[RelayTarget(worker: old, publication: publication)] =
                RelayTarget(worker: void, publication: new)
        }
        for slot in transport.handles.slots {
            guard let new = shared.identifiers[void].slots.allocate() else { throw tooMany }
            renaming.slots[Room.SlotLocation(worker: old, id: slot)] = new
        }
    }

    /// Names the mirrors that the transports use.
    private mutating func nameMirrors(
        of parts: Room.ForeignParts,
        _ here: Guests.Home?,
        _ shared: inout Room.Shared
    ) throws(UnreadableRecord) {
        for target in parts.mirrors(usedBy: renaming.kept).flatMap(\.mirrors) {
            guard let site = sites[target.worker], let place = number(of: site, shared),
                renaming.publications[target] == nil
            else { throw UnreadableRecord(cause: "a mirror is at no known worker") }
            let guest = site.node == own ? here?.workers[site.worker] : nil
            let isHere = guest?.mirrors[target.publication] != nil
            let known = isHere ? guest?.publications[their: target.publication] : nil
            guard let new = known ?? shared.identifiers[place].publications.allocate() else {
                throw UnreadableRecord(cause: "a mirror gets no handle")
            }
            renaming.publications[target] = RelayTarget(worker: place, publication: new)
            var names = AdoptionOrder(site, place, adoption.former)
            names.publications = [AdoptionOrder.Name(old: target.publication, new: new)]
            add(names, at: site)
        }
    }

    /// Adds names to a site's last order, or to a new one where that is full.
    private mutating func add(_ names: AdoptionOrder, at site: Site) {
        orders[site, default: []].add(names)
    }
}

extension [AdoptionOrder] {
    /// Adds names to the last order, or to a new one where that is full.
    mutating func add(_ names: AdoptionOrder) {
        if last?.isFull != false { append(names) } else { self[count - 1] += names }
    }
}

extension AdoptionOrder {
    fileprivate init(_ site: AdoptionPlan.Site, _ place: Int, _ former: FormerHome) {
        self.init(
            former: former,
            worker: site.worker,
            place: place,
            formerPlace: site.formerPlace
        )
    }

    static func += (left: inout Self, right: Self) {
        left.transports += right.transports
        left.publications += right.publications
        left.slots += right.slots
    }
}

extension Room.Handles {
    /// Whether all are among others.
    fileprivate func areAmong(_ others: Self) -> Bool {
        Set(publications).isSubset(of: others.publications)
            && Set(slots).isSubset(of: others.slots)
    }
}

extension WorkerIdentifiers {
    fileprivate func hasRoom(for handles: Room.Handles) -> Bool {
        transports.available >= handles.transports.count
            && publications.available >= handles.publications.count
            && slots.available >= handles.slots.count
    }
}
