import RTP
import WorkerInterface

/// What of a slot no forwarded packet touches: what was agreed, what came before, what is asked.
struct SlotRecord: ~Copyable {
    var configuration: SlotConfiguration
    /// How its numbering went before the present span.
    var earlier = Renumbering.none

    /// What the last payload type that came is mapped to.
    var outgoing: FormatMapping?
    /// The first packet index that may be sent again as it was: what went before was written in
    /// another way, and one index must never carry two packets (RFC 7714 §8).
    var firstRepeatable: Int64 = 0
    /// The last RTX packet index.
    var rtxIndex: Int64

    /// Counts what the slot was told to carry, so that what waits for one binding is not taken for
    /// another's.
    var bindings: UInt32 = 0
    var subscription: UInt64 = 0
    /// What the viewer wants at most, and what its role allows.
    var preference = LayerCap.none
    var roleCap = LayerCap.none
    /// The higher is served first, 0 to 1000.
    var priority: Int16 = 0
    /// Video may be switched off where the path is too thin for it.
    var mayFallBack = true
    /// What it is to be sent; where that needs a keyframe, what is sent may still be another.
    var target = LayerTarget.nothing
    /// What the allocation gave it; audio has none.
    var share = LaterBox<SlotShare>()
    /// The subscriber was told that media flows.
    var hasStarted = false
    /// The encoding that the control plane was told of; `.max` before the first.
    var encodingSent = UInt32.max
    /// The spatial layer of it, likewise; `.max` where it has but one.
    var spatialSent = UInt8.max
    /// Copies that a fence has counted, or will: the others went out under the present right.
    var fencedPackets: UInt64 = 0

    var retransmissions: UInt64 = 0
    var nacksReceived: UInt64 = 0
    var pictureLossesReceived: UInt64 = 0
    var packetsLost: Int64 = 0
    var jitter: UInt32 = 0
    var fractionLost: UInt8 = 0

    init(_ configuration: SlotConfiguration, rtxRandom: UInt64) {
        self.configuration = configuration
        rtxIndex = Int64(rtxRandom & 0x3fff)
        if configuration.kind == .video { share.make(SlotShare()) }
    }
}

extension SlotConfiguration {
    /// What the viewer calls a publisher's format.
    ///
    /// An H.264 decoder of a higher profile plays a lower one (RFC 6184 §8.1), and no WebRTC
    /// encoder uses what Baseline has beyond Constrained Baseline.
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

extension Core {
    /// A viewer may have what its slot carries no longer, whichever of the two gates closed.
    ///
    /// The next fence tells how many copies went out under the right, retransmissions apart. Each
    /// is counted once: a second gate that closes finds nothing more.
    mutating func loseRight(of slot: Int) {
        let copies = slots[slot].packets &- slotRecords[slot].retransmissions
        packetsUnderLostRights &+= copies &- slotRecords[slot].fencedPackets
        slotRecords[slot].fencedPackets = copies
        dropWaiting(of: slot)
        lostStreams.append(slots[slot].ssrc)
        if let ssrc = slotRecords[slot].configuration.rtxSSRC { lostStreams.append(ssrc) }
    }
}
