import RTP
import WorkerInterface

/// One participant's ICE and DTLS transport: its path, keys, and m-lines.
struct Transport: ~Copyable {
    /// Connection state, including whether the peer is silent.
    enum State: BitwiseCopyable {
        case connecting
        case connected
        /// The peer has been silent for the first of two timeouts, or its consent has expired.
        case reconnecting
        /// The transport has ended and waits for the control plane to close it.
        case ended
    }

    /// Encoding, and media or RTX role, of an incoming SSRC.
    struct Stream: BitwiseCopyable {
        var ssrc: SSRC
        var encoding: EncodingIndex
        var isRetransmission: Bool
    }

    let id: TransportID
    var configuration: TransportConfiguration
    var ice: ICEAgent
    var dtls: DTLSAssociation?
    var srtp: SRTPSession?
    var profile: SRTPProfile?
    var state = State.connecting
    /// Time when an offer opened it; `nil` if an earlier process did.
    var opened: Instant?
    /// Time of the last authenticated packet.
    var lastHeard: Instant
    /// Selected path for media, once ICE has one; senders read the copy in `Destination`.
    var path: Path?
    /// Path that media went on last, which the bandwidth estimate is about.
    var measuredPath: Path?
    /// The peer's consent to receive media on a path.
    var consent = PathConsent()
    /// Destinations of our handshake's datagrams.
    var flights = HandshakeFlights()

    var streams = UncountedArray<Stream>(capacity: 8)
    /// Unsignalled SSRCs whose roll-over counter and replay window are kept.
    ///
    /// Packets that were accepted once must not be accepted again as a new stream (RFC 3711
    /// §3.3.2).
    private(set) var unsignalledSSRCs = UncountedArray<SSRC>(capacity: 4)
    private var oldestUnsignalled = 0
    /// Number of new SSRCs in the current second, and that second.
    private var newSSRCs = 0
    private var newSSRCsSecond: Int64 = .min
    static let unsignalledLimit = 64
    var former = FormerSSRCs()
    var publications = UncountedArray<PublicationIndex>()
    var slots = UncountedArray<SlotIndex>()
    /// Header extension map of all m-lines: an id has one meaning on a bundled transport (RFC 8843
    /// §9).
    var extensions = ExtensionMap()
    /// SSRC of the sender of feedback, used when no slot's SSRC is available.
    var ssrc: SSRC
    let cname: [UInt8]
    /// Bytes of the CNAME that are sent.
    static let longestName = 64

    var arrivals: ArrivalLog?
    /// Whether this publisher receives transport-wide feedback, or REMB instead.
    var sendsTransportFeedback = false
    var sendsREMB = false
    var estimate = ReceiverRate()
    /// Estimator of the downlink bandwidth, if the peer agreed to send feedback for it.
    var bandwidth: PathBandwidth?
    /// Estimate by which the slots were last allocated, in bits a second.
    var allocatedEstimate: Int?
    /// Time of that allocation.
    var allocatedAt: Instant?
    /// Rate allocated then, including media that is not subject to allocation, in bits a second.
    var allocated = 0
    /// Bytes of the warm pictures that its slots were lately sent, and since when.
    var pictureBurst = (at: Instant(nanoseconds: 0), bytes: 0)
    /// Time since which the allocation exceeds the estimate.
    var exceededSince: Instant?
    var clock = SenderClock()

    var feedbackDue: Instant?
    var reportDue: Instant?
    var nackDue: Instant?
    var keyframeDue: Instant?
    var layersDue: Instant?
    var allocationDue: Instant?
    /// Time of the next look for freezes of its slots' video.
    var freezeDue: Instant?
    /// Deadline at which the silence of its publications may mark the end of speech.
    var speechDue: Instant?
    /// Earliest deadline that is in the timer queue.
    var scheduled: Instant?

    var rtcpBudget = RTCPBudget()
    /// Clocks of the peer's receivers, which reports answer.
    var receiverTimes = ReceiverTimes()
    var bytesIn: UInt64 = 0
    var packetsIn: UInt64 = 0
    var roundTripNanoseconds: Int64?
    /// Whether that was measured since the last sample of it.
    var hasNewRoundTrip = false
    /// Loss, jitter, round-trip times and estimates of all reports so far.
    var quality = LinkQuality()

    init(_ id: TransportID, _ configuration: TransportConfiguration, ssrc: SSRC, at now: Instant) {
        self.id = id
        self.configuration = configuration
        self.ssrc = ssrc
        cname = Array(configuration.cname.utf8.prefix(Self.longestName))
        ice = ICEAgent(configuration.ice)
        lastHeard = now
        opened = now
        arrivals = nil
    }

    /// Whether media is blocked because the peer has not consented on the selected path.
    var lacksConsent: Bool {
        guard srtp != nil, let path, !path.isConnection else { return false }
        return consent.path != path
    }

    /// Whether media may be sent: keys are agreed, the path has consent, and the transport has not
    /// ended.
    var canSend: Bool {
        guard srtp != nil, path != nil, !lacksConsent else { return false }
        switch state {
        case .connected, .reconnecting: return true
        case .connecting, .ended: return false
        }
    }

    var hasEnded: Bool {
        switch state {
        case .ended: true
        case .connecting, .connected, .reconnecting: false
        }
    }

    /// Authenticates and decrypts an RTP packet; throws `authentication` without keys.
    @_lifetime(output: copy output)
    mutating func unprotectRTP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        guard let length = try srtp?.unprotectRTP(packet, into: &output) else {
            throw .authentication
        }
        return length
    }

    @_lifetime(output: copy output)
    mutating func unprotectRTCP(
        _ packet: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) -> Int {
        guard let length = try srtp?.unprotectRTCP(packet, into: &output) else {
            throw .authentication
        }
        return length
    }

    @_lifetime(buffer: copy buffer)
    mutating func protectRTCP(
        _ buffer: inout MutableSpan<UInt8>,
        length: Int
    ) throws(SRTPError) -> Int {
        guard let total = try srtp?.protectRTCP(&buffer, length: length) else {
            throw .authentication
        }
        return total
    }

    /// Direct handle for RTP encryption, if the engine has one.
    var outgoingKey: OutgoingKey? { mutating get { srtp?.outgoingKey } }

    /// Begins the encryption of one packet whose header and prefix are in `output`.
    ///
    /// The packet is complete only after `SRTPContext.finish()`.
    @_lifetime(output: copy output)
    mutating func protectRTP(
        _ output: inout MutableSpan<UInt8>,
        headerLength: Int,
        prefixLength: Int,
        rest: Span<UInt8>,
        index: UInt64
    ) throws(SRTPError) -> Int {
        let length = try srtp?.protectRTP(
            &output,
            headerLength: headerLength,
            prefixLength: prefixLength,
            rest: rest,
            index: index
        )
        guard let length else { throw .authentication }
        return length
    }

    /// Returns the stream of an SSRC that was seen or signalled before.
    func stream(of ssrc: SSRC) -> Stream? {
        for index in 0..<streams.count where streams[index].ssrc == ssrc {
            return streams[index]
        }
        return nil
    }

    /// Returns whether a packet of this SSRC may be decrypted; new SSRCs are limited per second.
    ///
    /// Only authenticated packets count, so nobody without the keys can use up the limit.
    func admits(_ ssrc: SSRC, limit: Int, at now: Instant) -> Bool {
        guard newSSRCs >= limit, newSSRCsSecond == now.nanoseconds / 1_000_000_000 else {
            return true
        }
        return stream(of: ssrc) != nil || unsignalledSSRCs.contains(ssrc)
    }

    /// Counts an authenticated packet from an SSRC without a stream, if the SSRC is new.
    mutating func noteNewSSRC(_ ssrc: SSRC, at now: Instant) {
        guard !unsignalledSSRCs.contains(ssrc) else { return }
        let second = now.nanoseconds / 1_000_000_000
        if second != newSSRCsSecond {
            newSSRCsSecond = second
            newSSRCs = 0
        }
        newSSRCs &+= 1
    }

    /// Keeps the SRTP state of an unsignalled SSRC, and evicts the oldest at `unsignalledLimit`.
    mutating func noteUnsignalledSSRC(_ ssrc: SSRC) {
        guard stream(of: ssrc) == nil, !unsignalledSSRCs.contains(ssrc) else { return }
        guard unsignalledSSRCs.count >= Self.unsignalledLimit else {
            return unsignalledSSRCs.append(ssrc)
        }
        srtp?.removeIncoming(unsignalledSSRCs[oldestUnsignalled])
        unsignalledSSRCs[oldestUnsignalled] = ssrc
        oldestUnsignalled = (oldestUnsignalled + 1) % Self.unsignalledLimit
    }

    /// Adds a stream.
    mutating func bind(_ stream: Stream) {
        unsignalledSSRCs.remove(stream.ssrc)
        streams.append(stream)
    }

    /// Removes the stream at `index`; its SRTP state is kept as for an unsignalled SSRC.
    mutating func removeStream(at index: Int) {
        let ssrc = streams[index].ssrc
        streams.remove(swappingAt: index)
        noteUnsignalledSSRC(ssrc)
    }

    /// Interval between NACKs for the same packet: about a round trip, within 30 and 500 ms.
    var nackRetryMilliseconds: Int64 {
        min(500, max(30, (roundTripNanoseconds ?? 100_000_000) / 1_000_000 + 10))
    }
}

/// Memory of the SSRCs of m-lines that stopped sending, for when they resume.
///
/// A browser keeps its SSRCs while an m-line is `inactive`. It omits MID and RID from its packets
/// once it has learned that they arrived, so the receiver must remember what the SSRC stood for
/// (RFC 8843 §9.2: an entry of the table is replaced, not removed).
struct FormerSSRCs {
    private struct Entry {
        var ssrc: SSRC
        var mid: String
        var rid: String?
        var isRetransmission: Bool
    }

    /// Capacity: every encoding of eight m-lines, with RTX.
    static let limit = 8 * 2 * CoreLimits.encodingsPerPublication

    private var entries: [Entry] = []

    /// Remembers an SSRC in place of the previous one with the same role.
    mutating func keep(_ ssrc: SSRC, mid: String, rid: String?, isRetransmission: Bool) {
        entries.removeAll {
            $0.ssrc == ssrc
                || $0.mid == mid && $0.rid == rid && $0.isRetransmission == isRetransmission
        }
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append(
            Entry(ssrc: ssrc, mid: mid, rid: rid, isRetransmission: isRetransmission)
        )
    }

    /// Returns the last SSRC with this role.
    func ssrc(mid: String, rid: String?, isRetransmission: Bool) -> SSRC? {
        entries.last {
            $0.mid == mid && $0.rid == rid && $0.isRetransmission == isRetransmission
        }?.ssrc
    }
}

/// Destinations and number of the datagrams that one handshake has sent.
///
/// A peer that finishes a handshake has received our flights. This proves its address only if all
/// flights went to that one address, as a packet's source address proves nothing. Until then the
/// address may be a third party's, so the number of datagrams is limited.
struct HandshakeFlights {
    /// Maximum number of datagrams in one handshake: several times the need of an honest peer on a
    /// lossy path.
    static let limit = 100

    private var path: Path?
    private var isSplit = false
    private var count = 0

    /// Whether another datagram may be sent.
    var isOpen: Bool { count < Self.limit }

    /// Records a handshake datagram sent to `path`.
    mutating func note(_ path: Path) {
        count &+= 1
        if let known = self.path, known != path { isSplit = true }
        self.path = path
    }

    /// Returns whether a finished handshake proves that the peer is at `path`.
    func provesAddress(of path: Path) -> Bool { self.path == path && !isSplit }
}

/// Offset between a publisher's NTP clock and the local clock, shared by all of its streams.
///
/// With one offset for audio and video, subscribers synchronize them as the publisher did.
struct SenderClock: BitwiseCopyable {
    /// Local time minus the publisher's, in nanoseconds; the smallest seen, because that sample had
    /// the least delay.
    private var offset: Int64?
    private var lastNTP = NTPTime(rawValue: 0)

    /// Largest change, in nanoseconds, that is taken for a change of delay and not of the clock.
    private static let maximumStep: UInt64 = 2_000_000_000

    mutating func receive(_ ntp: NTPTime, at now: Instant) {
        guard ntp.rawValue != 0 else { return }
        let theirs = ntp.nanoseconds(since: NTPTime(rawValue: 0x8000_0000_0000_0000))
        let current = now.nanoseconds &- theirs
        guard let offset, (current &- offset).magnitude < Self.maximumStep else {
            self.offset = current
            return
        }
        self.offset = min(offset &+ 10_000, current)
    }

    /// Converts the publisher's NTP time to the local monotonic clock.
    func instant(of ntp: NTPTime) -> Instant? {
        guard let offset else { return nil }
        let theirs = ntp.nanoseconds(since: NTPTime(rawValue: 0x8000_0000_0000_0000))
        return Instant(nanoseconds: theirs &+ offset)
    }
}
