// Floor control of lectures: one participant holds the floor; others request it and wait.

extension Room {
    package enum FloorStep: String, Hashable, Sendable, CaseIterable {
        /// Steps of the participant itself.
        case request, cancel, finish
        /// Steps of a moderator, about a participant.
        case grant, deny, release

        /// Whether the participant makes the step for itself.
        var isOwn: Bool {
            switch self {
            case .request, .cancel, .finish: true
            case .grant, .deny, .release: false
            }
        }
    }

    package enum FloorChange: String, Hashable, Sendable {
        case requested, cancelled, granted, denied, released, finished
    }

    /// Holder of a lecture's floor, and the requests for it.
    struct Floor: Sendable, Codable {
        private(set) var holder: String?
        /// Participants that have requested the floor, in the order of their requests.
        private(set) var requests: [String] = []

        func isRequested(by id: String) -> Bool { requests.contains(id) }

        mutating func request(by id: String) { requests.append(id) }

        mutating func removeRequest(of id: String) { requests.removeAll { $0 == id } }

        mutating func give(to id: String) { holder = id }

        mutating func vacate() { holder = nil }

        /// Takes the floor and a pending request for it from a participant.
        ///
        /// - Returns: the resulting changes.
        mutating func take(from id: String) -> [FloorChange] {
            var changes: [FloorChange] = []
            if holder == id {
                holder = nil
                changes.append(.finished)
            }
            if isRequested(by: id) {
                removeRequest(of: id)
                changes.append(.cancelled)
            }
            return changes
        }
    }

    mutating func floor(
        _ step: FloorStep,
        _ id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        guard settings.kind == .lecture else {
            throw CallError(
                code: 5082,
                reason: "no-floor",
                message: "room \"\(name)\" is no lecture and has no floor"
            )
        }
        switch step {
        case .request: try requestFloor(id, &transaction)
        case .cancel: try cancelFloorRequest(of: id, &transaction)
        case .finish: try finishFloor(of: id, &transaction)
        case .grant: try grantFloor(to: id, by: actor, &transaction)
        case .deny: try denyFloor(to: id, by: actor, &transaction)
        case .release: try releaseFloor(of: id, by: actor, &transaction)
        }
    }

    /// Takes the floor and a pending request for it from a participant that may no longer use it.
    mutating func freeFloor(of id: String, _ transaction: inout RoomTransaction) {
        guard let participant = participants[id] else { return }
        freeFloor(of: participant, &transaction)
    }

    mutating func freeFloor(of participant: Participant, _ transaction: inout RoomTransaction) {
        for change in moderation.floor.take(from: participant.id) {
            let change = Event.floor(change, participant, by: transaction.actor)
            transaction.announce(change, to: concerned(participant.id, transaction.actor))
        }
    }
}
