import RTP
import WorkerInterface

/// One incoming stream of a publication: a simulcast layer, or all there is.
struct Encoding: ~Copyable {
    /// Index of its publication.
    let publication: Int
    /// Its place among the publication's encodings, as the offer listed them.
    let position: Int
    let kind: MediaKind

    var ssrc: SSRC?
    var rtxSSRC: SSRC?
    /// Names one numbering of one stream, unique in the worker: a new one at each restart.
    var epoch: UInt32
    var window = SequenceWindow()
    /// Whether what came last was left out as too late: what comes next does not follow it.
    var isBroken = false
    var losses = LossTracker()
    var reception = ReceptionStatistics()
    var rate = RateMeter()
    /// What holds its publisher to the rate that it may send at, whatever its SSRC.
    var police: RatePolice
    var keyframes = KeyframeRequests()
    /// From the publisher's last sender report; the same at the home and at its mirrors.
    var captured: CaptureTime?
    /// In a mirror: the home's name for the numbering that `epoch` names here.
    var homeEpoch: UInt32?
    var history: History

    /// The mapping of the last packet's payload type, so that few packets look it up.
    var mapping: FormatMapping?
    /// Pixels of its highest layer, from the last keyframe that told; 0 while unknown.
    var width = 0
    var height = 0
    var layers: LayerMeter
    /// What its dependency descriptors refer to, once one has told.
    var dependencies: DependencyLayout?
    /// Whether media came lately, as last looked at.
    var isLive = false
    /// Whether viewers may be given it: it is live, or rests because nobody wanted it and comes
    /// when asked for.
    var isOffered = false
    /// When it was asked for, until it comes.
    var askedFor: Instant?
    /// The highest of it when it last was live.
    var lastOption: LayerOption?
    /// What a lower layer needs is all among what a higher one needs, as last seen.
    var nestsLayers = true
    var nacksSent: UInt64 = 0
    var pictureLossesSent: UInt64 = 0
    var retransmissionsReceived: UInt64 = 0

    init(
        publication: Int,
        position: Int,
        kind: MediaKind,
        epoch: UInt32,
        limits: RatePolice.Limits
    ) {
        self.epoch = epoch
        police = RatePolice(limits)
        self.publication = publication
        self.position = position
        self.kind = kind
        history = History(of: kind)
        layers = LayerMeter(isEnabled: kind == .video)
    }

    /// The outgoing wall clock's RTP time at a sender report's moment, for lip sync.
    var clockRate: Int { kind == .audio ? 48_000 : 90_000 }

    /// Whether media came lately enough for this layer to be offered.
    ///
    /// Four frames that did not come are no jitter; a slow screen share has its own measure.
    func isActive(at now: Instant) -> Bool {
        let interval = rate.frameRate > 0 ? 4_000 / rate.frameRate : 1_000
        return rate.isActive(within: Int64(saturating: min(2_000, max(400, interval))), at: now)
    }

    /// Another SSRC took this encoding over: nothing of the old numbering holds.
    mutating func restart(with ssrc: SSRC?, epoch: UInt32, pool: inout PacketPool) {
        self.ssrc = ssrc
        self.epoch = epoch
        window = SequenceWindow()
        isBroken = false
        losses.removeAll()
        reception = ReceptionStatistics()
        captured = nil
        history.removeAll(from: &pool)
        layers.removeAll()
        dependencies = nil
        mapping = nil
    }
}
