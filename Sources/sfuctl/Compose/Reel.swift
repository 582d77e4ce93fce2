/// Intermediate video of one clip: constant size, one picture for each frame of the session.
///
/// Recordings have keyframes only on request, varying sizes and irregular timestamps. A reel allows
/// quick access to any frame.
struct Reel: Equatable, Sendable {
    var clip: Int
    /// Size of its pictures.
    var size: PixelSize
    /// Session frame of the first picture.
    var begin: Int
    /// Length in frames.
    var count: Int
    /// Long gaps of the clip that are left out, in session frames.
    var cuts: [Range<Int>]

    /// Frames kept at either end of a gap, because a segment may extend a second into it.
    static let margin = 2 * ComposePlan.frameRate
    /// Shortest cut, in frames.
    static let shortestCut = 10 * ComposePlan.frameRate

    /// Creates the reel of a clip, with pictures of an even `size`.
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

    /// Returns the index, from 0, of the picture for a session frame.
    ///
    /// The index is out of range before the reel's start and after its end.
    func picture(for frame: Int) -> Int {
        cuts.reduce(frame - begin) { $0 - min(max(frame - $1.lowerBound, 0), $1.count) }
    }
}

extension ComposePlan {
    /// Reels that the segments need, by clip.
    ///
    /// A reel's pictures are as large as the largest tile that shows it, but never larger than the
    /// clip's own.
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
