import RTP
import WorkerInterface

extension Room {
    /// Answers an offer: creates a transport, renegotiates it or restarts its ICE.
    mutating func offer(
        _ call: Offer,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        let participant = try participant(call.participant)
        guard participant.mode != .signallingOnly else {
            throw .signallingOnly(participant.id)
        }
        try checkHasNotEnded()
        let present = transport(continuedBy: call, of: participant, transaction.shared)
        let transport =
            if let present {
                present
            } else {
                try makeTransport(for: call, participant, &transaction)
            }
        var negotiation = negotiation(of: transport, &transaction)
        do throws(CallError) {
            let (answer, sources) = try negotiate(
                call,
                participant,
                transport,
                &negotiation,
                &transaction
            )
            if present == nil {
                endSuccessor(of: call.transport, of: call.participant, &transaction)
            }
            let answered = adopt(answer, sources, call, transport, &transaction)
            placement.negotiated[transport.place] = NegotiatedState(
                negotiation,
                answer.configuration
            )
            return answered
        } catch {
            if present == nil {
                let place = transport.place
                transaction.shared.identifiers[place.worker].transports.release(place.id)
            }
            throw error
        }
    }

    private func makeTransport(
        for call: Offer,
        _ participant: Participant,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Transport {
        let limit = transaction.shared.limits.transportsPerParticipant
        let present = participant.transports.first { $0.name == call.transport }
        guard present != nil || participant.transports.count(where: { !$0.isSuccessor }) < limit
        else {
            throw .limitReached("transportsPerParticipant", limit)
        }
        // A returning participant is always let back; a first transport counts as a join.
        if !participant.hasConnected { try transaction.shared.refuseTransport() }
        let node = destination(of: call, by: participant, transaction.shared)
        guard let worker = placement.workerForTransport(transaction.shared, at: node),
            let id = transaction.shared.identifiers[worker].transports.allocate()
        else {
            throw .limitReached(
                "transportsPerWorker",
                transaction.shared.identifiers[self.worker].transports.used
            )
        }
        let place = TransportLocation(worker: worker, id: id)
        var transport = Transport(name: call.transport, place: place, connection: .connecting)
        transport.site = Site(node: transaction.shared.node(of: worker))
        if let present { transport.succeed(present, number: transaction.shared.random.next()) }
        return transport
    }

    /// Returns what a transport's earlier offers have negotiated.
    private func negotiation(
        of transport: Transport,
        _ transaction: inout RoomTransaction
    ) -> Negotiation {
        if let negotiated = placement.negotiated[transport.place] { return negotiated.negotiation }
        var local = transaction.shared.local(of: transport.place.worker)
        // A CNAME of its own for each transport, so that nobody is recognized by it (RFC 7022
        // §4.2).
        local.cname = String(transaction.shared.random.next(), radix: 36)
        return Negotiation(local: local)
    }

    /// Negotiates the answer.
    ///
    /// Only the negotiation and the handle pools change.
    private func negotiate(
        _ call: Offer,
        _ participant: Participant,
        _ transport: Transport,
        _ negotiation: inout Negotiation,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> (Answer, [String: MediaSource]) {
        var sources: [String: MediaSource] = [:]
        for track in transport.tracks { sources[track.mid] = track.source }
        sources.merge(call.sources) { _, new in new }
        let policy: (OfferedMedia) -> String? = { media in
            let source = sources[media.mid] ?? .defaultSource(for: media.kind)
            guard source.fits(media.kind) else { return "source" }
            guard case .refused(let reason) = mayPublish(participant, media.kind, from: source)
            else { return nil }
            return reason.rawValue
        }
        let rights = role(of: participant).publish
        do throws(SDPError) {
            let answer = try negotiation.answer(
                call.sdp,
                identifiers: &transaction.shared.identifiers[transport.place.worker],
                random: &transaction.shared.random,
                policy: policy,
                audioBitrate: { media in
                    let source = sources[media.mid] ?? .defaultSource(for: media.kind)
                    return rights.cap(of: media.kind, from: source).bitrate
                },
                simulcast: { _ in rights.simulcast }
            )
            return (answer, sources)
        } catch {
            switch error.reason {
            case .malformed: throw .badSDP(line: error.line, cause: error.cause)
            case .exhausted:
                let identifiers = transaction.shared.identifiers[transport.place.worker]
                throw .limitReached("handlesPerWorker", identifiers.publications.used)
            }
        }
    }

    private mutating func adopt(
        _ answer: Answer,
        _ sources: [String: MediaSource],
        _ call: Offer,
        _ transport: Transport,
        _ transaction: inout RoomTransaction
    ) -> Result {
        var transport = transport
        transport.takeAttributes(of: call, answer, sources)
        let answer = limited(answer, sources, transport, call.participant)
        let id = call.participant
        let worker = transport.place.worker
        dropSlots(answer.endedSlots, of: id, transport, &transaction)
        empty(slotsOf: answer.endedPublications, of: id, transport.name, &transaction)
        transport.slots = slots(answer, of: id, transport, &transaction)
        transport.tracks = tracks(answer, sources, of: id, transport, &transaction)
        transaction.tell(worker, .configure(transport.place.id, answer.configuration))

        if let index = participants[id]?.transports.firstIndex(where: { $0.name == transport.name })
        {
            participants[id]?.transports[index] = transport
        } else {
            participants[id]?.transports.append(transport)
            participants[id]?.hasConnected = true
            if !transport.isSuccessor { noteNode(of: transport, of: id, transaction.shared) }
            noteConnection(of: id, ifNone: .none)
            open(.transport(worker: worker, transport.place.id), for: id, &transaction)
        }
        moderation.hosts.stopExpecting(id)
        reconcile(publisher: id, ending: EndReason.unpublished, &transaction)
        for publication in answer.endedPublications {
            free(.publication(worker: worker, publication), &transaction)
        }
        for slot in answer.endedSlots { free(.slot(worker: worker, slot), &transaction) }
        return .answered(
            Answered(
                sdp: answer.sdp,
                transport: transport.publicName,
                media: lines(answer, of: id, transport)
            )
        )
    }

    /// Adds the publisher role's caps to an answer's publications, and to videos the load-shedding
    /// priority, the source and the permission to fall back to audio.
    private func limited(
        _ answer: Answer,
        _ sources: [String: MediaSource],
        _ transport: Transport,
        _ id: String
    ) -> Answer {
        guard let publisher = participants[id] else { return answer }
        var answer = answer
        let rights = role(of: publisher).publish
        for index in answer.configuration.publications.indices {
            let mid = answer.configuration.publications[index].mid
            let kind = answer.configuration.publications[index].kind
            let source = sources[mid] ?? .defaultSource(for: kind)
            answer.configuration.publications[index].cap = rights.cap(of: kind, from: source)
            guard kind == .video else { continue }
            answer.configuration.publications[index].isFeatured = isFeatured(id)
            let isScreen = source == .screen
            answer.configuration.publications[index].isScreen = isScreen
            answer.configuration.publications[index].audioFallback = transport.mayFallBack(
                isScreen: isScreen
            )
        }
        return answer
    }

    mutating func dropSlots(
        _ ended: [SlotID],
        of id: String,
        _ transport: Transport,
        _ transaction: inout RoomTransaction
    ) {
        for slot in transport.slots where ended.contains(slot.id) {
            let name = SlotName(transport: transport.name, mid: slot.mid)
            guard !slot.follows else {
                stopFollowing(name, of: id, &transaction)
                continue
            }
            if let subscription = release(slot, name, &transaction) {
                transaction.announce(
                    .subscriptionDisconnected(subscription, isFinal: true, .slots),
                    to: .only([id])
                )
            }
        }
    }

    /// Empties the slots that carry ending publications before the worker is told of the end.
    private mutating func empty(
        slotsOf ended: [PublicationID],
        of id: String,
        _ transport: String,
        _ transaction: inout RoomTransaction
    ) {
        guard !ended.isEmpty else { return }
        for stream in (participants[id]?.streams ?? []).compactMap({ streams[$0] })
        // The same handle value may mean another publication in another worker.
        where stream.transport == transport {
            for kind in MediaKind.allCases {
                guard let publication = stream.publication(kind), ended.contains(publication)
                else { continue }
                for number in stream.subscribers.sorted() {
                    guard let subscription = subscriptions[number],
                        let slot = subscription.slot(kind)
                    else { continue }
                    unbind(slot, of: subscription.participant, &transaction)
                }
            }
        }
    }

    private mutating func slots(
        _ answer: Answer,
        of id: String,
        _ transport: Transport,
        _ transaction: inout RoomTransaction
    ) -> [Slot] {
        // Read the slots again: ended ones have released their subscriptions meanwhile.
        let present = participants[id]?.transports.first { $0.name == transport.name }?.slots ?? []
        return answer.configuration.slots.map { configured in
            let codecs = CodecSet(configured.formats.map(\.format.codec))
            if var slot = present.first(where: { $0.id == configured.id }) {
                slot.codecs = codecs
                return slot
            }
            open(.slot(worker: transport.place.worker, configured.id), for: id, &transaction)
            return Slot(
                mid: configured.mid,
                kind: configured.kind,
                id: configured.id,
                pair: answer.media.first { $0.slot == configured.id }?.pair ?? 0,
                codecs: codecs
            )
        }
    }

    private mutating func tracks(
        _ answer: Answer,
        _ sources: [String: MediaSource],
        of id: String,
        _ transport: Transport,
        _ transaction: inout RoomTransaction
    ) -> [Track] {
        answer.configuration.publications.map { configured in
            let source = sources[configured.mid] ?? .defaultSource(for: configured.kind)
            if var track = transport.tracks.first(where: { $0.publication == configured.id }) {
                track.source = source
                track.configuration = configured
                transaction.touch(transport.home(of: track))
                return track
            }
            open(.publication(worker: transport.place.worker, configured.id), for: id, &transaction)
            return Track(source: source, configuration: configured)
        }
    }

    private func lines(_ answer: Answer, of id: String, _ transport: Transport) -> [AnsweredLine] {
        guard let publisher = participants[id] else { return [] }
        let tracks = publisher.transports.first { $0.name == transport.name }?.tracks ?? []
        var lines: [AnsweredLine] = []
        for media in answer.media where !media.mid.isEmpty {
            var line = AnsweredLine(
                mid: media.mid,
                kind: media.kind,
                direction: media.direction,
                refused: media.refused ?? (media.lacksCodec ? "codec" : nil)
            )
            if let track = tracks.first(where: { $0.publication == media.publication }),
                !track.withdrawn,
                mayPublish(publisher, track.kind, from: track.source).isOnStage
            {
                let isScreen = track.source == .screen
                line.stream = stream(of: id, transport.publicName, isScreen: isScreen)?.id
            }
            lines.append(line)
        }
        return lines
    }
}
