package import WorkerInterface

// Taps: recordings, live streams and RTP forwards, which receive media without being participants.
// A tap gets its publications as mirrors in the tap thread, which the room treats as one more
// worker.

extension Room {
    /// Recording, live stream or RTP forward of a room.
    package struct Tap: Sendable, Codable {
        package let id: OutputID
        /// Public name.
        package let name: String
        /// Directory of a recording; empty for other taps.
        package let directory: String
        /// Unix time, in seconds.
        package let started: Double
        /// Participant that asked for it; `nil` for the signalling server or automatic recording.
        package let by: String?
        package internal(set) var purpose: OutputPurpose
        /// Streams that it is limited to; `nil`: all present and future ones.
        let streams: Set<String>?
        /// Whether the call that asked for it is still unanswered; a failure is then its answer.
        package internal(set) var isAwaited: Bool
        /// Whether a recording's directory and files are ready.
        var isReady = false
        /// Streams in the tiles of a live stream, as last sent to the tap thread.
        var tiles: [String] = []
        /// Tracks as last sent to the tap thread, by the publications' homes.
        var tracks: [RelayTarget: OutputTrack] = [:]
    }

    /// Settings, limits and counters of the tap thread, shared by all rooms.
    package struct TapService: Sendable {
        /// Worker number of the tap thread: one beyond the last worker.
        package var worker: Int
        /// Absolute path under which each recording gets a directory of its own.
        package var directory: String
        /// Concurrent recordings of all rooms.
        package var limit: Int
        package var lastID: OutputID = 0
        package var open = 0

        package init(worker: Int, directory: String, limit: Int) {
            self.worker = worker
            self.directory = directory
            self.limit = limit
        }
    }

    /// Recordings, live streams and RTP forwards of a room.
    package struct Taps: Sendable, Codable {
        private var all: [OutputID: Tap] = [:]
        private var recordingID: OutputID?
        /// Automatic recording in the present session of the room.
        var automatic = AutomaticRecording()

        package subscript(id: OutputID) -> Tap? { all[id] }

        /// Ids of all taps, in the order in which they began.
        var ids: [OutputID] { all.keys.sorted() }

        package var recording: Tap? { recordingID.flatMap { all[$0] } }
        var streamings: [Tap] { ids.compactMap { all[$0] }.filter { $0.target != nil } }
        var forwards: [Tap] { ids.compactMap { all[$0] }.filter { $0.output != nil } }

        /// Whether any tap reads a publication.
        func read(_ home: RelayTarget) -> Bool { all.values.contains { $0.tracks[home] != nil } }

        mutating func insert(_ tap: Tap) {
            all[tap.id] = tap
            switch tap.purpose {
            case .recording: recordingID = tap.id
            case .streaming, .output: break
            }
        }

        mutating func remove(_ id: OutputID) -> Tap? {
            if recordingID == id { recordingID = nil }
            return all.removeValue(forKey: id)
        }

        /// Records that a tap's call has been answered or its server has accepted it.
        mutating func accept(_ id: OutputID) { all[id]?.isAwaited = false }

        mutating func prepare(_ id: OutputID) { all[id]?.isReady = true }

        mutating func set(tiles: [String], of id: OutputID) { all[id]?.tiles = tiles }

        mutating func set(_ track: OutputTrack?, at home: RelayTarget, of id: OutputID) {
            all[id]?.tracks[home] = track
        }

        /// The same with the servers of live streams alone: the rest of their addresses is secret.
        var withoutSecrets: Self {
            var taps = self
            for (id, tap) in all {
                guard case .streaming(var target) = tap.purpose else { continue }
                target.url = target.url.withoutSecrets
                taps.all[id]?.purpose = .streaming(target)
            }
            return taps
        }

        mutating func answerRecording() { if let recordingID { accept(recordingID) } }
    }

    package var recording: Tap? { taps.recording }

    /// Adds a tap and makes its thread prepare the output.
    mutating func begin(_ tap: Tap, in worker: Int, _ transaction: inout RoomTransaction) {
        taps.insert(tap)
        open(.tap(tap.id), for: "", &transaction)
        let setup = OutputSetup(
            id: tap.id,
            name: tap.name,
            room: name,
            directory: tap.directory,
            started: tap.started,
            purpose: tap.purpose
        )
        transaction.tell(worker, .tap(.open(setup)))
        for member in members {
            let note = OutputNote.joined(participant: member.id, name: member.name ?? "")
            transaction.tell(worker, .tap(.note(tap.id, note)))
        }
        if !speakers.noted.isEmpty {
            transaction.tell(worker, .tap(.note(tap.id, .talkers(speakers.noted))))
        }
        if !pins.isEmpty { transaction.tell(worker, .tap(.note(tap.id, .pins(pins)))) }
    }

    /// Detaches a tap's publications and removes it; its thread keeps what it has received.
    mutating func end(tap id: OutputID, _ transaction: inout RoomTransaction) {
        guard let tap = taps.remove(id), let worker = transaction.shared.taps?.worker else {
            return
        }
        transaction.tell(worker, .tap(.close(id)))
        for home in tap.tracks.keys { leave(home, in: worker, &transaction) }
        free(.tap(id), &transaction)
        switch tap.purpose {
        case .recording: transaction.shared.taps?.open -= 1
        case .streaming: transaction.shared.streaming.open -= 1
        case .output: transaction.shared.outputs.open -= 1
        }
    }

    /// Ends all taps, as the room or its live event ends.
    mutating func endTaps(
        _ reason: String,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        for id in taps.ids {
            guard let tap = taps[id] else { continue }
            end(tap: id, &transaction)
            announceEnd(of: tap, reason, by: actor, &transaction)
        }
    }

    func announceEnd(
        of tap: Tap,
        _ reason: String?,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let given = reason ?? EndReason.requested
        switch tap.purpose {
        // Nobody was told that it had begun.
        case .recording where !tap.isReady: break
        case .recording:
            transaction.announce(.recordingStopped(tap, reason: reason, by: actor), to: .everyone)
        case .streaming where tap.isAwaited: break
        case .streaming:
            transaction.announce(.streamingStopped(tap, reason: given, by: actor), to: .everyone)
        case .output:
            transaction.announce(.outputStopped(tap, reason: given, by: actor), to: .everyone)
        }
    }

    /// Updates the taps' tracks and sends them notes of events.
    ///
    /// Called at the end of each call and notice, before mirrors are reconciled.
    mutating func reconcileTaps(_ transaction: inout RoomTransaction) {
        guard !isClosed else { return }
        let worker = transaction.shared.taps?.worker
        if let worker { tellNotes(worker, &transaction) }
        recordAutomatically(&transaction)
        guard let worker else { return }
        for id in taps.ids { reconcile(tap: id, in: worker, &transaction) }
    }

    private mutating func tellNotes(_ worker: Int, _ transaction: inout RoomTransaction) {
        var notes = transaction.change.announcements.compactMap(\.news.tapNote)
        // Follows the announced lists, so that a noisy room does not fill the record.
        let talking = speakers.announced.common.filter(\.isTalking).map(\.participant)
        if speakers.noted != talking {
            speakers.noted = talking
            notes.append(.talkers(talking))
        }
        for note in notes {
            for id in taps.ids { transaction.tell(worker, .tap(.note(id, note))) }
        }
    }

    private mutating func reconcile(
        tap id: OutputID,
        in worker: Int,
        _ transaction: inout RoomTransaction
    ) {
        let shown = reconcileTiles(of: id)
        guard let tap = taps[id] else { return }
        if let output = tap.output, streams[output.stream] == nil {
            end(tap: id, &transaction)
            return announceEnd(of: tap, "stream-ended", by: transaction.actor, &transaction)
        }
        var gone = tap.tracks
        for stream in streamsInOrder where tap.streams?.contains(stream.id) != false {
            for kind in MediaKind.allCases where tap.reads(stream, kind) {
                guard let home = stream.home(kind) else { continue }
                guard gone.removeValue(forKey: home) == nil else { continue }
                // Without a free handle, only this publication is left out.
                guard let mirror = join(home, in: worker, from: nil, &transaction) else {
                    continue
                }
                let track = OutputTrack(
                    publication: mirror,
                    participant: stream.participant,
                    name: participants[stream.participant]?.name ?? "",
                    stream: stream.id,
                    source: stream.isScreen ? .screen : .defaultSource(for: kind),
                    kind: kind
                )
                taps.set(track, at: home, of: id)
                announceDemand(of: home, &transaction)
                transaction.tell(worker, .tap(.attach(id, track)))
            }
        }
        for (home, track) in gone.sorted(by: {
            $0.value.publication.index < $1.value.publication.index
        }) {
            taps.set(nil, at: home, of: id)
            announceDemand(of: home, &transaction)
            if tap.target != nil, self.track(of: home)?.gate != true {
                transaction.tell(worker, .tap(.forget(id, track.publication)))
            }
            transaction.tell(worker, .tap(.detach(id, track.publication)))
            leave(home, in: worker, &transaction)
        }
        if let shown { transaction.tell(worker, .tap(.tiles(id, shown))) }
    }

    /// Handles a recording that is ready, or the first packet of a live stream at its server.
    mutating func begun(tap id: OutputID, _ transaction: inout RoomTransaction) {
        guard let tap = taps[id] else { return }
        switch tap.purpose {
        case .recording:
            taps.prepare(id)
            if isAutomatic(id) { taps.automatic.succeed() }
            transaction.announce(.recordingStarted(tap), to: .everyone)
        case .streaming:
            taps.accept(id)
            transaction.announce(.streamingStarted(tap), to: .everyone)
        case .output: break  // Announced by the call itself.
        }
    }

    /// Handles a tap that has ended by itself.
    mutating func ended(
        tap id: OutputID,
        _ reason: String?,
        _ transaction: inout RoomTransaction
    ) {
        guard let tap = taps[id] else { return }
        end(tap: id, &transaction)
        let isAutomatic = isAutomatic(id)
        if tap.purpose == .recording, tap.isReady || !isAutomatic {
            recordAutomatically(after: tap, endedBy: reason, at: transaction.shared.now)
        }
        guard !tap.isAwaited else { return }
        guard tap.purpose == .recording, !tap.isReady else {
            return announceEnd(of: tap, reason, by: nil, &transaction)
        }
        let cause = reason ?? "ended"
        if isAutomatic {
            refuseAutomaticRecording(tap.name, cause, isFinal: false, &transaction)
        } else {
            transaction.announce(
                .recordingFailed(name: tap.name, reason: cause, by: tap.by),
                to: .everyone
            )
        }
    }
}

extension Room.Event {
    /// Note for the tap's record of the room, if the event belongs there.
    fileprivate var tapNote: OutputNote? {
        switch self {
        case .joined(let participant, again: false):
            .joined(participant: participant.id, name: participant.name ?? "")
        // One who is replaced is still in the room.
        case .left(_, reason: Room.EndReason.replaced, _): nil
        case .left(let participant, _, _): .left(participant: participant.id)
        case .pinsChanged(let pins, _): .pins(pins)
        case .joined, .awaited, .connection, .streamCreated, .streamChanged, .streamDestroyed,
            .subscriptionConnected, .subscriptionDisconnected, .subscriptionReconnected,
            .videoDisabled, .videoEnabled, .layerChanged, .layersWanted, .stateChanged, .updated,
            .locked, .roomMuted, .approved, .denied, .participantChanged, .modeChanged,
            .roleChanged, .roleRequested, .roleDeclined, .roleExpired, .transferred,
            .participantMuted, .floor, .talkersChanged, .moveWanted, .closed,
            .recordingStarted, .recordingStopped, .recordingFailed, .streamingStarted,
            .streamingStopped, .streamingInterrupted, .streamingResumed, .outputStarted,
            .outputStopped:
            nil
        }
    }
}
