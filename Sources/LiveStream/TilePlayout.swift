package import RTP

/// Playout buffer that selects the picture of each tile.
///
/// Pictures are shown with a fixed delay after their capture, which removes jitter. `Picture` is
/// the caller's picture type.
package struct TilePlayout<Picture> {
    /// Tile with its assigned track and the picture that it shows.
    private struct Tile {
        var track: UInt32
        /// Time of the assignment; the previous picture stays until the track's first one.
        var since: Instant
        var shown: (track: UInt32, picture: Picture)?
    }

    /// Pictures to be shown, with their capture times, by track.
    private var waiting: [UInt32: [(instant: Instant, picture: Picture)]] = [:]
    private var tiles: [Tile] = []

    /// Largest number of waiting pictures of a track; beyond it the oldest are dropped.
    package static var waitingLimit: Int { 60 }
    /// Milliseconds for which the previous picture stays if the assigned track has none.
    package static var patienceMilliseconds: Int64 { 2_000 }

    package init() {}

    /// Assigns tracks to the tiles, from the first to the last.
    package mutating func set(_ tracks: [UInt32], at now: Instant) {
        var old = tiles[...]
        tiles = tracks.map { track in
            let before = old.popFirst()
            if let before, before.track == track { return before }
            return Tile(track: track, since: now, shown: before?.shown)
        }
    }

    /// Tracks assigned to the tiles.
    package var tracks: [UInt32] { tiles.map(\.track) }

    /// Adds a picture captured at `instant`.
    package mutating func add(_ picture: Picture, of track: UInt32, at instant: Instant) {
        waiting[track, default: []].append((instant, picture))
        if let count = waiting[track]?.count, count > Self.waitingLimit {
            waiting[track]?.removeFirst(count - Self.waitingLimit)
        }
    }

    /// Replaces a track's shown picture at once, and discards its waiting ones, after a change of
    /// the tiles' size.
    package mutating func replace(_ picture: Picture, of track: UInt32) {
        waiting[track] = nil
        for index in tiles.indices where tiles[index].track == track {
            tiles[index].shown = (track, picture)
        }
    }

    /// Discards a track's waiting pictures; its shown picture stays.
    package mutating func leave(_ track: UInt32) { waiting[track] = nil }

    /// Removes all pictures of a track, including the shown one.
    package mutating func forget(_ track: UInt32) {
        waiting[track] = nil
        for index in tiles.indices where tiles[index].shown?.track == track {
            tiles[index].shown = nil
        }
    }

    /// Returns the picture of each tile when all captured until `time` are shown; `nil` is black.
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
