import RTP
import WorkerInterface

/// One m-line on which a participant sends, with all of its encodings and subscribers.
struct Publication: ~Copyable {
    /// Source of a publication's packets.
    enum Origin: BitwiseCopyable {
        /// Transport with this index: the worker is the publication's home.
        case transport(TransportIndex)
        /// Relay from another worker: this is a mirror.
        case mirror(of: RelayTarget)
        /// Link from another node: for this node's workers it is the home.
        case link
    }

    /// Mirror that packets are relayed to.
    struct RelayDestination: BitwiseCopyable {
        let target: RelayTarget
        /// Whether the relay ring was full; the next packet carries a gap mark.
        var hasGap = false
        /// End of the hold; until then, or until the mirror has asked for held audio, nothing is
        /// relayed.
        var heldUntil: Instant?
        /// Time since which the mirror has asked for held audio.
        var since: Instant?
        /// Whether the mirror has asked for the warm picture.
        var wantsPicture = false
    }

    /// Share of the layers that is not on offer, because the publisher's role does not permit it.
    enum AboveCap: BitwiseCopyable {
        case none, some, all
    }

    /// RIDs accepted per m-line of an offer.
    static let maximumEncodings = CoreLimits.encodingsPerPublication

    var configuration: PublicationConfiguration
    var origin: Origin
    /// Indices of its encodings, in the offer's order.
    var encodings = UncountedArray<EncodingIndex>(capacity: 1)
    let kind: MediaKind
    /// Indices of the slots that carry it, sorted so that they are visited in memory order.
    var subscribers = UncountedArray<SlotIndex>()
    /// Whether forwarding to all subscribers takes long enough to delay the worker's other media.
    var hasLargeAudience: Bool { subscribers.count > 16 }
    /// Negotiated payload types, stored flat to keep arrays out of the lookup.
    var formats = UncountedArray<FormatMapping>()

    /// Whether its packets are forwarded; `false` because of mute, role or state.
    var isOpen = true
    /// Time when the gate last opened or closed; packets received earlier belong to an older right.
    var openedAt = Instant(nanoseconds: 0)
    /// Layers on offer at the last review, lowest first.
    var options = UncountedArray<LayerOption>(capacity: 4)
    /// Layers that were left out of them as above the role's cap.
    var aboveCap = AboveCap.none
    /// Encodings last reported to the control plane as in demand here, one bit each.
    var wanted: UInt8
    /// Time since which fewer encodings have been in demand.
    var demandReducedSince: Instant?
    /// Limit of how often packets select the subscribers' layers anew.
    var refreshes = RefreshLimit()
    /// Time when any encoding was last live, and whether the subscribers have been told that none
    /// is.
    var lastLive: Instant?
    var isInterrupted = false
    /// Whether a mirror's layers are under regular review.
    var isBusy = false
    /// Time since which a mirror requests held audio from its home, and how many more requests it
    /// sends.
    var heldAudioSince: Instant?
    var asks = 0
    /// Whether a mirror requests the warm picture from its home, as often as `asks` says.
    var wantsPicture = false

    /// Encodings that other nodes want of a mirror in the link thread, one bit each.
    var exported: UInt8 = 0
    /// Encodings that a link from another node does not carry now, one bit each.
    var withheld: UInt8 = 0
    /// Lease under which the gate may be open, if its room's home is another node.
    var lease: Lease?

    /// Mirrors in other workers, which are sent all packets that pass the gate.
    var mirrors = UncountedArray<RelayDestination>(capacity: 1)

    /// Packets of the current batch, as a chain of pool places.
    var firstArrival: PacketPlace?
    var lastArrival: PacketPlace?
    var arrivalCount = 0
    var isQueued = false
    /// Whether they belong to a preempted batch.
    var isPreempted = false

    /// Speech detector, used at the home of audio only.
    var speech = SpeechDetector()
    /// Loudness measurement state for packets without an audio level.
    var sound = OpusLevelMeter.Stream()

    /// Layers last reported to the control plane.
    var reported: [LayerDescription] = []
    var reportedCodec: Codec?

    init(_ configuration: PublicationConfiguration, origin: Origin) {
        self.configuration = configuration
        self.origin = origin
        kind = configuration.kind
        // At first, a publisher sends all encodings, and a new mirror has no subscribers.
        wanted =
            switch origin {
            case .transport: .max
            case .mirror, .link: 0
            }
        for format in configuration.formats { formats.append(format) }
    }

    /// Whether it has subscribers in this worker, or mirrors in others or at other nodes.
    var hasViewers: Bool { !subscribers.isEmpty || !mirrors.isEmpty || exported != 0 }

    /// Transport that it arrives on; a mirror has none.
    var transport: TransportIndex? {
        switch origin {
        case .transport(let transport): transport
        case .mirror, .link: nil
        }
    }

    /// Home publication of a mirror; `nil` for a home.
    var home: RelayTarget? {
        switch origin {
        case .transport, .link: nil
        case .mirror(let home): home
        }
    }

    /// Whether another node feeds it.
    var isLinked: Bool {
        switch origin {
        case .link: true
        case .transport, .mirror: false
        }
    }

    /// Returns the mapping with this media or RTX payload type.
    func mapping(of payloadType: UInt8) -> FormatMapping? {
        for index in 0..<formats.count {
            let format = formats[index]
            if format.payloadType == payloadType || format.rtxPayloadType == payloadType {
                return format
            }
        }
        return nil
    }

    mutating func append(_ place: PacketPlace, pool: inout PacketPool) {
        pool[place].next = .none
        if let lastArrival {
            pool[lastArrival].next = OptionalIndex(place)
        } else {
            firstArrival = place
        }
        lastArrival = place
        arrivalCount &+= 1
    }

    mutating func removeArrivals() {
        firstArrival = nil
        lastArrival = nil
        arrivalCount = 0
        isQueued = false
    }
}

/// Limit of how often a publication's packets select the layers of all its subscribers anew.
///
/// A publisher whose encodings and layers begin one after the other needs a dozen within a moment.
struct RefreshLimit: BitwiseCopyable {
    /// Selections at once.
    static let burst: Int64 = 16
    /// Time, in ms, after which another one is allowed.
    static let intervalMilliseconds: Int64 = 100

    /// Time until which the selections made so far last; a burst is used up if it is that far off.
    private var until = Instant(nanoseconds: .min / 2)
    /// Whether one was refused since the last review.
    private var isPending = false

    /// Whether layers may be selected now; otherwise the next review has to do it.
    mutating func mayRefresh(at now: Instant) -> Bool {
        let next = max(until, now).advanced(milliseconds: Self.intervalMilliseconds)
        guard next.milliseconds(since: now) <= Self.burst &* Self.intervalMilliseconds else {
            isPending = true
            return false
        }
        until = next
        return true
    }

    /// Returns whether one was refused since the last call.
    mutating func takePending() -> Bool {
        defer { isPending = false }
        return isPending
    }
}
