extension Room {
    /// Applies a call, or throws a refusal and changes nothing.
    package mutating func apply(
        _ call: Call,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        var transaction = RoomTransaction(shared: consume shared)
        transaction.actor = call.actor
        let result: Result
        do throws(CallError) {
            result = try carryOut(call, &transaction)
        } catch {
            shared = transaction.shared
            throw error
        }
        settle(&transaction)
        let outcome = Outcome(
            result: result,
            change: transaction.change,
            isFenced: transaction.isFenced,
            announcesFirst: transaction.announcesFirst,
            process: transaction.pending
        )
        shared = transaction.shared
        return outcome
    }

    /// Applies a worker's notice; one about an object that is gone has no effect.
    package mutating func take(_ notice: Notice, _ shared: inout Shared) -> Change {
        var transaction = RoomTransaction(shared: consume shared)
        defer { shared = transaction.shared }
        handle(notice, &transaction)
        settle(&transaction)
        return transaction.change
    }

    /// Performs the work due at `shared.now`.
    package mutating func expire(_ shared: inout Shared) -> Change {
        var transaction = RoomTransaction(shared: consume shared)
        defer { shared = transaction.shared }
        expireRoleRequests(&transaction)
        endAbsences(&transaction)
        endExpectations(&transaction)
        settle(&transaction)
        return transaction.change
    }

    /// Updates what depends on the whole room: active speakers, outputs and mirrors.
    mutating func settle(_ transaction: inout RoomTransaction) {
        reconcileAbsences(at: transaction.shared.now)
        reconcileSpeakers(&transaction)
        reconcileTaps(&transaction)
        reconcileRelays(&transaction)
    }

    /// Carries out a call by its function.
    private mutating func carryOut(
        _ call: Call,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        switch call {
        case .join(let join): return try self.join(join, &transaction)
        case .each(let ids, let call, let actor):
            return try carryOut(call, about: ids, by: actor, &transaction)
        case .updateParticipant(let id, let name, let actor):
            try update(participant: id, name: name, by: actor, &transaction)
        case .setSubscriptions(let id, let wanted, let actor):
            return try setSubscriptions(of: id, to: wanted, by: actor, &transaction)
        case .leave(let participant): try leave(participant, &transaction)
        case .offer(let offer):
            try check(offer.actor, actsFor: offer.participant)
            return try self.offer(offer, &transaction)
        case .move(let participant, let node, let name):
            try move(participant, to: node, name, &transaction)
        case .closeTransport(let participant, let transport, let actor):
            try check(actor, actsFor: participant)
            try closeTransport(transport, of: participant, &transaction)
        case .updateStream(let stream, let audio, let video, let actor):
            try check(actor, actsFor: self.stream(stream).participant)
            try update(stream: stream, audio: audio, video: video, &transaction)
        case .unpublish(let stream, let actor):
            try unpublish(stream: stream, by: actor, &transaction)
        case .subscribe(let subscribe): return try self.subscribe(subscribe, &transaction)
        case .updateSubscription(let subscription, let update, let actor):
            try check(actor, actsFor: self.subscription(subscription).participant)
            try self.update(subscription: subscription, update, &transaction)
        case .unsubscribe(let subscription, let actor):
            try check(actor, actsFor: self.subscription(subscription).participant)
            try unsubscribe(subscription, &transaction)
        case .follow(let follow): try self.follow(follow, &transaction)
        case .close(let actor, let reason, let detail):
            try close(by: actor, reason, detail: detail, &transaction)
        case .setState(let state, let actor): try setState(state, by: actor, &transaction)
        case .update(let settings, let actor):
            try update(settings: settings, by: actor, &transaction)
        case .lock(let on, let actor): try lock(on, by: actor, &transaction)
        case .hardMuteRoom(let on, let sparing, let actor):
            try hardMute(on, sparingModerators: sparing, by: actor, &transaction)
        case .hardMute(let id, let media, let on, let actor):
            try hardMute(id, media, on, by: actor, &transaction)
        case .drop(let ids, let actor, let detail):
            return try drop(ids, by: actor, detail: detail, &transaction)
        case .answerKnock(let id, let approve, let detail, let actor):
            try answerKnock(of: id, approve: approve, detail: detail, by: actor, &transaction)
        case .setMode(let id, let mode, let vocabulary, let actor):
            try setMode(of: id, mode, vocabulary, by: actor, &transaction)
        case .changeRole(let id, let role, let force, let actor):
            return try changeRole(of: id, to: role, force: force, by: actor, &transaction)
        case .answerRoleRequest(let request, let id, let accept):
            try answerRoleRequest(request, of: id, accept: accept, &transaction)
        case .changeRoles(let role, let sources, let actor):
            try changeRoles(to: role, from: sources, by: actor, &transaction)
        case .transfer(let id, let actor): try transfer(to: id, by: actor, &transaction)
        case .floor(let step, let id, let actor):
            try floor(step, id, by: actor, &transaction)
        case .pin(let ids, let on, let actor): try pin(ids, on, by: actor, &transaction)
        case .startRecording(let streams, let actor):
            return try startRecording(of: streams, by: actor, &transaction)
        case .stopRecording(let actor): try stopRecording(by: actor, &transaction)
        case .startStreaming(let request, let actor):
            return try startStreaming(request, by: actor, &transaction)
        case .stopStreaming(let name, let actor):
            try stopStreaming(name, by: actor, &transaction)
        case .startRTPForward(let request, let actor):
            return try startRTPForward(request, by: actor, &transaction)
        case .stopRTPForward(let name, let actor):
            try stopRTPForward(name, by: actor, &transaction)
        }
        return .none
    }

    /// Carries out a call about several participants; a refusal for one does not keep it from
    /// taking effect for the others.
    private mutating func carryOut(
        _ call: BulkCall,
        about ids: [String],
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        // The caller may make it about all of them or about none, however many there are.
        switch call {
        case .answerKnock: try checkMayAnswerKnocks(actor)
        case .hardMute(let media, let on): try check(actor, mayMute: media, on)
        }
        var isFenced = false
        var results: [Swift.Result<Result, CallError>] = []
        for id in ids {
            do throws(CallError) {
                results.append(.success(try carryOut(call.about(id, by: actor), &transaction)))
            } catch {
                results.append(.failure(error))
            }
            isFenced = isFenced || transaction.isFenced
        }
        transaction.isFenced = isFenced
        return .each(results)
    }
}
