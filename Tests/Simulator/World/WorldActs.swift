import JSON
import LoadPeer
import RTP
import TestSupport
import WorkerInterface

// Random actions in rooms.
extension World {
    /// Performs a random action in one of the rooms.
    func act() {
        guard let hall = random.pick(halls.filter(\.isOpen)) else { return }
        guard let seat = random.pick(hall.seats.filter(\.isFree)) else { return }
        switch random.pick(0...33) {
        case 0: leave(seat, hall)
        case 1: drop(seat, hall)
        case 2, 3: takeOver(seat, hall)
        case 4, 5: renew(seat, hall)
        case 6, 7, 8: restart(seat, hall)
        case 9, 10, 11: mute(seat, hall)
        case 12, 13: muteAll(hall)
        case 14, 15, 16: switchOwn(seat, hall)
        case 17, 18: switchWatching(seat, hall)
        case 19, 20: stopWatching(seat, hall)
        case 21, 22: watchAll(seat, in: hall)
        case 23: unpublish(seat, hall)
        case 24: changeMode(seat, hall)
        case 25: changeRole(seat, hall)
        case 26: tryAnother(seat, hall)
        case 27: look(seat, hall)
        case 28: enterOrClose(hall)
        case 29: prefer(seat, hall)
        case 30, 31, 32: passFloor(seat, hall)
        default: turn(seat, hall)
        }
    }

    private func who(_ seat: SimulatedParticipant) -> [String: JSON] {
        ["participant": .string(seat.name)]
    }

    func leave(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        ask("participant.leave", who(seat), about: seat, in: hall) { [unowned self] in
            forget(seat, in: hall)
        } then: { [unowned self] _ in
            if random.chance(0.7) { enter(hall, publishes: seat.publishes) }
        }
    }

    private func drop(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        let all: [String: JSON] = ["participants": [.string(seat.name)]]
        ask("participant.drop", all, about: seat, in: hall) { [unowned self] in
            forget(seat, in: hall)
        } then: { [unowned self] _ in
            if random.chance(0.7) { enter(hall, publishes: seat.publishes) }
        }
    }

    /// Records that a participant has left the room.
    func forget(_ seat: SimulatedParticipant, in hall: SimulatedRoom, isProven: Bool = true) {
        retire(seat, isProven: isProven)
        if hall.floorHolder === seat { hall.floorHolder = nil }
        seat.hasJoined = false
        seat.subscriptions = []
        hall.seats.removeAll { $0 === seat }
    }

    /// Lets a participant join again without having left.
    func takeOver(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        ask("participant.join", who(seat), about: seat, in: hall) { [unowned self] in
            endStream(of: seat, in: hall)
            retire(seat)
        } then: { [unowned self] result in
            if result != nil { connect(seat, in: hall) }
        }
    }

    /// Ends all subscriptions to a stream that has ended.
    private func endStream(of seat: SimulatedParticipant, in hall: SimulatedRoom) {
        guard let stream = seat.stream else { return }
        seat.stream = nil
        for other in hall.seats { other.subscriptions.removeAll { $0.stream == stream } }
    }

    /// Closes a participant's transport and makes another.
    private func renew(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard seat.client != nil else { return connect(seat, in: hall) }
        ask("transport.close", who(seat), about: seat, in: hall) { [unowned self] in
            endStream(of: seat, in: hall)
            retire(seat)
        } then: { [unowned self] result in
            if result != nil { connect(seat, in: hall) }
        }
    }

    /// Makes another offer with new ICE credentials.
    func restart(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let client = seat.client, client.isConnected else { return }
        seat.offers += 1
        let restart = UInt64(client.index) << 16 + UInt64(seat.offers)
        client.offer.fragment = LoadPeer.fragment(seed: restart)
        client.offer.password = LoadPeer.password(seed: restart)
        client.offer.version += 1
        if seat.stream == nil { beginStream(of: seat) }
        var more = who(seat)
        more["sdp"] = .string(client.offer.text)
        ask("transport.offer", more, about: seat, in: hall) { [unowned self] result in
            guard let result, let answer = result.sdp.flatMap(WorldAnswer.init),
                seat.client === client
            else { return }
            client.peer.restart(
                seed: restart,
                fragment: answer.fragment,
                password: answer.password,
                at: now,
                into: &sent
            )
            sendAll(from: client)
            client.answer = answer
            client.repaired = answer.repaired
            plan(client, at: now)
            guard seat.publishes, let stream = result.streams.first else { return }
            seat.stream = stream
            hall.publishers[stream] = UInt32(client.index)
        }
    }

    private func mute(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let kind = random.pick([MediaKind.audio, .video]) else { return }
        var more = who(seat)
        more["media"] = .array([.string(kind.word)])
        let closure = RightsLedger.Closure.mute(publisher: seat.number, kind)
        if seat.muted.contains(kind) {
            rights.open(closure)
            ask("participant.hardUnmute", more, about: seat, in: hall) { result in
                if result != nil { seat.muted.remove(kind) }
            }
        } else {
            ask("participant.hardMute", more, about: seat, in: hall) { [unowned self] in
                rights.close(closure)
                seat.muted.insert(kind)
            }
        }
    }

    private func muteAll(_ hall: SimulatedRoom) {
        guard !hall.isBusy else { return }
        hall.isBusy = true
        let closure = RightsLedger.Closure.roomMute(hall.number)
        let isMuted = hall.isMuted
        if isMuted { rights.open(closure) }
        call(
            isMuted ? "room.hardUnmute" : "room.hardMute",
            params(hall, isMuted ? [:] : ["sparing": "moderators"]),
            emitted: { [unowned self] outcome in
                guard outcome.result != nil else { return }
                hall.isMuted = !isMuted
                if !isMuted { rights.close(closure) }
            },
            then: { outcome in
                hall.isBusy = false
                if case .lost = outcome { hall.isUnknown = true }
            }
        )
    }

    private func switchOwn(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let stream = seat.stream, let kind = random.pick([MediaKind.audio, .video]) else {
            return
        }
        let isOff = seat.switchedOff.contains(kind)
        let closure = RightsLedger.Closure.own(publisher: seat.number, kind)
        if isOff { rights.open(closure) }
        let more: [String: JSON] = ["stream": .string(stream), kind.word: .bool(isOff)]
        ask("stream.update", more, about: seat, in: hall) { [unowned self] in
            if isOff {
                seat.switchedOff.remove(kind)
            } else {
                seat.switchedOff.insert(kind)
                rights.close(closure)
            }
        }
    }

    private func switchWatching(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let subscription = random.pick(seat.subscriptions),
            let kind = random.pick([MediaKind.audio, .video])
        else { return }
        let closure = RightsLedger.Closure.watch(
            viewer: seat.number,
            publisher: subscription.publisher,
            kind
        )
        let isOff = rights.isClosed(closure)
        if isOff { rights.open(closure) }
        let more: [String: JSON] = [
            "subscription": .string(subscription.id), kind.word: .bool(isOff),
        ]
        ask("subscription.update", more, about: seat, in: hall) { [unowned self] in
            if !isOff { rights.close(closure) }
        }
    }

    private func stopWatching(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let subscription = random.pick(seat.subscriptions) else { return }
        let more: [String: JSON] = ["subscription": .string(subscription.id)]
        ask("subscription.remove", more, about: seat, in: hall) { [unowned self] in
            rights.leave(viewer: seat.number, publisher: subscription.publisher)
            seat.subscriptions.removeAll { $0.id == subscription.id }
        }
    }

    /// Switches a subscription to another stream.
    private func turn(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        let watched = Set(seat.subscriptions.map(\.stream))
        let others = hall.seats.compactMap(\.stream).filter { !watched.contains($0) }
        guard let subscription = random.pick(seat.subscriptions),
            let stream = random.pick(others), let publisher = hall.publishers[stream],
            publisher != subscription.publisher
        else { return }
        rights.watch(viewer: seat.number, publisher: publisher)
        let more: [String: JSON] = [
            "subscription": .string(subscription.id), "stream": .string(stream),
        ]
        ask("subscription.update", more, about: seat, in: hall) { [unowned self] in
            rights.leave(viewer: seat.number, publisher: subscription.publisher)
            // Media that was switched off stays off.
            for kind in MediaKind.allCases {
                let old = RightsLedger.Closure.watch(
                    viewer: seat.number,
                    publisher: subscription.publisher,
                    kind
                )
                guard rights.isClosed(old) else { continue }
                rights.close(.watch(viewer: seat.number, publisher: publisher, kind))
            }
            seat.subscriptions.removeAll { $0.id == subscription.id }
            seat.subscriptions.append(
                SimulatedParticipant.Subscription(
                    id: subscription.id,
                    stream: stream,
                    publisher: publisher,
                    kinds: subscription.kinds
                )
            )
        }
    }

    private func unpublish(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let stream = seat.stream else { return }
        ask(
            "stream.unpublish",
            ["stream": .string(stream)],
            about: seat,
            in: hall
        ) { [unowned self] in
            rights.close(.unpublished(publisher: seat.number))
            endStream(of: seat, in: hall)
        }
    }

    private func changeMode(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        var more = who(seat)
        let closure = RightsLedger.Closure.mode(publisher: seat.number)
        let back = seat.onlyReceives
        more["mode"] = back ? "SEND_AND_RECV" : "RECV_ONLY"
        if back {
            rights.open(closure)
            beginStream(of: seat)
        }
        ask("participant.setMode", more, about: seat, in: hall) { [unowned self] in
            seat.onlyReceives = !back
            if !back {
                rights.close(closure)
                endStream(of: seat, in: hall)
            }
        }
    }

    private func changeRole(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard !seat.isModerator else { return }
        var more = who(seat)
        let closure = RightsLedger.Closure.role(publisher: seat.number)
        let back = seat.onlyWatches
        more["role"] = back ? "participant" : "viewer"
        more["force"] = true
        if back {
            rights.open(closure)
            beginStream(of: seat)
        }
        ask("role.change", more, about: seat, in: hall) { [unowned self] in
            seat.onlyWatches = !back
            if !back {
                rights.close(closure)
                endStream(of: seat, in: hall)
            }
        }
    }

    /// Gives a lecture's floor to somebody, or takes it back.
    private func passFloor(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard hall.isLecture, seat.mayTakeFloor else { return }
        let closure = RightsLedger.Closure.floor(publisher: seat.number)
        if let holder = hall.floorHolder {
            guard holder === seat else { return }
            ask("floor.release", who(seat), about: seat, in: hall) { [unowned self] in
                rights.close(closure)
                hall.floorHolder = nil
                endStream(of: seat, in: hall)
            } then: { _ in
                if seat.isUnknown { hall.isUnknown = true }
            }
            return
        }
        hall.floorHolder = seat
        ask("floor.request", who(seat), about: seat, in: hall) { [unowned self] result in
            guard result != nil else { return hall.floorHolder = nil }
            rights.open(closure)
            beginStream(of: seat)
            ask("floor.grant", who(seat), about: seat, in: hall) { result in
                if result == nil { hall.isUnknown = true }
            }
        }
    }

    /// Changes a viewer's preferred size or a video's priority.
    private func prefer(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        guard let subscription = random.pick(seat.subscriptions) else { return }
        let sizes: [JSON] = [
            .null, ["width": 320, "height": 180], ["width": 640, "height": 360],
        ]
        let more: [String: JSON] = [
            "subscription": .string(subscription.id),
            "preferredResolution": random.pick(sizes) ?? .null,
            "priority": .integer(random.pick(0...1_000)),
        ]
        ask("subscription.update", more, about: seat, in: hall) { _ in }
    }

    /// Names a stream of another room, which must be refused.
    private func tryAnother(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        let others = halls.filter { $0 !== hall }.flatMap(\.seats).compactMap(\.stream)
        guard let stream = random.pick(others) else { return }
        var more = who(seat)
        more["stream"] = .string(stream)
        let params = params(hall, more)
        call("subscription.add", params) { [unowned self] outcome in
            if outcome.result != nil {
                violate(.answers, "a stream of another room may be watched")
            }
        }
    }

    private func look(_ seat: SimulatedParticipant, _ hall: SimulatedRoom) {
        switch random.pick(0...3) {
        case 0: call("room.get", params(hall))
        case 1: call("server.stats", [:])
        case 2: call("stats.get", params(hall))
        default:
            guard let subscription = seat.subscriptions.first else { return }
            call("subscription.explain", params(hall, ["subscription": .string(subscription.id)]))
        }
    }

    private func enterOrClose(_ hall: SimulatedRoom) {
        if hall.seats.count < 5, random.chance(0.8) {
            enter(hall, publishes: random.chance(0.5))
        } else {
            close(hall, again: true)
        }
    }

    /// Ends a room; one of the same name may follow at once.
    func close(_ hall: SimulatedRoom, again: Bool) {
        guard !hall.isBusy else { return }
        hall.isBusy = true
        call(
            "room.close",
            params(hall),
            emitted: { [unowned self] outcome in
                guard outcome.result != nil else { return }
                end(hall)
            },
            then: { [unowned self] outcome in
                hall.isBusy = false
                if case .lost = outcome { hall.isUnknown = true }
                guard outcome.result != nil, again else { return }
                openHall(named: random.chance(0.5) ? hall.name : nil)
            }
        )
    }

    /// Records that a room has ended, with everything in it.
    private func end(_ hall: SimulatedRoom) {
        rights.close(.room(hall.number))
        for seat in hall.seats { retire(seat) }
        hall.seats = []
        hall.isOpen = false
        halls.removeAll { $0 === hall }
    }
}
