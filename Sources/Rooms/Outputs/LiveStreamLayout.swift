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
            case .stage: stage(after: tap.tiles)
            case .grid: grid(after: tap.tiles)
            }
        guard tiles != tap.tiles else { return nil }
        taps.set(tiles: tiles, of: id)
        return tiles
    }

    /// Whether a stream has video and its gate is open.
    private func hasPicture(_ stream: Stream) -> Bool {
        stream.home(.video).map { track(of: $0)?.gate == true } ?? false
    }

    /// Returns the streams to show in the `stage` layout.
    ///
    /// The newest shared screen comes first, and all pinned participants stand beside it. Without
    /// any of these, one stream is shown: of the participants on the speaker list the first who is
    /// talking, else the current stream, else the first on the list. With nobody on the list, the
    /// current or the oldest stream is shown.
    private func stage(after current: [String]) -> [String] {
        let shown = streamsInOrder.filter(hasPicture)
        let screen = shown.last(where: \.isScreen)?.id
        let pinned = pinnedPictures(among: shown)
        guard screen == nil, pinned.isEmpty else {
            return arranged([screen].compactMap(\.self) + pinned, after: current)
        }
        let ids = shown.map(\.id)
        let talkers = speakerList.filter { talker in talker.stream.map(ids.contains) ?? false }
        if let talking = talkers.first(where: \.isTalking)?.stream { return [talking] }
        if let present = current.first(where: ids.contains) { return [present] }
        return [talkers.first?.stream ?? ids.first].compactMap(\.self)
    }

    /// Returns the tiles of the `grid` layout.
    ///
    /// Pinned participants are shown alone. If there are none, shared screens come first, then the
    /// participants on the speaker list, then the others.
    private func grid(after current: [String]) -> [String] {
        let shown = streamsInOrder.filter(hasPicture)
        let pinned = pinnedPictures(among: shown)
        guard pinned.isEmpty else { return arranged(pinned, after: current) }
        let ids = shown.map(\.id)
        let screens = shown.filter(\.isScreen).map(\.id).reversed()
        let talkers = speakerList.compactMap(\.stream).filter(ids.contains)
        return arranged(screens + talkers + ids, after: current)
    }

    /// Returns the pictures of the pinned participants, in the order of the pins: of each its
    /// screen, then its camera.
    private func pinnedPictures(among shown: [Stream]) -> [String] {
        pins.flatMap { id in
            let own = shown.filter { $0.participant == id }
            return (own.filter(\.isScreen) + own.filter { !$0.isScreen }).map(\.id)
        }
    }

    /// Returns the first wanted streams in their tiles.
    ///
    /// Streams keep their tile; a newcomer takes a freed one.
    private func arranged(_ wanted: [String], after current: [String]) -> [String] {
        var chosen: [String] = []
        for id in wanted where chosen.count < StreamTarget.tileLimit && !chosen.contains(id) {
            chosen.append(id)
        }
        var newcomers = chosen.filter { !current.contains($0) }[...]
        var tiles = current.compactMap { chosen.contains($0) ? $0 : newcomers.popFirst() }
        tiles += newcomers
        return tiles
    }
}
