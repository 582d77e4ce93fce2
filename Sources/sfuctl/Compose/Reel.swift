/// A clip's pictures as they are laid out: of one size, one for each frame of the session.
///
/// Recordings have key frames only where somebody asked for one, sizes that change and times that
/// stagger. From a reel any frame can be taken at once.
struct Reel: Equatable, Sendable {
    var clip: Int
    /// Of its pictures.
    var size: PixelSize
    /// The session's frame that is its first.
    var begin: Int
    /// How many frames it has.
    var count: Int
    /// Long gaps of the clip that are left out, in frames of the session.
    var cuts: [Range<Int>]

    /// Frames of a gap that are kept at either end: a segment may reach a second into it.
    static let margin = 2 * ComposePlan.frameRate
    /// Frames of the shortest cut.
    static let shortestCut = 10 * ComposePlan.frameRate

    /// Makes the reel of a clip, with pictures of an even `size`.
    init(of clip: Clip, index: Int, size: PixelSize) {
        self.clip = index
        self.size = size
        begin = max(0, ComposePlan.frame(clip.span.lowerBound, .toNearestOrEven))
        let end = max(begin + 1, ComposePlan.frame(clip.span.upperBound, .up))
        cuts = clip.gaps.compactMap { gap in
            let from = ComposePlan.frame(gap.lowerBound, .up) + Self.margin
            let until = ComposePlan.frame(gap.upperBound, .down) - Self.margin
            return until - from < Self.shortestCut ? nil : from..<until
        }
        count = end - begin - cuts.reduce(0) { $0 + $1.count }
    }

    /// The number, from 0, of its picture for a frame of the session.
    ///
    /// Before its begin and behind its end that is no picture it has.
    func picture(for frame: Int) -> Int {
        cuts.reduce(frame - begin) { $0 - min(max(frame - $1.lowerBound, 0), $1.count) }
    }
}

extension ComposePlan {
    /// The reels that the segments need, by clip.
    ///
    /// A reel's pictures are as large as the largest tile that shows it, and never larger than
    /// the clip's own.
    var reels: [Int: Reel] {
        var sizes: [Int: PixelSize] = [:]
        for tile in segments.lazy.flatMap(\.tiles) {
            guard let clip = tile.face.clip else { continue }
            let own = clips[clip].size ?? tile.picture.size
            let room = PixelSize(
                width: min(tile.picture.width, max(2, own.width / 2 * 2)),
                height: min(tile.picture.height, max(2, own.height / 2 * 2))
            )
            let size = own.fitted(into: room)
            if size.area > sizes[clip]?.area ?? 0 { sizes[clip] = size }
        }
        var reels: [Int: Reel] = [:]
        for (clip, size) in sizes { reels[clip] = Reel(of: clips[clip], index: clip, size: size) }
        return reels
    }
}
