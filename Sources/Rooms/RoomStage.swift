package import WorkerInterface

// Whose pictures a live stream shows: pins and active talkers decide (EnableX, E-30 and E-33;
// VideoSDK, V-10).

extension Room.Tap {
    /// Where it is streamed to, if it is.
    package var target: StreamTarget? {
        if case .streaming(let target) = purpose { target } else { nil }
    }

    /// What of it goes out as plain RTP, if it does.
    package var output: TapOutput? {
        if case .output(let output) = purpose { output } else { nil }
    }

    /// A recording reads everything; a live stream all sound, and the pictures that it shows.
    func reads(_ stream: Room.Stream, _ kind: MediaKind) -> Bool {
        switch purpose {
        case .recording: true
        case .streaming: kind == .audio || tiles.contains(stream.id)
        case .output(let output): output.line(kind) != nil
        }
    }
}

extension Room {
    /// Brings a live stream's tiles to what they should be.
    ///
    /// - Returns: the tiles where they are others than before.
    mutating func settleTiles(of id: TapID) -> [String]? {
        guard let tap = taps[id], let target = tap.target else { return nil }
        let tiles =
            switch target.layout {
            case .stage: stage(after: tap.tiles.first).map { [$0] } ?? []
            case .grid: grid(after: tap.tiles, limit: target.layout.tiles)
            }
        guard tiles != tap.tiles else { return nil }
        taps[id]?.tiles = tiles
        return tiles
    }

    /// There is a picture, and it may be seen.
    private func hasPicture(_ stream: Stream) -> Bool {
        stream.home(.video).map { track(of: $0)?.gate == true } ?? false
    }

    /// The newest shared screen; else, of those pinned if there are any, who talks; else who has
    /// been there; else who talked last.
    private func stage(after current: String?) -> String? {
        let shown = streamsInOrder.filter(hasPicture)
        if let screen = shown.last(where: \.isScreen) { return screen.id }
        let ids = shown.map(\.id)
        let talkers = talkerList.filter { talker in talker.stream.map(ids.contains) ?? false }
        let pinned = talkers.filter(\.isPinned)
        let pool = pinned.isEmpty ? talkers : pinned
        if let talking = pool.first(where: \.isTalking) { return talking.stream }
        if let current, pinned.isEmpty ? ids.contains(current) : pool.contains(current) {
            return current
        }
        return pool.first?.stream ?? ids.first
    }

    /// Who is in the grid keeps the tile; who comes takes that of who goes.
    private func grid(after current: [String], limit: Int) -> [String] {
        let shown = streamsInOrder.filter(hasPicture)
        var wanted: [String] = []
        let talkers = talkerList.compactMap(\.stream)
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
