import RTP
import WorkerInterface

/// One m-line on which a participant receives: one continuous stream, whatever it carries.
///
/// This is what a forwarded packet touches of it, in two cache lines; `SlotRecord` is the rest.
/// The order of the fields leaves no gap between them: a test holds the size.
struct Slot: BitwiseCopyable {
    /// Where its pictures come from.
    enum Source: BitwiseCopyable {
        /// It carries nothing, or is held silent.
        case idle
        /// Waits for the first packet that can be played by itself.
        case waiting
        case flowing(Int32)
        /// Forwards one encoding until a keyframe of the other comes.
        case switching(from: Int32, to: Int32)
    }

    /// A viewer may ask for a quarter of its packets again, and for this burst (in quarters).
    static let maximumCredit: UInt16 = 4 * 256
    /// Bytes of a MID that lie here; of a longer one the record has all.
    static let shortMID = 6

    var renumbering: Renumbering
    var source = Source.idle
    let kind: MediaKind
    /// The last payload type that came; `payloadType` is what it becomes.
    var incomingPayloadType: UInt8 = 0xff
    var isOpen = false
    private let place: Int32
    private(set) var ssrc: SSRC
    /// The publication that it carries, or -1.
    var publication: Int32 = -1

    private(set) var packets: UInt64 = 0
    private(set) var bytes: UInt64 = 0
    /// Payload bytes without padding, as a sender report counts them (RFC 3550 §6.4.1).
    private(set) var octets: UInt32 = 0
    /// Retransmissions allowed, in quarters of a packet.
    var retransmissionCredit = Self.maximumCredit

    /// `nil` where the viewer has no such codec.
    var payloadType: UInt8?
    /// What RED headers name.
    private(set) var opusPayloadType: UInt8 = 0
    var stripsRED = false
    /// Whether packets carry send time and transport-wide number.
    var stampsPackets = true
    /// A long MID or a high id needs the two-byte form for all elements (RFC 8285 §4.3).
    private(set) var needsTwoByteForm = false
    /// Whether the control plane knows what is being forwarded.
    var isLayerNoted = false
    /// The layers of the wanted encoding that its viewer is to get.
    var point = LayerPoint.top
    private(set) var extensions: ExtensionMap
    /// Bytes of the MID that go out with each packet: 0 where it is not negotiated.
    private(set) var midLength: UInt8 = 0
    private(set) var mid = [6 of UInt8](repeating: 0)

    init(_ configuration: SlotConfiguration, transport: Int, random: UInt64) {
        place = Int32(transport)
        kind = configuration.kind
        ssrc = configuration.ssrc
        extensions = configuration.extensions
        renumbering = Renumbering(random: random)
        configure(configuration)
    }

    /// Index of its transport.
    var transport: Int { Int(place) }

    var hasLongMID: Bool { Int(midLength) > Self.shortMID }

    /// Takes over what a new offer changed; the numbering goes on.
    mutating func configure(_ configuration: SlotConfiguration) {
        ssrc = configuration.ssrc
        extensions = configuration.extensions
        incomingPayloadType = 0xff
        let opus = configuration.mapping(for: MediaFormat(codec: .opus))
        opusPayloadType = opus?.payloadType ?? 0
        let length = extensions[.mid] != 0 ? min(configuration.mid.utf8.count, 255) : 0
        midLength = UInt8(length)
        for (index, byte) in configuration.mid.utf8.prefix(Self.shortMID).enumerated() {
            mid[index] = byte
        }
        let hasHighID = ExtensionKind.allCases.contains { extensions[$0] > 14 }
        needsTwoByteForm = hasHighID || length > 16
    }

    /// Counts one packet sent, of so many bytes with all that is around its payload.
    mutating func count(length: Int, octets: Int) {
        packets &+= 1
        bytes &+= UInt64(length)
        self.octets &+= UInt32(truncatingIfNeeded: octets)
        if retransmissionCredit < Self.maximumCredit { retransmissionCredit += 1 }
    }
}
