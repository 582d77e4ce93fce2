internal import RTP

/// One m-line on which a participant sends, with all of its encodings and viewers.
struct Publication: ~Copyable {
    /// RIDs that an offer may name.
    static let maximumEncodings = 4

    var configuration: PublicationConfiguration
    /// Index of its transport.
    let transport: Int
    /// Indices of its encodings, in the offer's order.
    var encodings = List<Int32>(capacity: 1)
    let kind: MediaKind
    /// Indices of the slots that carry it, in their order: so they are walked in memory order.
    var subscribers = List<Int32>()
    /// Payload types, flat, so that a lookup touches no array.
    var formats = List<FormatMapping>()

    /// `false`: its packets go no further (mute, role, state).
    var isOpen = true
    /// Copies sent since the gate opened, for the fence.
    var forwarded: UInt64 = 0
    /// The highest live encoding, or -1 before the first packet.
    var best: Int32 = -1

    /// The packets of the batch under way, as a chain of pool places.
    var firstArrival: Int32 = -1
    var lastArrival: Int32 = -1
    var arrivalCount = 0
    var isQueued = false

    /// What the control plane was told last.
    var reported: [LayerDescription] = []

    init(_ configuration: PublicationConfiguration, transport: Int) {
        self.configuration = configuration
        self.transport = transport
        kind = configuration.kind
        for format in configuration.formats { formats.append(format) }
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
        arrivalCount += 1
    }

    mutating func removeArrivals() {
        firstArrival = -1
        lastArrival = -1
        arrivalCount = 0
        isQueued = false
    }
}
