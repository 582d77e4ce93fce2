import Foundation

/// Load of one room on an already running sfud, with every packet counted.
enum LoadCommand {
    /// Runs the load; returns the exit status.
    ///
    /// - Throws: `UsageError`, or the error that prevented the load.
    static func run(_ arguments: [String]) async throws -> Int32 {
        let options = try LoadOptions(arguments)
        guard !options.wantsHelp else {
            print(LoadOptions.help)
            return 0
        }
        let adapter = SfudAdapter(ipc: options.path, viewersIPC: options.viewersPaths)
        let progress = Progress()
        let media: RoomPlan.Media = options.isScreen ? .screen : .camera
        let room = RoomPlan.broadcast(media, viewers: options.viewers, name: options.room)
        // sfud is contacted before the encoding, because it may not be running.
        let workers = try await adapter.workers()
        let library = try Library(media.videos, progress: progress)
        var settings = EngineSettings()
        settings.checksEveryPacket = options.checks
        settings.profile = options.profile
        let engine = try Engine(settings, library: library)
        let running = RunningSFU(processes: options.pid.map { [$0] } ?? [], version: "")
        let session = Session(adapter, engine, running)

        var trial = Trial(rooms: [room])
        trial.profile = options.profile
        trial.settleSeconds = Double(options.settleSeconds)
        trial.seconds = Double(options.seconds)
        trial.lossPercent = options.lossPercent
        if options.endsWithInput { trial.end = InputEnd() }
        let report: LoadReport
        do {
            report = try await play(trial, session, options, workers, progress)
        } catch {
            progress.clear()
            await end(session, room.name)
            throw error
        }
        progress.clear()
        await end(session, room.name)
        print(report.text)
        for fault in report.faults { SFUBench.complain(fault) }
        return options.checks && !report.faults.isEmpty ? 1 : 0
    }

    private static func play(
        _ trial: Trial,
        _ session: Session,
        _ options: LoadOptions,
        _ workers: Int,
        _ progress: Progress
    ) async throws -> LoadReport {
        progress.show("connecting")
        try await session.populate(trial.rooms)
        guard let adapter = session.adapter as? SfudAdapter else {
            throw AdapterError("a load runs on sfud")
        }
        let before = try await adapter.counters()
        let viewer = trial.rooms[0].participants[1]
        let moving =
            options.followsMoves ? MovingViewers(session, room: options.room, like: viewer) : nil
        let following = Task { try await moving?.follow(adapter) }
        defer { following.cancel() }
        let result = try await measure(trial, session, options, progress)
        let after = try await adapter.counters()
        var report = LoadReport(
            options: options,
            result: result,
            before: before,
            after: after,
            workers: workers
        )
        report.gaps = await moving?.gaps()
        return report
    }

    private static func measure(
        _ trial: Trial,
        _ session: Session,
        _ options: LoadOptions,
        _ progress: Progress
    ) async throws -> TrialResult {
        guard options.lateViewers > 0 else { return try await trial.measure(session, progress) }
        return try await session.withCrowd(session.engine.library) { crowd in
            var trial = trial
            trial.late = LateViewers(
                crowd: crowd,
                room: options.room,
                media: options.isScreen ? .screen : .camera,
                count: options.lateViewers
            )
            return try await trial.measure(session, progress)
        }
    }

    /// Closes the room, even if the task was cancelled.
    private static func end(_ session: Session, _ room: String) async {
        await session.engine.stop()
        await Task.detached { try? await session.adapter.closeRoom(room) }.value
    }
}
