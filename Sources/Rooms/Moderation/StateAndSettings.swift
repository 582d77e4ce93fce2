// States of live events, and changes of a room's settings.

extension Room {
    /// Advances a live event by one state, or ends it.
    mutating func setState(
        _ next: State,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .state,
            orElse: .notPermitted("changing the room's state needs the permission state")
        )
        guard settings.kind.isLiveEvent else {
            throw .wrongState("only live events have states")
        }
        let isStep =
            switch (state, next) {
            case (.created, .ready), (.created, .ended): true
            case (.ready, .ongoing), (.ready, .ended): true
            case (.ongoing, .ended): true
            case (.created, _), (.ready, _), (.ongoing, _), (.ended, _): false
            }
        guard isStep else {
            throw .wrongState("no way from \(state.rawValue) to \(next.rawValue)")
        }
        lifecycle.state = next
        transaction.isFenced = true
        transaction.announce(.stateChanged(next, by: actor), to: .everyone)
        if next == .ended {
            for participant in members + awaited {
                for transport in participant.transports {
                    let name = transport.name
                    end(transport: name, of: participant.id, EndReason.ended, &transaction)
                }
                noteConnection(of: participant.id, ifNone: .none)
            }
        }
        for number in subscriptions.keys.sorted() {
            reconcile(subscription: number, &transaction)
        }
    }

    /// Changes the settings of an existing room; its kind is fixed.
    mutating func update(
        settings new: Settings?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .update,
            orElse: .notPermitted("updating the room needs the permission update")
        )
        transaction.isFenced = true
        if let new { try take(new) }
        transaction.announce(.updated(by: actor), to: .everyone)
        guard new != nil else { return }
        trimPins(by: actor, &transaction)
        reconcile(rolesOf: members.map(\.id), &transaction)
    }

    private mutating func take(_ new: Settings) throws(CallError) {
        guard new.kind == settings.kind else {
            throw .wrongState("a room's mode never changes", reason: "mode-is-fixed")
        }
        for participant in participants.values where new.role(named: participant.role) == nil {
            throw .wrongState(
                "role \"\(participant.role)\" is in use and cannot go",
                reason: "role-in-use"
            )
        }
        settings = new
        moderation.roleRequests.removeRoles(missingFrom: new)
    }
}
