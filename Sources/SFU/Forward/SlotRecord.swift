import RTP
import WorkerInterface

/// Slot state outside the packet path: negotiation, earlier spans, subscription and statistics.
struct SlotRecord: ~Copyable {
    var configuration: SlotConfiguration
    /// Sequence spans before the current one.
    var earlier = RTPRewriter.none

    /// Mapping of the last payload type that arrived.
    var outgoing: FormatMapping?
    /// First packet index that may be retransmitted unchanged.
    ///
    /// Packets before it were written with another mapping, and one index must never carry two
    /// packets (RFC 7714 §8).
    var firstRepeatable: Int64 = 0
    /// Number of times that the slot was closed or bound to another publication.
    ///
    /// It tells packets held for one binding from those of another.
    var bindings: UInt32 = 0
    var subscription: UInt64 = 0
    /// Highest layers that the subscriber asks for, and that its role allows.
    var preference = LayerCap.none
    var roleCap = LayerCap.none
    /// Priority of the subscription, 0 to 1000; higher ones are served first.
    var priority: Int16 = 0
    /// Whether video may be paused if the path is too narrow for it.
    var mayFallBack = true
    /// Selected layers, `nil` if video is off; other ones may still be sent until the keyframe that
    /// the change needs.
    var target: LayerTarget?
    /// Whether it goes on with what an earlier process carried in it, and no layers of the
    /// publication are known yet.
    var isContinued = false
    /// Whether the subscriber was told that media flows.
    var hasStarted = false
    /// Encoding that the control plane was last told; `nil` before the first.
    var encodingSent: EncodingIndex?
    /// Spatial layer that the control plane was last told; `.max` if the encoding has only one.
    var spatialSent = UInt8.max
    /// Packets that a fence has counted or will count; the others went out under the present
    /// permission.
    var fencedPackets: UInt64 = 0

    var retransmissions: UInt64 = 0
    var nacksReceived: UInt64 = 0
    var pictureLossesReceived: UInt64 = 0
    var packetsLost: Int64 = 0
    /// Time when it was last sent a warm picture; long ago if never.
    var warmAt = Instant(nanoseconds: .min / 2)
    /// Whether nothing was sent since the slot was bound, so that a warm picture may begin it.
    var isFresh = false
    /// Whether it began with a warm picture and waits for the layer that it is to have.
    var isClimbing = false
    /// Highest temporal layer that is forwarded of the old encoding until a switch is done.
    var bridge: UInt8 = 3
    /// Whether the viewer has reported on it since its last sample.
    var hasNewReport = false
    var fractionLost: UInt8 = 0
    var jitter: UInt32 = 0
    /// Detector of the video's freezes; made when the slot is first bound.
    var freezes = LazyBox<FreezeDetector>()

    init(_ configuration: SlotConfiguration) { self.configuration = configuration }
}

extension SlotConfiguration {
    /// Returns the subscriber's mapping for a publisher's format.
    ///
    /// An H.264 decoder of a higher profile plays a lower one (RFC 6184 §8.1), and no WebRTC
    /// encoder uses the features that Baseline has beyond Constrained Baseline.
    func mapping(for format: MediaFormat) -> FormatMapping? {
        var found: FormatMapping?
        for candidate in formats where candidate.format.codec == format.codec {
            if candidate.format.profile == format.profile { return candidate }
            let plays = max(candidate.format.profile, 1) >= format.profile
            if format.codec == .h264, plays { found = found ?? candidate }
        }
        return found
    }
}

extension Forwarder {
    /// Returns the clock rate of a slot's RTP timestamps: its kind's usual one while it is idle.
    func clockRate(of slot: SlotIndex) -> Int {
        let codec = slotRecords[slot].outgoing?.format.codec
        return (codec ?? (slots[slot].kind == .audio ? .opus : .vp8)).clockRate
    }

    /// Handles the loss of a subscriber's permission to receive, whichever of the two gates closed.
    ///
    /// The next fence reports how many copies were sent under that permission, without
    /// retransmissions. Each copy is counted once: a second gate that closes adds none.
    mutating func revokeRight(of slot: SlotIndex, _ transports: borrowing Transports) {
        let copies = slots[slot].packets &- slotRecords[slot].retransmissions
        packetsUnderRevokedRights &+= copies &- slotRecords[slot].fencedPackets
        slotRecords[slot].fencedPackets = copies
        dropPaced(of: slot, transports)
        revokedSSRCs.append(slots[slot].ssrc)
        if let ssrc = slotRecords[slot].configuration.rtxSSRC { revokedSSRCs.append(ssrc) }
    }
}
