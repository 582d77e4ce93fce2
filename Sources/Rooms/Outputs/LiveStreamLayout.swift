package import WorkerInterface

// Layout of live streams: screens, pins and active speakers decide which videos are shown.

extension Room.Tap {
    /// Target of a live stream; `nil` for other taps.
    package var target: StreamTarget? {
        if case .streaming(let target) = purpose { target } else { nil }
    }

    /// Parameters of an RTP forward; `nil` for other taps.
    package var output: RTPForwardTarget? {
        if case .output(let output) = purpose { output } else { nil }
    }

    /// Returns whether the tap reads a kind of a stream.
    ///
    /// A recording reads everything. A live stream reads all audio, and the videos in its tiles.
    func reads(_ stream: Room.Stream, _ kind: MediaKind) -> Bool {
        switch purpose {
        case .recording: true
        case .streaming: kind == .audio || tiles.contains(stream.id)
        case .output(let output): output.line(kind) != nil
        }
    }
}

extension Room {
    /// Updates the tiles of a live stream.
    ///
    /// - Returns: the tiles if they have changed.
    mutating func reconcileTiles(of id: OutputID) -> [String]? {
        guard let tap = taps[id], let target = tap.target else { return nil }
        let tiles =
            switch target.layout {
            case .stage: stage(after: tap.tiles.first).map { [$0] } ?? []
            case .grid: grid(after: tap.tiles, limit: target.layout.tiles)
            }
        guard tiles != tap.tiles else { return nil }
        taps.set(tiles: tiles, of: id)
        return tiles
    }

    /// Whether a stream has video and its gate is open.
    private func hasPicture(_ stream: Stream) -> Bool {
        stream.home(.video).map { track(of: $0)?.gate == true } ?? false
    }

    /// Returns the stream to show in the `stage` layout.
    ///
    /// The newest shared screen comes first. Without one, the stream is chosen from the pinned
    /// participants on the speaker list, or from the whole list if no pinned one has video: the
    /// first who is talking, else the current stream, else the first on the list. With nobody on
    /// the list, the current or the oldest stream is shown.
    private func stage(after current: String?) -> String? {
        let shown = streamsInOrder.filter(hasPicture)
        if let screen = shown.last(where: \.isScreen) { return screen.id }
        let ids = shown.map(\.id)
        let talkers = speakerList.filter { talker in talker.stream.map(ids.contains) ?? false }
        let pinned = talkers.filter(\.isPinned)
        let pool = pinned.isEmpty ? talkers : pinned
        if let talking = pool.first(where: \.isTalking) { return talking.stream }
        if let current, pinned.isEmpty ? ids.contains(current) : pool.contains(current) {
            return current
        }
        return pool.first?.stream ?? ids.first
    }

    /// Returns the tiles of the `grid` layout.
    ///
    /// Participants keep their tile; a newcomer takes a freed one.
    private func grid(after current: [String], limit: Int) -> [String] {
        let shown = streamsInOrder.filter(hasPicture)
        var wanted: [String] = []
        let talkers = speakerList.compactMap(\.stream)
        for id in shown.filter(\.isScreen).map(\.id).reversed() + talkers + shown.map(\.id)
        where wanted.count < limit && !wanted.contains(id) && shown.contains(where: { $0.id == id })
        {
            wanted.append(id)
        }
        var newcomers = wanted.filter { !current.contains($0) }[...]
        var tiles = current.compactMap { wanted.contains($0) ? $0 : newcomers.popFirst() }
        tiles += newcomers
        return tiles
    }
}

extension [Room.Talker] {
    fileprivate func contains(_ stream: String) -> Bool { contains { $0.stream == stream } }
}
