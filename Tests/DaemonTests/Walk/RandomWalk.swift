import RTP

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import Rooms
@testable import WorkerInterface

/// A random walk that makes calls to the control plane and to the model, until they disagree.
struct RandomWalk {
    /// A call that has not been answered.
    private struct Pending {
        var call: ReferenceCall
        var connection: ConnectionID
        var answer: ReferenceAnswer
        /// Fences that the workers must pass before the reply.
        var fences: [(worker: Int, epoch: UInt64)] = []
        /// Whether its events have begun to come before its reply.
        var isTold = false
    }

    private(set) var disagreement: String?
    private(set) var steps = 0
    private(set) var refusals = 0
    /// Methods with the codes that they met.
    private(set) var met: Set<String> = []
    private var driver: ControlDriver
    private(set) var workers: [WalkWorker]
    private(set) var model = ReferenceServer()
    private(set) var agreement = Agreement()
    private var calls: WalkCalls
    private let seed: UInt64
    private var pending: [Int64: Pending] = [:]
    /// Accepted calls of each room, in order.
    private var queues: [String: [Int64]] = [:]
    /// Events of each room that are still expected of the last answered call.
    private var untold: [String: [[ReferenceRoom.Told]]] = [:]
    private var seqs: [String: Int64] = [:]
    private(set) var transports: [String: (worker: Int, id: TransportID)] = [:]
    private var history: [String] = []
    /// Records of the rooms, as saved.
    private var saved: [String: [UInt8]] = [:]
    private(set) var restarts = 0

    init(seed: UInt64) {
        var limits = ControlLimits()
        limits.workerSpread = seed % 2 == 0 ? 0 : 8
        driver = ControlDriver(workers: 2, limits: limits, seed: seed)
        driver.holdsFences = true
        workers = [WalkWorker(index: 0), WalkWorker(index: 1)]
        calls = WalkCalls(seed: seed)
        self.seed = seed
    }

    /// Makes so many calls, or fewer if there is a disagreement.
    mutating func run(_ count: Int) {
        while steps < count, disagreement == nil {
            let together = calls.isOne(in: 3) ? 2 + calls.below(3) : 1
            for _ in 0..<together where disagreement == nil { makeCall() }
            if calls.isOne(in: 50) { wait(nanoseconds: 1_100_000_000) }
            // Sometimes a worker lags behind the other until more calls have arrived.
            passFences(of: 0)
            if calls.isOne(in: 10) {
                passFences(of: 1, atMost: calls.below(4))
                continue
            }
            passAllFences()
            checkSettled()
            if calls.isOne(in: 6) { expire() }
            if calls.isOne(in: 8) { checkRooms() }
            if calls.isOne(in: 60) { restart() }
        }
    }

    /// Ends the process; the next one goes on with what was saved, as if nothing had happened.
    private mutating func restart() {
        guard disagreement == nil else { return }
        restarts += 1
        note("the process dies")
        driver.restart(with: saved, seed: seed &+ UInt64(restarts) << 32)
        saved = [:]
        workers = workers.indices.map { WalkWorker(index: $0) }
        take(driver.plane.takeOutput())
        checkRooms()
    }

    private mutating func wait(nanoseconds: Int64) {
        driver.now = Instant(nanoseconds: driver.now.nanoseconds + nanoseconds)
    }

    /// Lets time pass in the control plane, which ends role requests and empty
    /// rooms.
    private mutating func expire() {
        passAllFences()
        checkSettled()
        guard disagreement == nil else { return }
        for (room, told) in model.expire(at: driver.now.nanoseconds) {
            note("\(room) lets something expire")
            untold[room] = told
        }
        driver.plane.expire(at: driver.now)
        take(driver.plane.takeOutput())
        passAllFences()
        checkSettled()
    }

    private mutating func passAllFences() {
        // The second part of an operation has fences of its own.
        while disagreement == nil, !driver.fences.isEmpty {
            passFences(of: 0)
            passFences(of: 1)
        }
    }

    private mutating func makeCall() {
        var call = calls.next(model)
        // A call cannot contain a name that sfud has not returned.
        call.params = agreement.known(.object(call.params)).members
        steps += 1
        // No two calls are whole seconds apart, so the order of simultaneous expiries does not
        // matter.
        wait(nanoseconds: 1_000_003)
        call.time = driver.now.nanoseconds
        make(call)
    }

    private mutating func make(_ call: ReferenceCall) {
        var params = agreement.resolved(.object(call.params)).members
        if let directions = call.params["sdp"]?.word {
            params["sdp"] = .string(
                directions.count == 6 ? WalkOffer.text(directions) : directions
            )
            params["sources"] = WalkOffer.sources
        }
        note("\(call.id) \(call.method) \(JSON.object(call.params).text)")
        let connection = ConnectionID(rawValue: UInt64(1 + calls.below(2)))
        let answer = model.take(call)
        var entry = Pending(call: call, connection: connection, answer: answer)
        if case .success = answer.outcome {
            queues[queue(of: call), default: []].append(call.id)
        } else {
            refusals += 1
            if case .failure(let refusal) = answer.outcome {
                met.insert("\(call.method) \(refusal.code) \(refusal.reason)")
            }
        }
        let request = IPCRequest(
            id: .integer(call.id),
            method: call.method,
            params: .object(params)
        )
        driver.plane.receive(
            request.encoded(),
            from: connection,
            at: driver.now,
            unixTime: ControlDriver.startTime + Double(driver.now.nanoseconds) / 1e9
        )
        let outputs = driver.plane.takeOutput()
        for case .commands(let worker, let batch) in outputs {
            if case .fence? = batch.last {} else { disagree("no fence behind \(batch)") }
            for command in batch {
                if case .fence(let epoch) = command { entry.fences.append((worker, epoch)) }
                if case .configure(let id, _) = command {
                    let name = call.params["transport"]?.word ?? "main"
                    transports["\(call["room"]) \(call["participant"]) \(name)"] = (worker, id)
                }
            }
        }
        pending[call.id] = entry
        take(outputs)
        if case .failure = answer.outcome, pending[call.id] != nil,
            queues.values.allSatisfy(\.isEmpty)
        {
            disagree("call \(call.id) is refused, and not answered")
        }
        if answer.isInProcess, pending[call.id] == nil {
            disagree("call \(call.id) is answered before its fence")
        }
    }

    /// Returns the queue of a call; calls without a room have one of their own.
    private func queue(of call: ReferenceCall) -> String {
        call.method == "room.list" ? "" : call["room"]
    }

    private mutating func passFences(of worker: Int, atMost count: Int = .max) {
        guard disagreement == nil else { return }
        for (at, epoch) in driver.fences.filter({ $0.worker == worker }).prefix(count) {
            driver.fences.removeAll { $0 == (at, epoch) }
            driver.plane.receive(
                .fenced(epoch: epoch, at: driver.now, packets: 0),
                from: at,
                at: driver.now
            )
            take(driver.plane.takeOutput())
        }
    }

    private mutating func take(_ outputs: [ControlOutput]) {
        for output in outputs where disagreement == nil {
            switch output {
            case .reply(let connection, let line): takeReply(line, connection)
            case .event(let event, let room, let seq): takeEvent(event.line, room, Int64(seq))
            case .commands(let worker, let batch):
                for command in batch {
                    if case .fence(let epoch) = command { driver.fences.append((worker, epoch)) }
                    workers[worker].apply(command)
                }
            case .log, .close: break
            case .save(let changes): for change in changes { saved[change.key] = change.value }
            case .subscribe, .serverEvent, .statistics, .exit, .upgrade, .handOver, .place:
                disagree("unasked for: \(output)")
            }
        }
    }

    private mutating func takeReply(_ line: [UInt8], _ connection: ConnectionID) {
        guard case .reply(let reply)? = try? IPCMessage(line: line),
            case .integer(let id)? = reply.id,
            let entry = pending.removeValue(forKey: id)
        else {
            return disagree("no reply that was asked for: \(String(decoding: line, as: UTF8.self))")
        }
        model.settled(entry.call)
        guard connection == entry.connection else {
            return disagree("call \(id) is answered on another connection")
        }
        switch (entry.answer.outcome, reply.outcome) {
        case (.failure(let refusal), .failure(let error)):
            if refusal != Refusal(error.code, error.reason) {
                disagree("call \(id): wanted \(refusal), was refused \(error)")
            }
        case (.success(let expected), .success(let result)):
            takeResult(entry, expected, result)
        case (.success(let expected), .failure(let error)):
            disagree("call \(id): wanted \(expected.text), was refused \(error)")
        case (.failure(let refusal), .success(let result)):
            disagree("call \(id): wanted \(refusal), got \(result.text)")
        }
    }

    private mutating func takeResult(_ entry: Pending, _ expected: JSON, _ result: JSON) {
        let room = queue(of: entry.call)
        let id = entry.call.id
        if queues[room]?.first != id { disagree("call \(id) has overtaken another of \(room)") }
        queues[room]?.removeFirst()
        if let rest = untold[room], !rest.isEmpty { disagree("\(room) did not tell \(rest)") }
        if entry.answer.isToldFirst != entry.isTold {
            disagree("call \(id): its events come on the wrong side of the reply")
        }
        if !entry.isTold { untold[room] = entry.answer.told }
        if entry.fences.contains(where: { fence in driver.fences.contains { $0 == fence } }) {
            disagree("call \(id) is answered before its fence")
        }
        guard !agreement.agree(expected, result) else { return }
        let wanted = agreement.resolved(expected)
        disagree("call \(id): \(JSON.difference(wanted, result))")
    }

    private mutating func takeEvent(_ line: [UInt8], _ room: String, _ seq: Int64) {
        guard case .event(let event)? = try? IPCMessage(line: line) else {
            return disagree("no event: \(String(decoding: line, as: UTF8.self))")
        }
        guard event.room?.rawValue == room, event.seq == seq, seq == (seqs[room] ?? 0) + 1 else {
            return disagree("\(event.event) of \(room) has seq \(event.seq)")
        }
        seqs[room] = seq
        // Effects of pins and mutes on talkers are tested elsewhere, with a model of their own.
        guard event.event != "talkers.changed" else { return }
        tellFirst(room)
        guard var runs = untold[room], !runs.isEmpty else {
            return disagree("\(room) tells unasked: \(event)")
        }
        switch event.audience {
        case .all: break
        case .participants(let ids), .except(let ids):
            guard Set(ids).count == ids.count else {
                return disagree("\(event.event) of \(room) names somebody twice: \(ids)")
            }
        }
        let found = runs[0].firstIndex { told in
            told.event == event.event && told.isTold(to: event.audience)
                && agreement.agree(.object(told.data), event.data)
        }
        guard let found else {
            return disagree(
                """
                \(room) tells \(event.event) to \(event.audience): \
                \(event.data.text)
                wanted one of
                \(runs[0].map { told in
                    "\(told.event) to \(told.to?.sorted().description ?? "all"): "
                        + agreement.resolved(.object(told.data)).text
                }.joined(separator: "\n"))
                """
            )
        }
        runs[0].remove(at: found)
        untold[room] = runs[0].isEmpty ? Array(runs.dropFirst()) : runs
    }
}

extension RandomWalk {
    /// Expects the events of a call that is answered only after them, if it is the next.
    private mutating func tellFirst(_ room: String) {
        guard untold[room]?.isEmpty != false, let id = queues[room]?.first,
            let entry = pending[id], entry.answer.isToldFirst, !entry.isTold
        else { return }
        pending[id]?.isTold = true
        untold[room] = entry.answer.told
    }
}

// Invariants once all events have been received.
extension RandomWalk {
    private mutating func checkSettled() {
        guard disagreement == nil else { return }
        for call in pending.keys { disagree("call \(call) is not answered") }
        for (room, rest) in untold where !rest.isEmpty { disagree("\(room) did not tell \(rest)") }
        if let wrong = wrongGate() { disagree(wrong) }
    }

    private mutating func checkRooms() {
        for worker in workers { worker.check(among: workers) }
        for name in model.rooms.keys.sorted() where disagreement == nil {
            wait(nanoseconds: 1_000_003)
            make(
                ReferenceCall(
                    id: -Int64(steps * 4 + (Int(name.dropFirst()) ?? 0)) - 1,
                    method: "room.get",
                    params: ["room": .string(name)]
                )
            )
        }
        passAllFences()
    }

    private mutating func note(_ call: String) {
        history.append(call)
        if history.count > 20 { history.removeFirst() }
    }

    private mutating func disagree(_ what: String) {
        guard disagreement == nil else { return }
        disagreement = """
            seed \(seed), step \(steps): \(what)
            the model's rooms:
            \(model.rooms.values.map(\.shown.text).sorted().joined(separator: "\n"))
            the last calls:
            \(history.joined(separator: "\n"))
            """
    }
}

extension ReferenceRoom.Told {
    /// Whether an event's audience is that of the model.
    func isTold(to audience: Audience) -> Bool {
        switch audience {
        case .all: to == nil || (event == "message.received" && to == everybody)
        case .participants(let ids): to == Set(ids.map(\.rawValue))
        case .except(let ids): to == everybody.subtracting(ids.map(\.rawValue))
        }
    }
}
