import RTP
import WorkerInterface

/// One m-line on which a participant sends, with all of its encodings and viewers.
struct Publication: ~Copyable {
    /// Where its packets come from.
    enum Origin: BitwiseCopyable {
        /// This worker's transport with that index: this is the publication's home.
        case transport(Int)
        /// Another worker hands them on: this is a mirror.
        case mirror(of: RelayTarget)
    }

    /// Where to packets are handed on.
    struct Outlet: BitwiseCopyable {
        let target: RelayTarget
        /// The ring there was full: the next packet says so.
        var hasGap = false
        /// It gets nothing before it has asked for its beginning, or this time has come.
        var heldUntil: Instant?
        /// What it has asked for.
        var since: Instant?
    }

    /// RIDs that an offer may name.
    static let maximumEncodings = 4

    var configuration: PublicationConfiguration
    var origin: Origin
    /// Indices of its encodings, in the offer's order.
    var encodings = List<Int32>(capacity: 1)
    let kind: MediaKind
    /// Indices of the slots that carry it, in their order: so they are walked in memory order.
    var subscribers = List<Int32>()
    /// More than anybody else on the worker could wait for without noticing.
    var hasManyViewers: Bool { subscribers.count > 16 }
    /// Payload types, flat, so that a lookup touches no array.
    var formats = List<FormatMapping>()

    /// `false`: its packets go no further (mute, role, state).
    var isOpen = true
    /// A mirror's gate opened then: what the home received before is of an older right.
    var openedAt = Instant(nanoseconds: 0)
    /// What of it could be sent as last looked at, lowest first.
    var options = List<LayerOption>(capacity: 4)
    /// The encodings that the control plane knows to be wanted here, a bit each.
    var wanted: UInt8
    /// Since when fewer are.
    var unwantedSince: Instant?
    /// When any encoding was last live, and whether its viewers know that none is.
    var lastLive: Instant?
    var isInterrupted = false
    /// A mirror whose layers are looked at.
    var isBusy = false
    /// In a mirror: what it asks its home for, and how often it still does.
    var wantsSince: Instant?
    var asks = 0

    /// Its mirrors in other workers, which get all that passes the gate.
    var mirrors = List<Outlet>(capacity: 1)

    /// The packets of the batch under way, as a chain of pool places.
    var firstArrival: Int32 = -1
    var lastArrival: Int32 = -1
    var arrivalCount = 0
    var isQueued = false
    /// Whether they are in the batch that has been put aside.
    var isAside = false

    /// Whether somebody speaks; at the home of audio alone.
    var speech = SpeechDetector()
    /// What is known of its sound where packets do not tell how loud they are.
    var sound = OpusLevels.Stream()

    /// What the control plane was told last.
    var reported: [LayerDescription] = []
    var reportedCodec: Codec?

    init(_ configuration: PublicationConfiguration, origin: Origin) {
        self.configuration = configuration
        self.origin = origin
        kind = configuration.kind
        // A publisher sends all at first; nobody watches a new mirror.
        wanted =
            switch origin {
            case .transport: .max
            case .mirror: 0
            }
        for format in configuration.formats { formats.append(format) }
    }

    /// Whether anybody could be watching, in this worker or in another.
    var hasViewers: Bool { !subscribers.isEmpty || !mirrors.isEmpty }

    /// The home's transport; a mirror has none.
    var transport: Int? {
        switch origin {
        case .transport(let transport): transport
        case .mirror: nil
        }
    }

    /// What a mirror mirrors; a home has nothing.
    var home: RelayTarget? {
        switch origin {
        case .transport: nil
        case .mirror(let home): home
        }
    }

    /// The mapping whose media or retransmission payload type this is.
    func mapping(of payloadType: UInt8) -> FormatMapping? {
        for index in 0..<formats.count {
            let format = formats[index]
            if format.payloadType == payloadType || format.rtxPayloadType == payloadType {
                return format
            }
        }
        return nil
    }

    mutating func append(_ place: Int32, pool: inout PacketPool) {
        pool[place].next = -1
        if lastArrival >= 0 {
            pool[lastArrival].next = place
        } else {
            firstArrival = place
        }
        lastArrival = place
        arrivalCount &+= 1
    }

    mutating func removeArrivals() {
        firstArrival = -1
        lastArrival = -1
        arrivalCount = 0
        isQueued = false
    }
}
