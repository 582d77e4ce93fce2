import WorkerInterface

/// The state of a worker as commands have told it, to compare two ways to the same state.
struct ToldWorker: Equatable {
    var transports: [TransportID: TransportConfiguration] = [:]
    var gates: [PublicationID: Bool] = [:]
    var bindings: [SlotID: Binding] = [:]
    var mirrors: [PublicationID: Mirror] = [:]
    var relays: [PublicationID: [RelayTarget]] = [:]

    /// Applies a command; what only concerns a moment, such as held audio, leaves no state.
    mutating func apply(_ command: WorkerCommand) {
        switch command {
        case .configure(let id, let configuration):
            forget(id, except: configuration)
            transports[id] = configuration
        case .close(let id):
            forget(id, except: nil)
            transports[id] = nil
        case .gate(let id, let open):
            if mirrors[id] != nil { mirrors[id]?.open = open } else { gates[id] = open }
        case .bind(let id, let binding):
            bindings[id] = binding
            bindings[id]?.from = nil
        case .limit(let id, let cap): change(id) { $0.cap = cap }
        case .feature(let id, let isFeatured): change(id) { $0.isFeatured = isFeatured }
        case .mirror(let mirror):
            mirrors[mirror.configuration.id] = mirror
            mirrors[mirror.configuration.id]?.from = nil
        case .unmirror(let id): mirrors[id] = nil
        case .relay(let id, let targets): relays[id] = targets.isEmpty ? nil : targets
        case .resume, .endResumption, .postponeResumption, .hold, .tap, .report,
            .reportTransports, .explain, .fence, .link, .lease:
            break
        }
    }

    private mutating func change(
        _ id: PublicationID,
        _ body: (inout PublicationConfiguration) -> Void
    ) {
        for (transport, configuration) in transports {
            for index in configuration.publications.indices
            where configuration.publications[index].id == id {
                body(&transports[transport, default: configuration].publications[index])
            }
        }
    }

    private mutating func forget(_ id: TransportID, except new: TransportConfiguration?) {
        let publications = Set(new?.publications.map(\.id) ?? [])
        let slots = Set(new?.slots.map(\.id) ?? [])
        for publication in transports[id]?.publications ?? []
        where !publications.contains(publication.id) {
            gates[publication.id] = nil
            relays[publication.id] = nil
        }
        for slot in transports[id]?.slots ?? [] where !slots.contains(slot.id) {
            bindings[slot.id] = nil
        }
    }
}
