import RTP
import WorkerInterface

/// M-line on which a participant receives: one continuous stream from changing sources.
///
/// These are the fields that the packet path touches, in two cache lines; `SlotRecord` holds the
/// rest. The order of the fields leaves no gap between them: a test checks the size.
struct Slot: BitwiseCopyable {
    /// Source of a slot's media, with indexes of encodings.
    enum Source: BitwiseCopyable {
        /// Carries nothing, or is silenced.
        case idle
        /// Waits for the first packet that can be decoded on its own.
        case waiting
        case flowing(EncodingIndex)
        /// Forwards `from` until a keyframe of `to` arrives.
        case switching(from: EncodingIndex, to: EncodingIndex)
    }

    /// Largest burst of retransmissions, in quarters of a packet.
    ///
    /// In the long run a subscriber may have a quarter of its packets sent again.
    static let maximumCredit: UInt16 = 4 * 256
    /// Bytes of a MID that are stored here; the record has longer ones.
    static let shortMID = 6

    var rewriter: RTPRewriter
    var source = Source.idle
    let kind: MediaKind
    /// Last payload type that arrived; `payloadType` is its mapping.
    var incomingPayloadType: UInt8 = 0xff
    var isOpen = false
    /// Index of its transport.
    let transport: TransportIndex
    private(set) var ssrc: SSRC
    private var carried = OptionalIndex<HandleKind.Publication>()

    private(set) var packets: UInt64 = 0
    private(set) var bytes: UInt64 = 0
    /// Payload bytes without padding, as a sender report counts them (RFC 3550 §6.4.1).
    private(set) var octets: UInt32 = 0
    /// Retransmissions allowed at present, in quarters of a packet.
    var retransmissionCredit = Self.maximumCredit

    /// Outgoing payload type; `nil` if the subscriber has no such codec.
    var payloadType: UInt8?
    /// Opus payload type that RED headers name.
    private(set) var opusPayloadType: UInt8 = 0
    var stripsRED = false
    /// Whether packets carry a send time and a transport-wide sequence number.
    var stampsPackets = true
    /// Whether a long MID or a high id needs the two-byte form for all extensions (RFC 8285 §4.3).
    private(set) var needsTwoByteForm = false
    /// Whether the control plane was told the encoding and layer being forwarded.
    var isLayerNoted = false
    /// Layers of the selected encoding that the subscriber is to get.
    var point = LayerPoint.top
    private(set) var extensions: ExtensionMap
    /// Bytes of the MID sent with each packet; 0 if it is not negotiated.
    private(set) var midLength: UInt8 = 0
    private(set) var mid = [6 of UInt8](repeating: 0)

    init(_ configuration: SlotConfiguration, transport: TransportIndex, random: UInt64) {
        self.transport = transport
        kind = configuration.kind
        ssrc = configuration.ssrc
        extensions = configuration.extensions
        rewriter = RTPRewriter(random: random)
        configure(configuration)
    }

    /// Publication that it carries, if it is bound to one.
    var publication: PublicationIndex? {
        get { carried.value }
        set { carried.value = newValue }
    }

    /// Whether it waits for a keyframe.
    var isWaiting: Bool {
        switch source {
        case .waiting: true
        case .idle, .flowing, .switching: false
        }
    }

    var hasLongMID: Bool { Int(midLength) > Self.shortMID }

    /// Applies a new negotiation; the numbering continues.
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

    /// Continues what an earlier process has sent.
    mutating func resume(
        _ numbering: RTPRewriter.Saved,
        packets: UInt64,
        bytes: UInt64,
        octets: UInt32
    ) {
        rewriter.resume(numbering)
        self.packets = packets
        self.bytes = bytes
        self.octets = octets
    }

    /// Counts one sent packet of `length` bytes in all, `octets` of them payload.
    mutating func count(length: Int, octets: Int) {
        packets &+= 1
        bytes &+= UInt64(length)
        self.octets &+= UInt32(truncatingIfNeeded: octets)
        if retransmissionCredit < Self.maximumCredit { retransmissionCredit += 1 }
    }
}

/// Cursor with copies of a slot and its destination, while packets are forwarded through them.
struct SlotCursor: BitwiseCopyable {
    /// Index of the slot.
    let index: SlotIndex
    var slot: Slot
    var destination: Destination
}

extension Forwarder {
    /// Copies a slot and its destination into a cursor.
    ///
    /// Nothing else may change the two until `put` writes them back.
    func slotCursor(of slot: SlotIndex, _ transports: borrowing Transports) -> SlotCursor {
        SlotCursor(
            index: slot,
            slot: slots[slot],
            destination: transports.destinations[slots[slot].transport]
        )
    }

    mutating func put(_ slotCursor: SlotCursor, _ transports: inout Transports) {
        slots[slotCursor.index] = slotCursor.slot
        transports.destinations[slotCursor.slot.transport] = slotCursor.destination
    }
}
