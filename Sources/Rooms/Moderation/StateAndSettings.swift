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
        guard settings.kind.isLiveEvent else { throw .wrongState(state, to: next) }
        let isStep =
            switch (state, next) {
            case (.created, .ready), (.created, .ended): true
            case (.ready, .ongoing), (.ready, .ended): true
            case (.ongoing, .ended): true
            case (.created, _), (.ready, _), (.ongoing, _), (.ended, _): false
            }
        guard isStep else { throw .wrongState(state, to: next) }
        let previous = state
        lifecycle.state = next
        transaction.isFenced = true
        let change = Event.stateChanged(next, from: previous, by: actor)
        transaction.announce(change, to: .everyone)
        if next == .ended {
            // `everyone` leaves out those who wait, and their transports close, too.
            if !awaited.isEmpty { transaction.announce(change, to: .only(awaited.map(\.id))) }
            // A client that is told hears of the end before its connection breaks.
            transaction.announcesFirst = true
            endTaps(EndReason.ended, by: actor, &transaction)
            for participant in members + awaited {
                for transport in participant.transports {
                    let name = transport.name
                    end(transport: name, of: participant.id, EndReason.ended, &transaction)
                }
                noteConnection(of: participant.id, ifNone: .none)
            }
            moderation.hosts = Hosts()
        }
        for number in subscriptions.keys.sorted() {
            reconcile(subscription: number, &transaction)
        }
    }

    /// Checks that the room is no live event that has ended.
    func checkHasNotEnded() throws(CallError) {
        guard state != .ended else { throw .eventEnded }
    }

    /// Checks that messages may be sent and received.
    ///
    /// A live event has no chat before it is `ready`, nor after its end.
    package func checkIsOpenForMessages() throws(CallError) {
        switch state {
        case .ready, .ongoing: return
        case .created: throw .eventNotOpen
        case .ended: throw .eventEnded
        }
    }

    /// Checks that a caller may change the settings and the custom data of the room.
    package func checkMayUpdate(_ actor: String?) throws(CallError) {
        try check(
            actor,
            may: .update,
            orElse: .notPermitted("updating the room needs the permission update")
        )
    }

    /// Changes the settings of an existing room; its kind is fixed.
    mutating func update(
        settings new: Settings?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try checkMayUpdate(actor)
        transaction.isFenced = true
        if let new { try take(new) }
        transaction.announce(.updated(by: actor), to: .everyone)
        guard new != nil else { return }
        reviewRoleRequests(&transaction)
        trimPins(by: actor, &transaction)
        reconcile(rolesOf: members.map(\.id), &transaction)
    }

    private mutating func take(_ new: Settings) throws(CallError) {
        guard new.kind == settings.kind else {
            throw .modeIsFixed
        }
        for participant in participants.values where new.role(named: participant.role) == nil {
            throw .roleInUse(participant.role)
        }
        settings = new
    }
}
