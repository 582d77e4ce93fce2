// P2 to P7: rooms of all kinds, compared with the floors.
extension Bench {
    /// Audiences of P2 that show what a copy costs in a small and in a large one.
    static let panelEnds = [20, 1_000]

    /// Runs P2: audio to many listeners, whose packets are small and cannot share GSO runs.
    func panel() async throws {
        for size in options.size.map({ [$0] }) ?? [100, 500] + Self.panelEnds {
            let load = trial([.panel(speakers: 10, listeners: size)])
            let isEnd = Self.panelEnds.contains(size) && options.size == nil
            try await compare(.panel, load, size: size, on: isEnd ? [SfudAdapter()] : nil)
        }
    }

    /// Runs P3.
    func meeting() async throws {
        for size in options.size.map({ [$0] }) ?? [10, 25, 50] {
            let load = trial([.meeting(of: size, media: .simulcast)])
            try await compare(.meeting, load, size: size)
            guard size == 25, options.profile == nil else { continue }
            var other = load
            other.profile = .cm
            try await measure(.meeting, SfudAdapter(), other, size: size)
        }
    }

    /// Runs P4 or P5: many small rooms.
    func manyRooms(_ scenario: ScenarioID, members: Int, rooms: Int) async throws {
        let people = options.size ?? members * rooms
        let plans = (0..<max(1, people / members)).map {
            RoomPlan.meeting(of: members, media: .camera, name: "room-\($0)")
        }
        try await compare(scenario, trial(plans), size: people)
    }

    /// Runs P7: the burst of a keyframe at each viewer.
    func screen() async throws {
        let size = options.size ?? 100
        let load = trial([.broadcast(.screen, viewers: size)])
        try await compare(.screen, load, size: size)
    }

    /// Runs P12: the same room on one worker and on two.
    func workers() async throws {
        let viewers = options.size ?? 200
        let plans: [(RoomPlan, String, Int)] = [
            (.broadcast(.camera, viewers: viewers), "P1", viewers),
            (.meeting(of: 25, media: .simulcast), "P3", 25),
        ]
        for (plan, note, size) in plans {
            var found: [Outcome] = []
            for workers in [1, 2] {
                var load = trial([plan])
                load.workers = workers
                found.append(
                    try await measure(.workers, SfudAdapter(), load, size: size, note: note)
                )
            }
            var summary = Outcome(ScenarioID.workers.rawValue, "sfud", size: size)
            summary.note = "\(note), 1 to 2 workers by the busiest thread"
            summary.workers = 2
            summary.profile = profile
            let busiest = found.compactMap { $0[.busiestMicroseconds] }
            // The thread with the most work for each packet bounds the capacity.
            if busiest.count == 2, busiest[1] > 0 { summary[.speedup] = busiest[0] / busiest[1] }
            keep(summary)
        }
    }
}
