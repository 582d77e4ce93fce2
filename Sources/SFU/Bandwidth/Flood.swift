import RTP

/// What fills a path that has become narrow, until less of it can follow.
extension Core {
    /// What takes so many times as much as what is to follow it stops at once where the path is
    /// full.
    private static let floodFactor = 2
    /// How long a keyframe takes from being asked for to the viewer's path.
    private static let answerMilliseconds: Int64 = 60
    private static let longestPause: Int64 = 500

    /// How long what has been sent still fills the path: a keyframe that came sooner would wait,
    /// or be lost.
    func pause(of transport: Int) -> Int64 {
        let waiting = transports[transport].bandwidth?.waitMilliseconds() ?? 0
        return min(max(waiting &- Self.answerMilliseconds, 0), Self.longestPause)
    }

    /// Whether what leaves now would fill the path until another encoding's keyframe has come.
    ///
    /// Fewer layers of the same encoding need no keyframe: it goes on, with less.
    func floods(
        _ slot: Int,
        with before: LayerOption,
        until option: LayerOption
    ) -> Bool {
        guard before.target.encoding != option.target.encoding,
            before.likelyBitrate > Self.floodFactor * option.likelyBitrate,
            transports[slots[slot].transport].bandwidth?.isFull() == true
        else { return false }
        switch slots[slot].source {
        case .idle, .waiting: return false
        // Where the turn before this one still waits for its keyframe, less leaves than was given.
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            return encoding == before.target.encoding
        }
    }
}
