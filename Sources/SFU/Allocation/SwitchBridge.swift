import RTP
import WorkerInterface

/// Bridge over a switch downwards: what is forwarded of the old encoding until the keyframe of the
/// lower one arrives.
extension LayerAllocator {
    /// Ratio of old to new bitrate above which the old encoding stops at once on a saturated path.
    private static let floodFactor = 2
    /// Factor by which the bridge may exceed the slot's part of the estimate, as it lasts for a
    /// moment.
    private static let excess = 1.25
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

    /// Whether a slot falls to another encoding for which a keyframe has to come first.
    func needsBridge(
        _ slot: SlotIndex,
        from before: LayerOption,
        to option: LayerOption,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        guard before.target.encoding != option.target.encoding else { return false }
        switch forwarder.slots[slot].source {
        case .idle, .waiting: return false
        // If the previous switch still awaits its keyframe, less is sent than was allotted.
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            return encoding == before.target.encoding
        }
    }

    /// Returns the highest temporal layer of the old encoding that fits until the keyframe of the
    /// new one arrives, so that the picture goes on with fewer frames; `nil` if the path's queue is
    /// long: its frames are still to be shown, and more of them would only delay the keyframe.
    ///
    /// `budget` is the slot's part of the estimate, in bits a second; `options` are the layers on
    /// offer, in order of their sizes and frame rates.
    static func bridge(
        from before: LayerOption,
        to option: LayerOption,
        within budget: Int,
        isFull: Bool,
        _ options: borrowing UncountedArray<LayerOption>
    ) -> UInt8? {
        if isFull, before.likelyBitrate > floodFactor * option.likelyBitrate { return nil }
        let budget = Double(max(budget, withOverhead(option.likelyBitrate)))
        let limit = Int(saturating: budget * excess)
        var lowest = before
        var found: UInt8?
        for index in 0..<options.count {
            let candidate = options[index]
            guard candidate.target.encoding == before.target.encoding,
                candidate.target.spatial == before.target.spatial,
                candidate.target.temporal <= before.target.temporal
            else { continue }
            if candidate.target.temporal < lowest.target.temporal { lowest = candidate }
            if withOverhead(candidate.likelyBitrate) <= limit {
                found = max(found ?? 0, candidate.target.temporal)
            }
        }
        return found ?? lowest.target.temporal
    }
}
