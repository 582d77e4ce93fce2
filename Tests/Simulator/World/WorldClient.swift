import Contract
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// One transport of a participant, with a link of its own each way: it sends a microphone and a
/// camera of one or two sizes, watches, asks again for what is lost, and tells of arrivals.
final class WorldClient {
    /// A pair of who publishes and what.
    struct Source: Hashable {
        var publisher: UInt32
        var kind: MediaKind
    }

    let index: Int
    /// The number of its room.
    let room: UInt32
    /// Whom it belongs to.
    let seat: Int
    var offer: WorldOffer
    var peer: LoadPeer
    var worker: Int
    /// Where its datagrams come from; another after its address has changed.
    var path: Path
    var up: Link
    var down: Link
    /// Of each stream of retransmissions, the stream that it repeats.
    var repaired: [UInt32: UInt32] = [:]
    /// Credentials of the checks that it answers and sends.
    var answer: WorldAnswer?
    var isAdversary = false
    /// It neither sends nor answers.
    var isStill = false
    /// Nothing comes to it: it is not where its packets seem to come from.
    var isDeaf = false
    /// Datagrams of its handshake, where they are kept.
    private(set) var flights: [[UInt8]] = []
    /// The newest packet received: its SSRC, its number, and its transport-wide number.
    private(set) var newestSource: UInt32 = 0
    private(set) var newestNumber: UInt16 = 0
    private(set) var newestTransportNumber: UInt16 = 0
    /// When it began to connect.
    var begunAt: Instant?
    /// Nobody is there any more.
    var isGone = false
    /// Its end was not proved: media may come for a while.
    var mayHear = false
    /// Milliseconds from one packet of audio to the next, and from frame to frame.
    var audioInterval: Int64 = 20
    var videoInterval: Int64 = 100
    var nextTick: Instant?
    /// A packet of it is to come through a second time.
    var replays = false
    private var audioDue = Instant(nanoseconds: 0)
    private var videoDue = Instant(nanoseconds: 0)
    private var talkDue = Instant(nanoseconds: 0)
    private var isTalking = false
    private var receptions: [UInt32: Reception] = [:]
    /// When it last saw a frame, or heard a packet, of whom.
    private(set) var lastSeen: [Source: Instant] = [:]
    /// Numbers of sound that came from each source since it was asked to keep them.
    private(set) var heard: [UInt32: Set<UInt32>]?
    /// Frames that it could decode.
    private(set) var frames = 0
    private var arrivals: [(number: UInt16, time: Instant)] = []
    private var feedbackDue: Instant?
    private var feedbackCount: UInt8 = 0

    private static let feedbackMilliseconds: Int64 = 100
    private static let attentionMilliseconds: Int64 = 40

    init(
        index: Int,
        room: UInt32,
        seat: Int,
        offer: WorldOffer,
        peer: consuming LoadPeer,
        links: (up: Link, down: Link)
    ) {
        self.index = index
        self.room = room
        self.seat = seat
        self.offer = offer
        self.path = peer.path
        self.peer = peer
        self.up = links.up
        self.down = links.down
        worker = 0
    }

    var isConnected: Bool { peer.isConnected }

    /// The address of a client, which changes with each of its moves.
    static func path(of index: Int, move: Int = 0) -> Path {
        Path(
            remote: Address(
                ipv4: 0x0a00_0000 + UInt32(index),
                port: 10_000 + UInt16(truncatingIfNeeded: move)
            ),
            local: 0
        )
    }

    /// Does what is due; returns when it wants to be asked again.
    func tick(
        at now: Instant,
        using random: inout SimulatedRandom,
        into sent: inout Batch
    ) -> Instant {
        var next = now.advanced(milliseconds: 2_500)
        if let due = peer.deadline {
            if due <= now { peer.expire(at: now, into: &sent) }
            next = min(next, peer.deadline ?? next)
        }
        guard isConnected else { return max(next, now.advanced(milliseconds: 1)) }
        if !offer.layers.isEmpty {
            publish(at: now, using: &random, into: &sent)
            next = min(next, audioDue, videoDue)
        }
        attend(at: now, into: &sent)
        if receptions.values.contains(where: \.needsAttention) {
            next = min(next, now.advanced(milliseconds: Self.attentionMilliseconds))
        }
        if let feedbackDue {
            if feedbackDue <= now { tellArrivals(at: now, into: &sent) }
            next = min(next, self.feedbackDue ?? next)
        }
        return max(next, now.advanced(milliseconds: 1))
    }

    private func publish(
        at now: Instant,
        using random: inout SimulatedRandom,
        into sent: inout Batch
    ) {
        let isAudioDue = audioDue <= now
        let isVideoDue = videoDue <= now
        if isAudioDue { audioDue = now.advanced(milliseconds: audioInterval) }
        if isVideoDue { videoDue = now.advanced(milliseconds: videoInterval) }
        if talkDue <= now {
            isTalking.toggle()
            talkDue = now.advanced(milliseconds: random.pick(500...6_000))
        }
        for place in offer.layers.indices {
            let isDue = offer.layers[place].kind == .audio ? isAudioDue : isVideoDue
            guard isDue else { continue }
            if replays, let packet = offer.layers[place].replay() {
                replays = false
                peer.sendRTP(packet.bytes.span, index: packet.index, into: &sent)
            }
            let packets = offer.layers[place].nextFrame(
                room: room,
                publisher: UInt32(index),
                size: Int(random.pick(10...60)),
                isTalking: isTalking,
                at: now
            )
            for packet in packets {
                peer.sendRTP(packet.bytes.span, index: packet.index, into: &sent)
            }
        }
    }

    /// Asks again for what is lost.
    private func attend(at now: Instant, into sent: inout Batch) {
        for ssrc in receptions.keys.sorted() {
            guard var reception = receptions.removeValue(forKey: ssrc) else { continue }
            reception.expire(at: now) { note($0, at: now) }
            let asked = reception.takeAsked(at: now)
            if !asked.isEmpty {
                sendNACK(asked, of: ssrc, into: &sent)
            }
            if reception.takesPictureLoss(at: now) {
                let loss = PictureLoss(sender: SSRC(rawValue: 1), media: SSRC(rawValue: ssrc))
                peer.sendRTCP(into: &sent) { loss.encode(into: &$0) }
            }
            receptions[ssrc] = reception
        }
    }

    /// Asks for some packets again, whether they have come or not.
    func sendNACK(_ numbers: [UInt16], of ssrc: UInt32, into sent: inout Batch) {
        let lost = numbers.map { SequenceNumber(rawValue: $0) }
        peer.sendRTCP(into: &sent) { output in
            GenericNACK.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: ssrc),
                lost: lost.span,
                into: &output
            )
        }
    }

    private func tellArrivals(at now: Instant, into sent: inout Batch) {
        feedbackDue = nil
        guard let first = arrivals.first?.number else { return }
        let base = arrivals.reduce(first) {
            Int16(bitPattern: $1.number &- $0) < 0 ? $1.number : $0
        }
        let count = arrivals.reduce(0) { max($0, Int($1.number &- base)) } + 1
        guard count < 4_000 else { return arrivals = [] }
        var times = [Int64](repeating: -1, count: count)
        for arrival in arrivals { times[Int(arrival.number &- base)] = arrival.time.nanoseconds }
        arrivals = []
        feedbackCount &+= 1
        let number = feedbackCount
        peer.sendRTCP(into: &sent) { output in
            _ = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: number,
                base: SequenceNumber(rawValue: base),
                arrivals: times.span,
                into: &output
            )
        }
    }

    /// Takes a packet in clear; one of retransmissions stands for what it repeats.
    func take(clear bytes: [UInt8], at now: Instant) {
        guard let packet = try? Packet(bytes.span) else { return }
        note(arrivalOf: packet, at: now)
        var ssrc = packet.ssrc.rawValue
        var number = packet.sequenceNumber.rawValue
        let isRepeated = packet.payloadType.rawValue == SimulatedTrack.rtxPayloadType
        if isRepeated {
            guard let media = repaired[ssrc], packet.payload.count >= 2 else { return }
            ssrc = media
            number = packet.payload.u16(at: 0)
        }
        let mark = MediaMark(packet.payload)
        if let mark, mark.kind == .audio { return note(mark, at: now) }
        guard packet.payloadType.rawValue != SimulatedTrack.audioPayloadType else { return }
        // Padding that probes has the numbers of retransmissions, and repeats nothing.
        guard mark != nil || !isRepeated else { return }
        var reception = receptions.removeValue(forKey: ssrc) ?? Reception(ssrc: ssrc)
        reception.take(number, mark, at: now) { note($0, at: now) }
        receptions[ssrc] = reception
    }

    private func note(_ mark: MediaMark, at now: Instant) {
        lastSeen[Source(publisher: mark.publisher, kind: mark.kind)] = now
        if mark.kind == .video { frames += 1 }
        if mark.kind == .audio { heard?[mark.publisher, default: []].insert(mark.number) }
    }

    /// Begins to keep the numbers of the sound that comes.
    func beginHearing() { heard = [:] }

    /// Ends that.
    ///
    /// - Returns: The numbers, by client.
    func endHearing() -> [UInt32: Set<UInt32>] {
        defer { heard = nil }
        return heard ?? [:]
    }

    private func note(arrivalOf packet: borrowing Packet, at now: Instant) {
        newestSource = packet.ssrc.rawValue
        newestNumber = packet.sequenceNumber.rawValue
        guard offer.tellsArrivals else { return }
        var elements = packet.extensions
        while let element = elements.next() {
            guard element.id == SentLayer.transportNumberID, element.length == 2 else { continue }
            newestTransportNumber = packet.bytes.u16(at: element.offset)
            arrivals.append((newestTransportNumber, now))
            if feedbackDue == nil {
                feedbackDue = now.advanced(milliseconds: Self.feedbackMilliseconds)
            }
        }
    }

    /// Takes a report or request of the SFU: sends keyframes and lost packets.
    func take(report: [UInt8], into sent: inout Batch) {
        var blocks = RTCPBlocks(report.span)
        while let block = blocks.next() {
            if let loss = try? PictureLoss(block) {
                for place in offer.layers.indices
                where offer.layers[place].ssrc == loss.media.rawValue {
                    offer.layers[place].wantsKeyframe = true
                }
            } else if let nack = try? GenericNACK(block) {
                for place in offer.layers.indices
                where offer.layers[place].ssrc == nack.media.rawValue {
                    resend(nack, from: place, into: &sent)
                }
            }
        }
    }

    private func resend(_ nack: borrowing GenericNACK, from place: Int, into sent: inout Batch) {
        for pair in 0..<nack.count {
            let (first, mask) = nack[pair]
            for bit in 0...16 where bit == 0 || mask >> (bit - 1) & 1 == 1 {
                guard sent.free > 0,
                    let packet = offer.layers[place].resend(first.rawValue &+ UInt16(bit))
                else { continue }
                peer.sendRTP(packet.bytes.span, index: packet.index, into: &sent)
            }
        }
    }

    /// Keeps what an adversary's handshake sends, to be sent again.
    func keep(flight bytes: [UInt8]) {
        guard isAdversary, flights.count < Self.flightLimit, case .dtls = Datagram(bytes.span)
        else { return }
        flights.append(bytes)
    }

    private static let flightLimit = 16

    /// Forgets what it was sent: a new association has new streams.
    func forgetStreams() { receptions = [:] }
}
