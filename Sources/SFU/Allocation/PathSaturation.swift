import RTP

/// Early stop of a layer that saturates a path, before its smaller successor's keyframe arrives.
extension LayerAllocator {
    /// Ratio of old to new bitrate above which the old layer stops at once on a saturated path.
    private static let floodFactor = 2
    /// Typical time from a keyframe request to the keyframe's arrival at the subscriber's path.
    private static let answerMilliseconds: Int64 = 60
    private static let longestPause: Int64 = 500

    /// Returns the milliseconds to delay a keyframe request until the path's queue has drained.
    ///
    /// A keyframe that arrived sooner would be queued or lost.
    func pause(of transport: TransportIndex, _ transports: borrowing Transports) -> Int64 {
        let waiting = transports[transport].bandwidth?.waitMilliseconds() ?? 0
        return min(max(waiting &- Self.answerMilliseconds, 0), Self.longestPause)
    }

    /// Whether the present layer would saturate the path until another encoding's keyframe arrives.
    ///
    /// Dropping to fewer layers of the same encoding needs no keyframe, so that one continues.
    func wouldSaturate(
        _ slot: SlotIndex,
        with before: LayerOption,
        until option: LayerOption,
        _ transports: borrowing Transports,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        guard before.target.encoding != option.target.encoding,
            before.likelyBitrate > Self.floodFactor * option.likelyBitrate,
            transports[forwarder.slots[slot].transport].bandwidth?.isFull() == true
        else { return false }
        switch forwarder.slots[slot].source {
        case .idle, .waiting: return false
        // If the previous switch still awaits its keyframe, less is sent than was allotted.
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            return encoding == before.target.encoding
        }
    }
}
