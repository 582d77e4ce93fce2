import RTP
package import WorkerInterface

/// Events for the control plane, in the order in which they happened.
struct EventQueue: ~Copyable {
    private var events: [WorkerEvent] = []
    private var next = 0

    mutating func append(_ event: WorkerEvent) { events.append(event) }

    /// Moves the events of a part to the end of the queue.
    mutating func append(from part: inout [WorkerEvent]) {
        guard !part.isEmpty else { return }
        events.append(contentsOf: part)
        part.removeAll(keepingCapacity: true)
    }

    mutating func takeFirst() -> WorkerEvent? {
        guard next < events.count else { return nil }
        let event = events[next]
        next += 1
        if next == events.count {
            events.removeAll(keepingCapacity: true)
            next = 0
        }
        return event
    }
}

/// Routing of what the parts have found, to other parts and to the control plane.
extension Core {
    /// Removes and returns the next event for the control plane.
    package mutating func takeEvent() -> WorkerEvent? {
        collectEvents()
        return events.takeFirst()
    }

    mutating func emit(_ event: WorkerEvent) {
        collectEvents()
        events.append(event)
    }

    /// Takes over the events of the parts.
    ///
    /// Called after each step of a round, so that events keep the order in which they happened.
    mutating func collectEvents() {
        events.append(from: &allocator.events)
        events.append(from: &receiver.events)
        events.append(from: &forwarder.events)
    }

    /// Routes what the transports have found to the parts that it concerns.
    mutating func routeFindings(at now: Instant) {
        guard !transports.findings.isEmpty else { return }
        for finding in transports.takeFindings() {
            switch finding {
            case .changed(let id, let change):
                emit(.transport(id, change))
                if change == .connected { requestKeyframes(forSlotsOf: id.place, at: now) }
            case .pathChanged(let transport):
                allocator.forgetFailures(of: transport, transports)
            }
        }
    }

    /// Requests keyframes for the slots of a transport that can be sent media now.
    private mutating func requestKeyframes(forSlotsOf transport: TransportIndex, at now: Instant) {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            forwarder.requestKeyframe(forSlot: slot, at: now, &transports, &receiver)
        }
    }
}
