import Contract
import ControlPlane
import Daemon
import JSON
import RTP
import Rooms
import SFU
import TestSupport
import WorkerInterface

// A whole history: periods with faults and without, and the checks after each.
extension World {
    /// Number of rounds, and the virtual milliseconds of faults and of quiet in each.
    package struct Length {
        var rounds: Int
        var wild: Int64
        var quiet: Int64

        /// Length for each change to the project.
        package static let moment = Self(rounds: 1, wild: 1_500, quiet: 500)
        package static let usual = Self(rounds: 2, wild: 15_000, quiet: 150_000)
        package static let short = Self(rounds: 2, wild: 6_000, quiet: 2_500)
        package static let day = Self(rounds: 48, wild: 20_000, quiet: 1_760_000)
    }

    /// Milliseconds in which media must recover when faults stop.
    private static let liveness: Int64 = 5_000
    private static let sumsMilliseconds: Int64 = 500

    /// Runs the history; returns the violation, if any.
    package func live(_ length: Length) -> Violation? {
        openConnection(hearing: true)
        openConnection(hearing: false)
        watchSums()
        for _ in 0..<roomCount { openHall() }
        run(milliseconds: 3_000)
        for round in 0..<length.rounds {
            injectFaults(milliseconds: round == 0 ? length.wild : length.wild / 2)
            calm()
            awaitRecovery("when the faults have stopped")
            restore()
            awaitRecovery("when all is open again")
            listen()
            rest(milliseconds: length.quiet)
            guard violation == nil else { return violation }
        }
        calm()
        awaitRecovery("after a quiet time")
        conclude()
        return violation
    }

    private func watchSums() {
        askForSums()
        checkBounds()
        checkCalls()
        let isQuiet = pace.audio == Pace.quiet.audio
        after(milliseconds: isQuiet ? 10_000 : Self.sumsMilliseconds) { [unowned self] in
            watchSums()
        }
    }

    /// Injects all kinds of faults while participants act at random.
    private func injectFaults(milliseconds: Int64) {
        pace = .wild
        hasFaults = true
        for client in livingClients {
            client.up = Link(using: &random)
            client.down = Link(using: &random)
        }
        let end = now.advanced(milliseconds: milliseconds)
        while now < end, violation == nil {
            act()
            if random.chance(0.25) { fail() }
            if random.chance(0.1) { fill() }
            run(milliseconds: random.pick(20...700))
        }
    }

    /// Injects a fault.
    private func fail() {
        switch random.pick(0...10) {
        case 10: if random.chance(0.3) { upgrade() } else { crash() }
        case 0, 1: if let client = random.pick(livingClients) { move(client) }
        case 2, 3: cutOff()
        case 4: stallWorker()
        case 5: stallProcess()
        case 6: if let id = random.pick(callers.openConnections) { kill(id) }
        case 7: stallReader()
        case 8:
            let worker = workers[Int(random.pick(0...Int64(workers.count - 1)))]
            worker.refusesUntil = now.advanced(milliseconds: random.pick(1...200))
        default:
            // The wall clock is set.
            let jump = Double(random.pick(-3_600...3_600))
            unixOffset += jump
            for worker in workers { worker.wallClockOffset = Int64(unixOffset * 1e9) }
        }
    }

    var livingClients: [WorldClient] {
        clients.values.filter { !$0.isGone && !$0.isAdversary }.sorted { $0.index < $1.index }
    }

    private func cutOff() {
        guard let client = random.pick(livingClients) else { return }
        let end = now.advanced(milliseconds: random.pick(100...12_000))
        if random.chance(0.7) { client.up.downUntil = end }
        if random.chance(0.7) { client.down.downUntil = end }
    }

    private func stallWorker() {
        let worker = Int(random.pick(0...Int64(workers.count - 1)))
        stalled[worker] = now.advanced(milliseconds: random.pick(20...2_000))
        tell("worker \(worker) stands still")
        lastStall = max(lastStall, stalled[worker])
    }

    /// Stalls the whole process, as when its machine sleeps.
    private func stallProcess() {
        let length = random.chance(0.1) ? random.pick(5_000...35_000) : random.pick(100...2_000)
        let end = now.advanced(milliseconds: length)
        for worker in stalled.indices { stalled[worker] = end }
        tell("all stand still for \(length) ms")
        controlStalled = end
        lastStall = max(lastStall, end)
    }

    private func stallReader() {
        guard let id = random.pick(callers.openConnections) else { return }
        let end = now.advanced(milliseconds: random.pick(100...4_000))
        callers.connections[id]?.stalledUntil = end.nanoseconds
    }

    /// Stops the faults, and ends all stalls.
    private func calm() {
        hasFaults = false
        calmed = now
        for client in livingClients {
            client.up.heal()
            client.down.heal()
        }
        let end = max(lastStall, now)
        run(until: end) { false }
        awaitCalls()
    }

    /// Advances the clock until no call is open.
    private func awaitCalls() {
        isSettling = true
        defer { isSettling = false }
        run(until: now.advanced(milliseconds: 15_000)) {
            callers.calls.isEmpty
                && halls.allSatisfy { hall in
                    !hall.isBusy && hall.seats.allSatisfy { !$0.isBusy }
                }
        }
        checkCalls()
    }

    /// Checks that everybody receives what they may within five seconds.
    private func awaitRecovery(_ when: String) {
        guard violation == nil else { return }
        pace = .settling
        let start = now
        let end = now.advanced(milliseconds: Self.liveness)
        var lacks: [String] = []
        repeat {
            run(milliseconds: 250)
            lacks = missingMedia(since: start)
        } while violation == nil && !lacks.isEmpty && now < end
        guard let first = lacks.first else { return }
        for lack in lacks { tell(lack) }
        let slots = workers.flatMap { worker in
            worker.round.core.videoSlots.map { "\n  worker \(worker.index), \($0)" }
        }
        violate(.liveness, "\(first) \(when)\(isVerbose ? slots.joined() : "")")
    }

    /// Returns the media that a client may receive and has not since `start`.
    private func missingMedia(since start: Instant) -> [String] {
        halls.filter { $0.isOpen && !$0.isUnknown }.flatMap { hall in
            hall.seats.filter(\.isFree).flatMap { missingMedia($0, in: hall, since: start) }
        }
    }

    private func missingMedia(
        _ seat: SimulatedParticipant,
        in hall: SimulatedRoom,
        since start: Instant
    ) -> [String] {
        guard let client = seat.client else { return [] }
        guard client.isConnected else {
            // A handshake with losses may take longer.
            guard let begun = client.begunAt, begun > calmed, begun <= start else { return [] }
            return ["\(seat.name) has not connected"]
        }
        var lacks: [String] = []
        for subscription in seat.subscriptions {
            guard let publisher = clients[Int(subscription.publisher)], !publisher.isGone,
                publisher.isConnected,
                let sender = hall.seats.first(where: { $0.client === publisher }), sender.isFree,
                sender.stream == subscription.stream
            else { continue }
            for kind in MediaKind.allCases
            where rights.mayHave(kind, of: subscription.publisher, client) {
                if kind == .video, hall.heldBack[subscription.id] == "quality" { continue }
                guard subscription.kinds.contains(kind) else { continue }
                let source = WorldClient.Source(publisher: subscription.publisher, kind: kind)
                if let seen = client.lastSeen[source], seen > start {
                    tally.alive += 1
                } else {
                    lacks.append("\(seat.name) has no \(kind) of \(sender.name)")
                }
            }
        }
        return lacks
    }

    /// Undoes the participants' restrictions, so that everything may be received.
    private func restore() {
        guard violation == nil else { return }
        if callers.openConnections.isEmpty { openConnection(hearing: true) }
        for hall in halls where hall.isUnknown || !hall.isOpen {
            call("room.close", params(hall))
        }
        awaitCalls()
        for hall in halls where hall.isUnknown || !hall.isOpen {
            rights.close(.room(hall.number))
            for seat in hall.seats { retire(seat) }
            hall.seats = []
        }
        halls.removeAll { $0.isUnknown || !$0.isOpen }
        for hall in halls { restore(hall) }
        awaitCalls()
        fill()
        awaitCalls()
        run(milliseconds: 1_500)
        for hall in halls {
            for seat in hall.seats { watchAll(seat, in: hall) }
        }
        awaitCalls()
    }

    /// Fills rooms again: some have ended, some have few participants left, some have gone silent.
    private func fill() {
        while halls.count < roomCount { openHall() }
        for hall in halls where hall.isOpen && !hall.isUnknown {
            for seat in hall.seats where seat.isUnknown && !seat.isBusy { restore(seat, in: hall) }
            let honest = hall.seats.filter { !$0.isAdversary }
            let publishers = honest.count { $0.publishes }
            addAdversary(hall)
            if honest.count < 3 || publishers == 0 { enter(hall, publishes: publishers < 2) }
        }
    }

    private func restore(_ hall: SimulatedRoom) {
        if hall.isMuted {
            rights.open(.roomMute(hall.number))
            hall.isMuted = false
            call("room.hardUnmute", params(hall))
        }
        for seat in hall.seats { restore(seat, in: hall) }
    }

    private func restore(_ seat: SimulatedParticipant, in hall: SimulatedRoom) {
        guard !seat.isBusy else { return }
        guard seat.hasJoined, !seat.isUnknown, seat.client?.isConnected == true else {
            // Its state is unknown: it leaves, as far as it is present.
            seat.isUnknown = false
            ask("participant.leave", ["participant": .string(seat.name)], about: seat, in: hall) {
                [unowned self] result in
                // The reply to this call may be lost, too.
                if !seat.isUnknown { forget(seat, in: hall, isProven: result != nil) }
            }
            return
        }
        for kind in MediaKind.allCases {
            rights.open(.mute(publisher: seat.number, kind))
            rights.open(.own(publisher: seat.number, kind))
        }
        seat.muted = []
        let who: [String: JSON] = ["participant": .string(seat.name)]
        call(
            "participant.hardUnmute",
            params(hall, who.merging(["media": ["audio", "video"]]) { $1 })
        )
        guard let stream = seat.stream else { return }
        seat.switchedOff = []
        call(
            "stream.update",
            params(hall, ["stream": .string(stream), "audio": true, "video": true])
        )
    }

    /// Lets little happen for a long time.
    private func rest(milliseconds: Int64) {
        pace = .quiet
        let end = now.advanced(milliseconds: milliseconds)
        while now < end, violation == nil {
            if random.chance(0.3) { act() }
            if random.chance(0.3) { fill() }
            if random.chance(0.05), let client = random.pick(livingClients) {
                // Silence that ends a transport, unless the quiet period ends before.
                client.up.downUntil = now.advanced(milliseconds: random.pick(5_000...50_000))
                client.down.downUntil = client.up.downUntil
            }
            run(
                milliseconds: min(random.pick(5_000...30_000), max(1, end.milliseconds(since: now)))
            )
        }
        awaitCalls()
    }

    /// Ends all rooms, and checks that nothing is left of them.
    private func conclude() {
        guard violation == nil else { return }
        for _ in 0..<3 {
            for hall in halls { close(hall, again: false) }
            awaitCalls()
        }
        run(milliseconds: 2_500)
        guard violation == nil else { return }
        for left in plane.leakedObjects { violate(.memory, "\(left) left in the control plane") }
        for worker in workers {
            let left = worker.round.core.leakedObjects
            if !left.isEmpty { violate(.memory, "worker \(worker.index) still has \(left)") }
        }
        for client in clients.values { tally.frames += client.frames }
        clients = [:]
    }

    /// Takes an event by which the daemon reports an action of its own.
    func take(_ event: IPCEvent) {
        guard let room = event.room?.rawValue,
            let hall = halls.last(where: { $0.name == room })
        else { return }
        if event.event != "talkers.changed" { tell("\(room) \(event.event) \(event.data)") }
        switch event.event {
        case "participant.connection":
            guard event.data["connection"]?.text == "disconnected" else { return }
            let seat = hall.seats.first { $0.name == event.data["participant"]?.text }
            seat?.isUnknown = true
        case "stream.created":
            guard let stream = event.data["stream"]?["stream"]?.text,
                let seat = hall.seats.first(where: {
                    $0.name == event.data["stream"]?["participant"]?.text
                }), seat.stream == nil, let client = seat.client
            else { return }
            seat.stream = stream
            hall.publishers[stream] = UInt32(client.index)
        case "stream.destroyed":
            let stream = event.data["stream"]?.text
            for seat in hall.seats {
                if seat.stream == stream { seat.stream = nil }
                seat.subscriptions.removeAll { $0.stream == stream }
            }
        case "subscription.videoDisabled", "subscription.videoEnabled":
            let isDisabled = event.event == "subscription.videoDisabled"
            guard let id = event.data["subscription"]?.text else { return }
            hall.heldBack[id] = isDisabled ? event.data["reason"]?.text : nil
        default: break
        }
    }
}
