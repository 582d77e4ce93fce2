import Foundation
import SFUClient

// BESIDE: small rooms on the worker of a large one.
extension Bench {
    private static let smallRooms = 10

    func beside() async throws {
        let small = (0..<Self.smallRooms).map {
            RoomPlan.meeting(of: 4, media: .camera, slots: 3, name: "small-\($0)")
        }
        for _ in 0..<rounds {
            for viewers in [0, options.size ?? 100] {
                let adapter = SfudAdapter()
                let load = trial(small)
                try await with(adapter, load) { session in
                    self.progress.show("sfud: connecting")
                    try await session.populate(small)
                    // The large room has an engine of its own: what it gets is told apart.
                    var settings = session.engine.settings
                    settings.firstClient = 20_000
                    let engine = try Engine(settings, library: self.library)
                    let crowd = Session(session.adapter, engine, session.running)
                    do {
                        try await self.beside(load, session, crowd, viewers: viewers)
                    } catch {
                        await engine.stop()
                        throw error
                    }
                    await engine.stop()
                }
            }
        }
    }

    private func beside(
        _ load: Trial,
        _ session: Session,
        _ crowd: Session,
        viewers: Int
    ) async throws {
        if viewers > 0 {
            try await crowd.populate([.broadcast(.camera, viewers: viewers, name: "large")])
            await crowd.beginMedia()
        }
        let result = try await load.measure(session, progress)
        var outcome = Outcome(ScenarioID.beside.rawValue, result, load, size: viewers)
        outcome.note = "\(Self.smallRooms) rooms of four beside a room of so many"
        keep(outcome)
    }
}
