package import RTP

/// Which picture each tile shows at a time.
///
/// Pictures are shown a little after they were captured, so that what comes unevenly is seen
/// evenly. `Picture` is whatever a picture is to the caller.
package struct StreamStage<Picture> {
    /// One tile: the track that it is to show, and what it shows.
    private struct Tile {
        var track: UInt32
        /// It came to this tile then; until its first picture, what was here before stays.
        var since: Instant
        var shown: (track: UInt32, picture: Picture)?
    }

    /// By their times of capture.
    private var waiting: [UInt32: [(instant: Instant, picture: Picture)]] = [:]
    private var tiles: [Tile] = []

    /// Pictures of one track that wait to be shown; the oldest go.
    package static var waitingLimit: Int { 60 }
    /// How long a picture stays for another that has not come.
    package static var patienceMilliseconds: Int64 { 2_000 }

    package init() {}

    /// What the tiles are to show, from the first to the last.
    package mutating func set(_ tracks: [UInt32], at now: Instant) {
        var old = tiles[...]
        tiles = tracks.map { track in
            let before = old.popFirst()
            if let before, before.track == track { return before }
            return Tile(track: track, since: now, shown: before?.shown)
        }
    }

    /// The tracks that the tiles show or wait for.
    package var tracks: [UInt32] { tiles.map(\.track) }

    package mutating func add(_ picture: Picture, of track: UInt32, at instant: Instant) {
        waiting[track, default: []].append((instant, picture))
        if let count = waiting[track]?.count, count > Self.waitingLimit {
            waiting[track]?.removeFirst(count - Self.waitingLimit)
        }
    }

    /// Shows this of a track at once, in the place of what it shows and of all that waits: the
    /// tiles have another size.
    package mutating func replace(_ picture: Picture, of track: UInt32) {
        waiting[track] = nil
        for index in tiles.indices where tiles[index].track == track {
            tiles[index].shown = (track, picture)
        }
    }

    /// Nothing more comes of a track.
    package mutating func leave(_ track: UInt32) { waiting[track] = nil }

    /// Nothing of a track is to be seen any more.
    package mutating func forget(_ track: UInt32) {
        waiting[track] = nil
        for index in tiles.indices where tiles[index].shown?.track == track {
            tiles[index].shown = nil
        }
    }

    /// What each tile shows when all is shown that was captured until `time`; `nil` is black.
    package mutating func pictures(until time: Instant, at now: Instant) -> [Picture?] {
        for index in tiles.indices {
            let track = tiles[index].track
            let due = waiting[track]?.prefix { $0.instant <= time } ?? []
            if let last = due.last {
                tiles[index].shown = (track, last.picture)
                waiting[track]?.removeFirst(due.count)
            } else if let shown = tiles[index].shown, shown.track != track,
                now.milliseconds(since: tiles[index].since) >= Self.patienceMilliseconds
            {
                tiles[index].shown = nil
            }
        }
        return tiles.map { $0.shown?.picture }
    }
}
