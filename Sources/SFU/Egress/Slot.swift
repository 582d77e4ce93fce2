internal import RTP

/// One m-line on which a participant receives: one continuous stream, whatever it carries.
struct Slot: ~Copyable {
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

    enum Admission {
        case forward(Renumbering.Span, index: Int64)
        case drop(DropReason)
    }

    var configuration: SlotConfiguration
    /// Index of its transport.
    let transport: Int
    let kind: MediaKind
    var formats = List<FormatMapping>()
    var extensions: ExtensionMap
    /// The MID's bytes as they go out; empty where not negotiated.
    var mid = List<UInt8>(capacity: 8)

    var source = Source.idle
    var renumbering: Renumbering
    /// The next RTX packet index.
    var rtxIndex: Int64
    /// The publication that it carries, or -1.
    var publication: Int32 = -1
    var subscription: UInt64 = 0
    var isOpen = false
    /// The subscriber was told that media flows.
    var hasStarted = false

    /// The last payload type that came, and what it becomes.
    var incomingPayloadType: UInt8 = 0xff
    var outgoing: FormatMapping?
    var stripsRED = false
    /// Whether packets carry send time and transport-wide number.
    var stampsPackets = true
    /// The first packet index that may be sent again as it was: what went before was written in
    /// another way, and one index must never carry two packets (RFC 7714 §8).
    var firstRepeatable: Int64 = 0
    private(set) var opusPayloadType: UInt8 = 0
    private(set) var hasHighExtensionID = false
    /// The encoding whose packet was sent last; `.max` before the first.
    var encodingSent = UInt32.max

    /// Copies sent since the binding opened, for the fence.
    var forwarded: UInt64 = 0
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    /// Payload bytes, as a sender report counts them.
    var octets: UInt64 = 0
    var retransmissions: UInt64 = 0
    var nacksReceived: UInt64 = 0
    var pictureLossesReceived: UInt64 = 0
    var packetsLost: Int64 = 0
    var fractionLost: UInt8 = 0
    var jitter: UInt32 = 0
    /// Retransmissions allowed, in quarters of a packet.
    var retransmissionCredit = Self.maximumCredit

    /// A viewer may ask for a quarter of its packets again, and for this burst (in quarters).
    static let maximumCredit = 4 * 256

    init(_ configuration: SlotConfiguration, transport: Int, random: UInt64, rtxRandom: UInt64) {
        self.configuration = configuration
        self.transport = transport
        kind = configuration.kind
        extensions = configuration.extensions
        renumbering = Renumbering(random: random)
        rtxIndex = Int64(rtxRandom & 0x3fff)
        configure(configuration)
    }

    /// Takes over what a new offer changed; the numbering goes on.
    mutating func configure(_ configuration: SlotConfiguration) {
        self.configuration = configuration
        extensions = configuration.extensions
        formats.removeAll()
        for format in configuration.formats { formats.append(format) }
        mid.removeAll()
        if extensions[.mid] != 0 {
            for byte in configuration.mid.utf8.prefix(255) { mid.append(byte) }
        }
        incomingPayloadType = 0xff
        opusPayloadType = mapping(for: MediaFormat(codec: .opus))?.payloadType ?? 0
        hasHighExtensionID = ExtensionKind.allCases.contains { extensions[$0] > 14 }
    }

    /// Counts one packet sent.
    mutating func count(length: Int, octets: Int) {
        packets &+= 1
        bytes &+= UInt64(length)
        self.octets &+= UInt64(octets)
        if retransmissionCredit < Self.maximumCredit { retransmissionCredit += 1 }
    }

    /// What the viewer calls a publisher's format.
    ///
    /// An H.264 decoder of a higher profile plays a lower one (RFC 6184 §8.1), and no WebRTC
    /// encoder uses what Baseline has beyond Constrained Baseline.
    func mapping(for format: MediaFormat) -> FormatMapping? {
        var found: FormatMapping?
        for index in 0..<formats.count where formats[index].format.codec == format.codec {
            let candidate = formats[index]
            if candidate.format.profile == format.profile { return candidate }
            let plays = max(candidate.format.profile, 1) >= format.profile
            if format.codec == .h264, plays { found = found ?? candidate }
        }
        return found
    }

    /// Decides about one packet of its publication.
    ///
    /// `wanted` is the encoding to forward when it can be switched to.
    mutating func admit(_ info: borrowing PacketInfo, wanted: Int32) -> Admission {
        let encoding = Int32(bitPattern: info.encoding)
        let flags = info.flags
        let isStart = kind == .audio || flags.contains(.keyframeStart)
        switch source {
        case .idle:
            return .drop(.noSubscriber)
        case .waiting:
            guard isStart else { return late(info, otherwise: .awaitingKeyframe) }
            let isWanted = encoding == wanted || wanted < 0
            source = isWanted ? .flowing(encoding) : .switching(from: encoding, to: wanted)
            return begin(info)
        case .flowing(encoding), .switching(from: encoding, to: _):
            return follow(info)
        case .switching(from: _, to: encoding) where isStart:
            source = .flowing(encoding)
            return begin(info)
        case .flowing, .switching:
            return late(info, otherwise: .layerNotSelected)
        }
    }

    private mutating func follow(_ info: borrowing PacketInfo) -> Admission {
        let current = renumbering.current
        guard current.encoding == info.encoding, current.epoch == info.epoch else {
            return begin(info)
        }
        guard let (span, index) = renumbering.place(info) else { return .drop(.tooOld) }
        return .forward(span, index: index)
    }

    /// A packet of a stretch that is over still fills its hole.
    private func late(
        _ info: borrowing PacketInfo,
        otherwise reason: DropReason
    ) -> Admission {
        guard renumbering.hasStarted, let (span, index) = renumbering.place(info) else {
            return .drop(reason)
        }
        return index < renumbering.highest ? .forward(span, index: index) : .drop(reason)
    }

    private mutating func begin(_ info: borrowing PacketInfo) -> Admission {
        let current = renumbering.current
        var exact: UInt32?
        if current.encoding == info.encoding, current.epoch == info.epoch {
            exact = info.timestamp &+ current.timestampOffset
        }
        renumbering.begin(
            with: info,
            clockRate: kind == .audio ? 48_000 : 90_000,
            timestamp: exact
        )
        guard let (span, index) = renumbering.place(info) else { return .drop(.tooOld) }
        return .forward(span, index: index)
    }
}
