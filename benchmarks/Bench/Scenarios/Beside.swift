import Foundation

// BESIDE: small rooms on the same worker as a large one.
extension Bench {
    private static let smallRooms = 10

    func beside() async throws {
        let small = (0..<Self.smallRooms).map {
            RoomPlan.meeting(of: 4, media: .camera, slots: 3, name: "small-\($0)")
        }
        for viewers in [0, options.size ?? 100] {
            let adapter = SfudAdapter()
            let load = trial(small)
            try await with(adapter, load) { session in
                self.progress.show("sfud: connecting")
                try await session.populate(small)
                try await session.withCrowd(self.library) { crowd in
                    try await self.beside(load, session, crowd, viewers: viewers)
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
