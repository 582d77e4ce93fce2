import Contract
import Foundation
import JSON

// CONTROL: a room with media while a signalling server makes many calls about another.
extension Bench {
    /// Calls a second on one connection.
    static let controlCalls = 5_000

    private static let otherRoom = "other"

    func control() async throws {
        let viewers = options.size ?? 50
        for calls in [0, Self.controlCalls] {
            try await control(viewers: viewers, callsPerSecond: calls)
        }
    }

    private func control(viewers: Int, callsPerSecond: Int) async throws {
        let adapter = SfudAdapter()
        let talker = RoomPlan.Participant(name: "talker", media: .audio)
        let load = trial([
            .broadcast(.camera, viewers: viewers),
            RoomPlan(name: Self.otherRoom, participants: [talker]),
        ])
        try await with(adapter, load) { session in
            self.progress.show("sfud: connecting")
            try await session.populate(load.rooms)
            var calls: CallLoad?
            if callsPerSecond > 0 {
                calls = CallLoad(
                    path: try adapter.path(),
                    calls: try self.mix(about: adapter.stream(Self.otherRoom, talker.name)),
                    perSecond: callsPerSecond
                )
            }
            // The calls also settle while the media settles.
            let result: TrialResult
            do {
                result = try await load.measure(session, self.progress)
            } catch {
                await calls?.end()
                throw error
            }
            await calls?.end()
            var outcome = Outcome(
                ScenarioID.control.rawValue,
                result,
                load,
                size: viewers
            )
            outcome.note = callsPerSecond > 0 ? "\(callsPerSecond) calls a second" : "no calls"
            let threads = result.usageAfter.threadsSince(result.usageBefore)
            let main = threads.filter { !$0.name.hasPrefix("worker") }
            let nanoseconds = main.reduce(0) { $0 + $1.nanoseconds }
            outcome[.controlShare] = Double(nanoseconds) / 1e9 / result.seconds
            if let tally = calls?.present {
                let seconds = load.settleSeconds + result.seconds
                outcome[.callsPerSecond] = Double(tally.answered) / seconds
                outcome[.callLatency50] = tally.latency.milliseconds(0.5)
                outcome[.callLatency99] = tally.latency.milliseconds(0.99)
                if tally.refused > 0 { outcome.faults.append("\(tally.refused) calls refused") }
                if let firstError = tally.firstError { outcome.faults.append(firstError) }
            }
            self.keep(outcome)
        }
    }

    /// Returns typical calls of a busy signalling server: queries, switches, mutes and messages.
    private func mix(about stream: String) throws -> [IPCRequest] {
        let room = JSON.string(Self.otherRoom)
        let mute: JSON = ["room": room, "participant": "talker", "media": ["audio"]]
        let message: JSON = [
            "room": room, "topic": "chat", "message": "what everybody has to say about it",
        ]
        func audio(_ isOn: Bool) -> JSON {
            ["room": room, "stream": .string(stream), "audio": .bool(isOn)]
        }
        let calls: [(String, JSON)] = [
            ("room.get", ["room": room]), ("stream.update", audio(false)),
            ("message.publish", message), ("participant.hardMute", mute),
            ("room.get", ["room": room]), ("stream.update", audio(true)),
            ("message.publish", message), ("participant.hardUnmute", mute),
        ]
        return calls.enumerated().map { number, call in
            IPCRequest(id: .integer(Int64(number)), method: call.0, params: call.1)
        }
    }
}
