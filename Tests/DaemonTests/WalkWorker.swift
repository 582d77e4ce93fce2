import Testing
import WorkerInterface

/// A worker's state by its commands; a command about an unknown object is an error.
struct WalkWorker {
    let index: Int
    var transports: [TransportID: TransportConfiguration] = [:]
    var gates: [PublicationID: Bool] = [:]
    var bindings: [SlotID: Binding] = [:]
    var mirrors: [PublicationID: Mirror] = [:]
    /// Relay targets of the publications at home here; none is an empty list.
    var relays: [PublicationID: [RelayTarget]] = [:]
    /// Publications that each of the recorder's taps reads.
    var taps: [OutputID: Set<PublicationID>] = [:]
    /// Numbers of the homes under whose leases gates are open.
    var leases: [PublicationID: Int] = [:]
    /// Ended handles, which must not be used again.
    private var ended: Set<PublicationID> = []

    init(index: Int) { self.index = index }

    mutating func apply(_ command: WorkerCommand) {
        switch command {
        case .configure(let id, let configuration):
            for publication in configuration.publications {
                #expect(!ended.contains(publication.id) && mirrors[publication.id] == nil)
            }
            forget(id, except: configuration)
            transports[id] = configuration
        case .close(let id):
            #expect(transports[id] != nil)
            forget(id, except: nil)
            transports[id] = nil
        case .resume(let id, _): #expect(transports[id] != nil)
        case .endResumption, .postponeResumption: break
        case .gate(let id, let open):
            #expect(home(of: id) != nil)
            gates[id] = open
        case .bind(let id, let binding):
            #expect(slots.contains(id))
            if let binding { #expect(home(of: binding.publication) != nil) }
            bindings[id] = binding
        case .limit(let id, let cap): change(id) { $0.cap = cap }
        case .feature(let id, let isFeatured): change(id) { $0.isFeatured = isFeatured }
        case .mirror(let mirror):
            let id = mirror.configuration.id
            #expect(
                mirror.home.worker != index && !ended.contains(id) && !publications.contains(id)
            )
            #expect(mirrors[id].map { $0.home == mirror.home } ?? true)
            mirrors[id] = mirror
            gates[id] = mirror.open
        case .unmirror(let id):
            #expect(mirrors[id] != nil)
            mirrors[id] = nil
            end(id)
        case .relay(let id, let targets):
            #expect(publications.contains(id))
            relays[id] = targets
        case .hold(let id, let target):
            #expect(relays[id]?.contains(target) == true)
        case .tap(let order): apply(order)
        case .lease(let id, let lease):
            #expect(home(of: id) != nil || ended.contains(id))
            if home(of: id) != nil { leases[id] = lease }
        case .explain, .report, .reportTransports, .fence, .link: break
        }
    }

    private mutating func change(
        _ id: PublicationID,
        _ body: (inout PublicationConfiguration) -> Void
    ) {
        #expect(publications.contains(id))
        for (transport, known) in transports {
            var configuration = known
            for index in configuration.publications.indices
            where configuration.publications[index].id == id {
                body(&configuration.publications[index])
            }
            transports[transport] = configuration
        }
    }

    /// Returns the home of a publication that this worker knows by that name.
    func home(of id: PublicationID) -> RelayTarget? {
        publications.contains(id)
            ? RelayTarget(worker: index, publication: id) : mirrors[id]?.home
    }

    func isConfigured(_ configuration: PublicationConfiguration) -> Bool {
        transports.values.contains { $0.publications.contains(configuration) }
    }

    /// Checks, once all commands are done, that homes and mirrors match.
    func check(among workers: [Self]) {
        #expect(Set(mirrors.values.map(\.home)).count == mirrors.count, "one a publication")
        for (id, mirror) in mirrors {
            let own = RelayTarget(worker: index, publication: id)
            let home = workers[mirror.home.worker]
            let original = home.transports.values.flatMap(\.publications)
                .first { $0.id == mirror.home.publication }
            var configuration = mirror.configuration
            configuration.id = mirror.home.publication
            #expect(original == configuration)
            #expect(home.relays[mirror.home.publication]?.contains(own) == true)
            #expect(gates[id] == home.gates[mirror.home.publication])
            #expect(isUsed(id), "nobody uses it")
        }
        for (id, targets) in relays {
            #expect(Set(targets).count == targets.count)
            for target in targets {
                let mirror = workers[target.worker].mirrors[target.publication]
                #expect(mirror?.home == RelayTarget(worker: index, publication: id))
            }
        }
    }

    private mutating func apply(_ order: OutputCommand) {
        switch order {
        case .open(let tap):
            #expect(taps[tap.id] == nil)
            taps[tap.id] = []
        case .attach(let tap, let track):
            #expect(mirrors[track.publication] != nil)
            #expect(taps[tap]?.insert(track.publication).inserted == true)
        case .detach(let tap, let id): #expect(taps[tap]?.remove(id) != nil)
        case .forget(let tap, let id): #expect(taps[tap]?.contains(id) == true)
        case .tiles(let tap, _): #expect(taps[tap] != nil)
        case .note(let tap, _): #expect(taps[tap] != nil)
        case .close(let tap): #expect(taps.removeValue(forKey: tap) != nil)
        }
    }

    private func isUsed(_ mirror: PublicationID) -> Bool {
        bindings.values.contains { $0.publication == mirror }
            || taps.values.contains { $0.contains(mirror) }
    }

    private var publications: Set<PublicationID> {
        Set(transports.values.flatMap { $0.publications.map(\.id) })
    }

    private var slots: Set<SlotID> { Set(transports.values.flatMap { $0.slots.map(\.id) }) }

    private mutating func end(_ publication: PublicationID) {
        gates[publication] = nil
        leases[publication] = nil
        relays[publication] = nil
        ended.insert(publication)
        #expect(
            !isUsed(publication),
            "a slot is emptied, and a tap told, before what it carries ends"
        )
    }

    private mutating func forget(_ id: TransportID, except kept: TransportConfiguration?) {
        for publication in transports[id]?.publications ?? []
        where kept?.publications.contains(where: { $0.id == publication.id }) != true {
            end(publication.id)
        }
        for slot in transports[id]?.slots ?? []
        where kept?.slots.contains(where: { $0.id == slot.id }) != true {
            bindings[slot.id] = nil
        }
    }
}
