import Contract
import Foundation
import JSON

// CROWD: a room of 10,000 who chat, while people join and leave it.
extension Bench {
    /// Messages to all, and other calls, a second.
    static let crowdMessages = 1_000
    static let crowdCalls = 100

    private static let hall = "hall"
    private static let message = "message.received"
    private static let join = "participant.joined"

    func crowd() async throws {
        let members = options.size ?? 10_000
        let seconds = options.seconds ?? 30
        let adapter = SfudAdapter()
        try await with(adapter, trial([])) { session in
            try await adapter.makeRoom(Self.hall, participants: members + 1)
            self.progress.show("sfud: \(members) join")
            try await Session.concurrently(Array(0..<members)) { number in
                try await adapter.enter(Self.hall, "person-\(number)", topic: "chat")
            }
            try await self.chat(adapter, session, members: members, seconds: seconds)
        }
    }

    private func chat(
        _ adapter: SfudAdapter,
        _ session: Session,
        members: Int,
        seconds: Double
    ) async throws {
        let path = try adapter.path()
        let events = EventMeter(path: path, names: [Self.message, Self.join])
        let before = ProcessUsage.of(session.running.processes)
        let messages = CallLoad(path: path, calls: [said], perSecond: Self.crowdMessages)
        let calls = CallLoad(path: path, calls: comings, perSecond: Self.crowdCalls)
        self.progress.show("sfud: \(members) chat")
        try await Task.sleep(for: .seconds(seconds))
        let after = ProcessUsage.of(session.running.processes)
        await messages.end()
        await calls.end()
        await events.end()
        let told = events.present
        var outcome = Outcome(ScenarioID.crowd.rawValue, adapter.name, size: members)
        outcome.note = "\(Self.crowdMessages) messages a second"
        outcome[.callsPerSecond] = Double(messages.present.answered) / seconds
        outcome[.callLatency50] = calls.present.latency.milliseconds(0.5)
        outcome[.callLatency99] = calls.present.latency.milliseconds(0.99)
        outcome[.eventsPerSecond] = Double(told.counts[Self.message] ?? 0) / seconds
        outcome[.messageBytes] = told.longest[Self.message].map(Double.init)
        outcome[.joinBytes] = told.longest[Self.join].map(Double.init)
        outcome[.cpuShare] = Double(after.nanoseconds(since: before)) / 1e9 / seconds
        for load in [messages.present, calls.present] {
            if load.refused > 0 { outcome.faults.append("\(load.refused) calls refused") }
            if let firstError = load.firstError { outcome.faults.append(firstError) }
        }
        if let error = told.error { outcome.faults.append("events: \(error)") }
        keep(outcome)
    }

    private var said: IPCRequest {
        let message: JSON = [
            "room": .string(Self.hall), "topic": "chat", "from": "person-0",
            "message": "what everybody has to say about it",
        ]
        return IPCRequest(id: .integer(1), method: "message.publish", params: message)
    }

    /// Calls about one who comes, is looked up, and goes.
    private var comings: [IPCRequest] {
        let who: JSON = ["room": .string(Self.hall), "participant": "late"]
        let join: JSON = ["room": .string(Self.hall), "participant": "late", "snapshot": false]
        let calls = [
            ("participant.join", join), ("participant.get", who), ("participant.leave", who),
        ]
        return calls.enumerated().map { number, call in
            IPCRequest(id: .integer(Int64(number)), method: call.0, params: call.1)
        }
    }
}
