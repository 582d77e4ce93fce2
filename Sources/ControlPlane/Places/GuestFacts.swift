import WorkerInterface

/// Last events of a worker about guests, which it does not tell again.
///
/// Another home that goes on with the guests hears them.
struct GuestFacts {
    /// Subjects of which the last word counts, by handles of ours.
    enum Subject: Hashable {
        case transport(TransportID)
        case start(SlotID)
        case hold(SlotID)
        case layers(PublicationID)
        case speech(PublicationID)
        case wants(PublicationID)

        init?(of event: WorkerEvent) {
            switch event {
            case .transport(let id, _): self = .transport(id)
            case .started(let id, _): self = .start(id)
            case .videoHeld(let id, _, _): self = .hold(id)
            case .layers(let id, _, _): self = .layers(id)
            case .speech(let id, _): self = .speech(id)
            case .layersWanted(let id, _, _): self = .wants(id)
            case .closed, .layerChanged, .fenced, .explained, .statistics, .pressure, .tap, .link:
                return nil
            }
        }
    }

    private var events: [Subject: WorkerEvent] = [:]

    mutating func note(_ event: WorkerEvent) {
        guard let subject = Subject(of: event) else { return }
        events[subject] = event
    }

    mutating func forget(_ subject: Subject) { events[subject] = nil }

    /// Removes what is known of an object, and returns it.
    mutating func take(_ subjects: Subject...) -> [WorkerEvent] {
        subjects.compactMap { events.removeValue(forKey: $0) }
    }
}
