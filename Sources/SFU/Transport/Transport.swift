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
        var encoding: Int32
        var isRetransmission: Bool
    }

    let id: TransportID
    var configuration: TransportConfiguration
    var ice: ICEAgent
    var dtls: DTLSAssociation?
    var srtp: SRTPSession?
    var profile: SRTPProfile?
    var state = State.connecting
    /// Time of the last authenticated packet.
    var lastHeard: Instant
    /// Selected path for media, once ICE has one; senders read the copy in `Destination`.
    var path: Path?
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
    var publications = UncountedArray<Int32>()
    var slots = UncountedArray<Int32>()
    /// Header extension map of all m-lines: an id has one meaning on a bundled transport (RFC 8843
    /// §9).
    var extensions = ExtensionMap()
    /// SSRC of the sender of feedback, used when no slot's SSRC is available.
    let ssrc: SSRC
    let cname: [UInt8]

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
    /// Time since which the allocation exceeds the estimate.
    var exceededSince: Instant?
    var clock = SenderClock()

    var feedbackDue: Instant?
    var reportDue: Instant?
    var nackDue: Instant?
    var keyframeDue: Instant?
    var layersDue: Instant?
    var allocationDue: Instant?
    /// Deadline at which the silence of its publications may mark the end of speech.
    var speechDue: Instant?
    /// Earliest deadline that is in the timer queue.
    var scheduled: Instant?

    var rtcpBudget = RTCPBudget()
    var bytesIn: UInt64 = 0
    var packetsIn: UInt64 = 0
    var roundTripNanoseconds: Int64?

    init(_ id: TransportID, _ configuration: TransportConfiguration, ssrc: SSRC, at now: Instant) {
        self.id = id
        self.configuration = configuration
        self.ssrc = ssrc
        cname = Array(configuration.cname.utf8.prefix(64))
        ice = ICEAgent(configuration.ice)
        lastHeard = now
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
