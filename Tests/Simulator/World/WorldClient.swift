import Contract
import LoadPeer
import RTP
import SFU
import TestSupport
import WorkerInterface

/// One transport of a participant, with a link of its own in each direction.
///
/// It sends a microphone and a camera with one or two encodings, receives, requests lost packets,
/// and reports arrivals.
final class WorldClient {
    /// A publisher with one of its kinds of media.
    struct Source: Hashable {
        var publisher: UInt32
        var kind: MediaKind
    }

    let index: Int
    /// Number of its room.
    let room: UInt32
    /// Number of its participant.
    let seat: Int
    var offer: WorldOffer
    var peer: LoadPeer
    var worker: Int
    /// Source of its datagrams; it changes with the client's address.
    var path: Path
    var up: Link
    var down: Link
    /// Media SSRC of each RTX SSRC.
    var repaired: [UInt32: UInt32] = [:]
    /// ICE credentials of its checks and answers.
    var answer: WorldAnswer?
    var isAdversary = false
    /// Whether it neither sends nor answers.
    var isStill = false
    /// Whether it receives nothing, because its packets have a spoofed source.
    var isDeaf = false
    /// Recorded datagrams of its handshake.
    private(set) var flights: [[UInt8]] = []
    /// SSRC of the newest received packet; below, its number and its transport-wide number.
    private(set) var newestSource: UInt32 = 0
    private(set) var newestNumber: UInt16 = 0
    private(set) var newestTransportNumber: UInt16 = 0
    /// Time at which it began to connect.
    var begunAt: Instant?
    /// Whether it has left.
    var isGone = false
    /// Whether its end is unproven, so that media may still arrive for a while.
    var mayHear = false
    /// Milliseconds from one audio packet to the next; below, from frame to frame.
    var audioInterval: Int64 = 20
    var videoInterval: Int64 = 100
    var nextTick: Instant?
    /// Whether a packet is to be replayed.
    var replays = false
    private var audioDue = Instant(nanoseconds: 0)
    private var videoDue = Instant(nanoseconds: 0)
    private var talkDue = Instant(nanoseconds: 0)
    private var isTalking = false
    private var receptions: [UInt32: Reception] = [:]
    /// Time of the last frame or audio packet of each source.
    private(set) var lastSeen: [Source: Instant] = [:]
    /// Numbers of audio packets of each source since the recording of them began.
    private(set) var heard: [UInt32: Set<UInt32>]?
    /// Number of decoded frames.
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

    /// Returns the address of a client, which changes with each of its moves.
    static func path(of index: Int, move: Int = 0) -> Path {
        Path(
            remote: Address(
                ipv4: 0x0a00_0000 + UInt32(index),
                port: 10_000 + UInt16(truncatingIfNeeded: move)
            ),
            local: 0
        )
    }

    /// Performs what is due; returns the time of the next call.
    func tick(
        at now: Instant,
        using random: inout SeededRandom,
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
        using random: inout SeededRandom,
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

    /// Requests lost packets again.
    private func attend(at now: Instant, into sent: inout Batch) {
        for ssrc in receptions.keys.sorted() {
            guard var reception = receptions.removeValue(forKey: ssrc) else { continue }
            reception.expire(at: now) { note($0, at: now) }
            let asked = reception.takeAsked(at: now)
            if !asked.isEmpty {
                sendNACK(asked, of: ssrc, into: &sent)
            }
            if reception.takesPictureLoss(at: now) {
                let loss = PictureLossIndication(
                    sender: SSRC(rawValue: 1),
                    media: SSRC(rawValue: ssrc)
                )
                peer.sendRTCP(into: &sent) { loss.encode(into: &$0) }
            }
            receptions[ssrc] = reception
        }
    }

    /// Requests some packets again, whether they have arrived or not.
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

    /// Takes a decrypted packet; a retransmission stands for its original.
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
        // Probe padding shares the numbers of retransmissions, and repeats nothing.
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

    /// Begins to record the numbers of received audio.
    func beginHearing() { heard = [:] }

    /// Ends the recording.
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
            if let loss = try? PictureLossIndication(block) {
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

    /// Keeps an adversary's handshake datagrams, to be sent again.
    func keep(flight bytes: [UInt8]) {
        guard isAdversary, flights.count < Self.flightLimit, case .dtls = Datagram(bytes.span)
        else { return }
        flights.append(bytes)
    }

    private static let flightLimit = 16

    /// Forgets all received streams: a new association has new ones.
    func forgetStreams() { receptions = [:] }
}
