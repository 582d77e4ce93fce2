import RTP
import WorkerInterface

/// Incoming RTP stream of a publication: one simulcast layer, or the whole publication.
struct Encoding: ~Copyable {
    /// Index of its publication.
    let publication: PublicationIndex
    /// Position among the publication's encodings, in the offer's order.
    let position: Int
    let kind: MediaKind

    var ssrc: SSRC?
    var rtxSSRC: SSRC?
    /// Identifier of the current sequence numbering, unique in the worker; renewed at each restart.
    var epoch: UInt32
    var window = SequenceWindow()
    /// Whether the last packet was discarded as stale, so that the next one does not continue the
    /// stream.
    var isBroken = false
    /// Whether another node's warm picture has begun to come, and its last packet has not.
    var isPictureOpen = false
    var losses = LossTracker()
    var reception = ReceptionStatistics()
    var rate = RateMeter()
    /// Silences and missing packets, by which a freeze is explained.
    var watch = ArrivalWatch()
    /// Rate limiter of the encoding, kept when its SSRC changes.
    var police: RatePolicer
    var keyframes = KeyframeRequests()
    /// Capture time from the publisher's last sender report; the same at the home and at its
    /// mirrors.
    var captured: CaptureTime?
    /// Epoch of the numbering at the home, in a mirror only; `epoch` is the local one.
    var homeEpoch: UInt32?
    /// Whether the home's process may be another one, whose epochs may be lower: whatever comes
    /// next is followed.
    var mayBeginLower = false
    var history: History

    /// Mapping of the last packet's payload type, cached to avoid lookups.
    var mapping: FormatMapping?
    /// Width in pixels of the highest layer, from the last keyframe that carried it; 0 while
    /// unknown.
    var width = 0
    var height = 0
    var layers: LayerMeter
    /// State for parsing dependency descriptors; `nil` before the first one.
    var dependencies: DependencyLayout?
    /// Whether media arrived recently, as of the last review.
    var isLive = false
    /// Whether subscribers may be given it: it is live, or paused for lack of demand and expected
    /// to resume on request.
    var isOffered = false
    /// Time when the publisher was asked to resume it; `nil` once it arrives.
    var resumeRequestedAt: Instant?
    /// Highest layer option when it was last live.
    var lastOption: LayerOption?
    /// Last time when a layer of it was above the cap of the publisher's role by its frame rate or
    /// bitrate alone.
    var cappedAt: Instant?
    /// Whether all packets of a lower layer also belong to the higher ones, according to the last
    /// packet.
    var nestsLayers = true
    var nacksSent: UInt64 = 0
    var pictureLossesSent: UInt64 = 0
    var retransmissionsReceived: UInt64 = 0

    init(
        publication: PublicationIndex,
        position: Int,
        kind: MediaKind,
        epoch: UInt32,
        limits: RatePolicer.Limits
    ) {
        self.epoch = epoch
        police = RatePolicer(limits)
        self.publication = publication
        self.position = position
        self.kind = kind
        history = History(of: kind)
        layers = LayerMeter(isEnabled: kind.isVideo)
    }

    /// RTP clock rate, in hertz.
    var clockRate: Int { kind.isAudio ? 48_000 : 90_000 }

    /// Returns whether media arrived recently enough for this layer to be offered.
    ///
    /// The limit is four frame intervals, between 400 ms and 2 s: beyond ordinary jitter, yet
    /// tolerant of slow screen shares.
    func isActive(at now: Instant) -> Bool {
        let interval = rate.frameRate > 0 ? 4_000 / rate.frameRate : 1_000
        return rate.isActive(within: Int64(saturating: min(2_000, max(400, interval))), at: now)
    }

    /// Resets the receive state for a new SSRC or numbering.
    mutating func restart(with ssrc: SSRC?, epoch: UInt32, pool: inout PacketPool) {
        self.ssrc = ssrc
        self.epoch = epoch
        window = SequenceWindow()
        isBroken = false
        losses.removeAll()
        watch.restart()
        reception = ReceptionStatistics()
        captured = nil
        history.removeAll(from: &pool)
        layers.removeAll()
        dependencies = nil
        mapping = nil
        isPictureOpen = false
    }
}
