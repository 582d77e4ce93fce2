import WorkerInterface

extension Room {
    /// Applies the publisher's own switching of its microphone or camera.
    mutating func update(
        stream id: String,
        audio: Bool?,
        video: Bool?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        var stream = try stream(id)
        transaction.isFenced = audio == false || video == false
        let before = (stream.audioOn, stream.videoOn)
        stream.audioOn = audio ?? stream.audioOn
        stream.videoOn = video ?? stream.videoOn
        guard before != (stream.audioOn, stream.videoOn) else { return }
        streams[id] = stream
        transaction.announce(.streamChanged(stream), to: .everyone)
        reconcileGates(of: stream.participant, &transaction)
        // If another reason keeps the gates closed, no track changes, but subscribers are still
        // told.
        for number in stream.subscribers.sorted() {
            reconcile(subscription: number, &transaction)
        }
    }

    /// Ends a stream; its m-lines stay silent until the client stops and restarts sending on them.
    mutating func unpublish(
        stream id: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        if let actor, try streams[id]?.participant != caller(actor).id {
            try check(
                actor,
                may: .unpublish,
                orElse: .notPermitted("ending another's stream needs the permission unpublish")
            )
        }
        let stream = try stream(id)
        transaction.isFenced = true
        guard
            let index = participants[stream.participant]?.transports.firstIndex(where: {
                $0.name == stream.transport
            }), var tracks = participants[stream.participant]?.transports[index].tracks
        else { return }
        for track in tracks.indices where (tracks[track].source == .screen) == stream.isScreen {
            tracks[track].withdrawn = true
        }
        participants[stream.participant]?.transports[index].tracks = tracks
        reconcile(
            publisher: stream.participant,
            ending: EndReason.unpublished,
            &transaction
        )
    }

    mutating func closeTransport(
        _ name: String,
        of id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let participant = try participant(id)
        guard participant.transports.contains(where: { $0.name == name }) else {
            throw .noSuchTransport(name)
        }
        transaction.isFenced = true
        endSuccessor(of: name, of: id, &transaction)
        end(transport: name, of: id, EndReason.transportClosed, &transaction)
        noteConnection(of: id, ifNone: .none)
        reconcile(publisher: id, ending: EndReason.transportClosed, &transaction)
    }
}
