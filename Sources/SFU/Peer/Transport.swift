import RTP
import WorkerInterface

/// One participant's ICE and DTLS association: its path, its keys, its m-lines.
struct Transport: ~Copyable {
    /// How far it has come, and whether its peer is heard of.
    enum State: BitwiseCopyable {
        case connecting
        case connected
        /// Silent for the first limit.
        case reconnecting
        /// Over; kept until the control plane closes it.
        case ended
    }

    /// Which stream an incoming SSRC is.
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
    /// When anything authenticated last came.
    var lastHeard: Instant
    /// Where media goes, once ICE has nominated it; `Destination` has it for those who send.
    var path: Path?
    /// Whether the peer has proven to be there.
    var consent = PathConsent()
    /// The destinations of our handshake's flights.
    var flights = HandshakeFlights()

    var streams = List<Stream>(capacity: 8)
    /// SSRCs without an m-line whose roll-over counter and replay window are kept all the same:
    /// packets that were accepted once must not come back as a new stream (RFC 3711 §3.3.2).
    private(set) var strays = List<SSRC>(capacity: 4)
    private var oldestStray = 0
    /// SSRCs that were new in this second, and the second.
    private var newcomers = 0
    private var newcomersSecond: Int64 = .min
    static let strayLimit = 64
    var former = FormerStreams()
    var publications = List<Int32>()
    var slots = List<Int32>()
    /// Of all m-lines together: an id means one thing on a bundled transport (RFC 8843 §9).
    var extensions = ExtensionMap()
    /// Feedback comes from this SSRC where no slot is at hand.
    let ssrc: SSRC
    let cname: [UInt8]

    var arrivals: ArrivalLog?
    /// Whether this publisher hears transport-wide feedback, or else REMB.
    var sendsTransportFeedback = false
    var sendsREMB = false
    var estimate = ReceiverRate()
    /// What its path carries downwards, where it agreed to report on that.
    var bandwidth: PathBandwidth?
    /// The estimate by which its slots were last shared out, in bits a second.
    var allocatedEstimate: Int?
    /// When that was.
    var allocatedAt: Instant?
    /// What was given to them then, with all that is not bargained about, in bits a second.
    var allocated = 0
    /// Since when it has more than the estimate allows.
    var exceededSince: Instant?
    var clock = SenderClock()

    var feedbackDue: Instant?
    var reportDue: Instant?
    var nackDue: Instant?
    var keyframeDue: Instant?
    var layersDue: Instant?
    var allocationDue: Instant?
    /// When silence of its publications may mean that somebody's speech has ended.
    var speechDue: Instant?
    /// The earliest deadline that the queue knows of.
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

    /// Whether media may not go out for want of proof that the peer is where it would go.
    var lacksConsent: Bool {
        guard srtp != nil, let path, !path.isConnection else { return false }
        return consent.path != path
    }

    /// Whether media may go out: keys agreed, the peer proven to be at its address, not over.
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

    /// Checks and decrypts; a transport without keys accepts nothing.
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

    /// The short way to the key with which RTP goes out, where the engine has one.
    var outgoingKey: OutgoingKey? { mutating get { srtp?.outgoingKey } }

    /// Begins to encrypt one packet whose new part lies in `output` already; it is final after
    /// `SRTPContext.finish()`.
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

    /// The stream of an SSRC that was seen or declared before.
    func stream(of ssrc: SSRC) -> Stream? {
        for index in 0..<streams.count where streams[index].ssrc == ssrc {
            return streams[index]
        }
        return nil
    }

    /// Whether a packet of this SSRC may be decrypted: of those never seen so many a second.
    ///
    /// Only what was genuine has been counted, so that nobody without the keys can use them up.
    func admits(_ ssrc: SSRC, limit: Int, at now: Instant) -> Bool {
        guard newcomers >= limit, newcomersSecond == now.nanoseconds / 1_000_000_000 else {
            return true
        }
        return stream(of: ssrc) != nil || strays.contains(ssrc)
    }

    /// Counts an authenticated packet of an SSRC without a stream, where it is new.
    mutating func noteNewcomer(_ ssrc: SSRC, at now: Instant) {
        guard !strays.contains(ssrc) else { return }
        let second = now.nanoseconds / 1_000_000_000
        if second != newcomersSecond {
            newcomersSecond = second
            newcomers = 0
        }
        newcomers &+= 1
    }

    /// Keeps the SRTP state of an SSRC that no m-line claims, until too many others have come.
    mutating func noteStray(_ ssrc: SSRC) {
        guard stream(of: ssrc) == nil, !strays.contains(ssrc) else { return }
        guard strays.count >= Self.strayLimit else { return strays.append(ssrc) }
        srtp?.removeIncoming(strays[oldestStray])
        strays[oldestStray] = ssrc
        oldestStray = (oldestStray + 1) % Self.strayLimit
    }

    /// Takes a stream in.
    mutating func bind(_ stream: Stream) {
        strays.remove(stream.ssrc)
        streams.append(stream)
    }

    /// Takes the stream at `index` out.
    mutating func removeStream(at index: Int) {
        let ssrc = streams[index].ssrc
        streams.remove(swappingAt: index)
        noteStray(ssrc)
    }

    /// Retransmission requests are repeated after about a round trip.
    var nackRetryMilliseconds: Int64 {
        min(500, max(30, (roundTripNanoseconds ?? 100_000_000) / 1_000_000 + 10))
    }
}
