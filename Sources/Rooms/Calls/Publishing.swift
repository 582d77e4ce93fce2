import WorkerInterface

extension Room {
    /// Applies the publisher's own switching of its microphone or camera.
    mutating func update(
        stream id: String,
        audio: Bool?,
        video: Bool?,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        var stream = try stream(id)
        var outcome = Outcome(isFenced: audio == false || video == false)
        let before = (stream.audioOn, stream.videoOn)
        stream.audioOn = audio ?? stream.audioOn
        stream.videoOn = video ?? stream.videoOn
        guard before != (stream.audioOn, stream.videoOn) else { return outcome }
        streams[id] = stream
        outcome.change.announce(.streamChanged(stream), to: .everyone)
        reconcileGates(of: stream.participant, &shared, &outcome.change)
        // If another reason keeps the gates closed, no track changes, but subscribers are still
        // told.
        for number in stream.subscribers.sorted() {
            reconcile(subscription: number, &shared, &outcome.change)
        }
        return outcome
    }

    /// Ends a stream; its m-lines stay silent until the client stops and restarts sending on them.
    mutating func unpublish(
        stream id: String,
        by actor: String?,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        if let actor, try streams[id]?.participant != participant(actor).id {
            try check(
                actor,
                may: .unpublish,
                orElse: .notPermitted("ending another's stream needs the permission unpublish")
            )
        }
        let stream = try stream(id)
        var outcome = Outcome(isFenced: true)
        guard
            let index = participants[stream.participant]?.transports.firstIndex(where: {
                $0.name == stream.transport
            }), var tracks = participants[stream.participant]?.transports[index].tracks
        else { return outcome }
        for track in tracks.indices where (tracks[track].source == .screen) == stream.isScreen {
            tracks[track].withdrawn = true
        }
        participants[stream.participant]?.transports[index].tracks = tracks
        reconcile(
            publisher: stream.participant,
            ending: EndReason.unpublished,
            &shared,
            &outcome.change
        )
        return outcome
    }

    mutating func closeTransport(
        _ name: String,
        of id: String,
        _ shared: inout Shared
    ) throws(CallError) -> Outcome {
        let participant = try participant(id)
        guard participant.transports.contains(where: { $0.name == name }) else {
            throw .noSuchTransport(name)
        }
        var outcome = Outcome(isFenced: true)
        end(transport: name, of: id, EndReason.transportClosed, &outcome.change)
        noteConnection(of: id, ifNone: .none)
        reconcile(publisher: id, ending: EndReason.transportClosed, &shared, &outcome.change)
        return outcome
    }
}
