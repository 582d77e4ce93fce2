import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Random story of two publishers and two viewers, one without RTX.
struct IndexRandomWalk: ~Copyable {
    /// An incoming stream.
    struct Source {
        /// Index of its publisher.
        var publisher: Int
        var ssrc: UInt32
        var rid: String?
        var index: UInt64
        var picture: UInt16 = 0
        var timestamp: UInt32 = 0
        var lost: [[UInt8]] = []
        var held: [UInt8]?
        var isNew = true
        var isAudio = false
        /// Whether it is paused for the moment.
        var isQuiet = false
    }

    var call: Call
    let ledger: PacketLedger
    var noise: SeededRandom
    private let isLossy: Bool
    /// Payload bytes of a video packet.
    private let frameSize: ClosedRange<Int>
    var sources: [Source]
    private var rtxIndex: UInt64 = 1
    private var gates = [true, true]
    /// Present peer indexes of the publishers and, below, the viewers.
    var publishers = [0, 1]
    let viewers = [2, 3]
    var publications = [
        PublicationID(index: 1, generation: 1), PublicationID(index: 2, generation: 1),
    ]
    var microphone = PublicationID(index: 0, generation: 1)
    var slots = [SlotID(index: 0, generation: 1), SlotID(index: 1, generation: 1)]
    var ssrcs: [UInt32] = [0xa100, 0xa300]
    /// Counter for unique names.
    var names = 0

    init(
        seed: UInt64,
        isLossy: Bool,
        profile: SRTPProfile = .aeadAes128Gcm,
        engine: SRTPEngine = .best,
        frameSize: ClosedRange<Int> = 20...59,
        isSaved: Bool = false
    ) throws {
        noise = SeededRandom(seed: seed &* 0x9e37_79b9)
        self.isLossy = isLossy
        self.frameSize = frameSize
        // The ledger decrypts with the other engine.
        ledger = PacketLedger(engine: SRTPEngine.available.first { $0 != engine } ?? engine)
        call = try Call(seed: seed, profiles: [profile], engine: engine, isSaved: isSaved)
        let ledger = ledger
        call.inspects = { peer, datagram in ledger.note(datagram, to: peer) }
        call.join(publications: [Media.video(1, rids: ["q", "h"])])
        call.join(publications: [Media.video(2)])
        call.join(slots: [Media.slot(0, ssrc: 0xa100)])
        let plain = FormatMapping(
            format: MediaFormat(codec: .vp8),
            payloadType: 121,
            feedback: [.nack, .pictureLoss]
        )
        call.join(slots: [Media.slot(1, ssrc: 0xa300, formats: [plain])])
        for index in 0..<4 { call.connect(index) }
        let start = 65_400 + noise.next() % 100
        sources = [
            Source(publisher: 0, ssrc: 0x100, rid: "q", index: start),
            Source(publisher: 0, ssrc: 0x200, rid: "h", index: 30_000),
            Source(publisher: 1, ssrc: 0x300, rid: nil, index: start),
        ]
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 2)
    }

    mutating func step() {
        switch Int.random(in: 0..<40, using: &noise) {
        case 0: toggleGate()
        case 1: bind(slot: 0)
        case 2: bind(slot: 1)
        case 3: changeSource()
        case 4, 5, 6: askAgain()
        case 7: renegotiate()
        case 8: call.run(milliseconds: Int64.random(in: 100...700, using: &noise))
        case 9, 10: repair()
        default:
            for _ in 0..<6 { send(Int.random(in: sources.indices, using: &noise)) }
            call.run(milliseconds: Int64.random(in: 1...20, using: &noise))
        }
    }

    private mutating func toggleGate() {
        let index = Int.random(in: 0...1, using: &noise)
        gates[index] = !gates[index] || Int.random(in: 0..<3, using: &noise) > 0
        call.apply(.gate(publications[index], open: gates[index]))
    }

    mutating func bind(slot: Int) {
        let publication = [0, 0, 1, 1, nil].randomElement(using: &noise) ?? nil
        let binding = publication.map {
            Binding(publication: publications[$0], subscription: 7, open: true)
        }
        call.apply(.bind(slots[slot], binding))
    }

    /// Changes the SSRC, or makes the numbers jump, as after a restart of the encoder.
    private mutating func changeSource() {
        let index = Int.random(in: sources.indices, using: &noise)
        restart(index)
        if Bool.random(using: &noise) {
            rename(index)
        } else {
            sources[index].index += 10_000
        }
    }

    private mutating func restart(_ index: Int) {
        sources[index].lost = []
        sources[index].held = nil
        sources[index].isNew = true
    }

    /// Changes the SSRC: its roll-over counter starts at 0, and its numbers may be old ones.
    mutating func rename(_ index: Int) {
        restart(index)
        sources[index].ssrc += 1
        let back = UInt64.random(in: 0...40, using: &noise)
        let number = Bool.random(using: &noise) ? sources[index].index &- back : noise.next()
        sources[index].index = number & 0x7fff
    }

    /// Renumbers the extensions and payload types of the viewer without RTX.
    private mutating func renegotiate() {
        let payloadType = UInt8.random(in: 100...120, using: &noise)
        let id = UInt8.random(in: 1...14, using: &noise)
        call.reconfigure(3) { configuration in
            configuration.slots[0].formats[0].payloadType = payloadType
            configuration.slots[0].extensions[.mid] = id
        }
    }

    mutating func packet(of index: Int) -> [UInt8] {
        let isKeyframe = sources[index].isNew || Int.random(in: 0..<5, using: &noise) == 0
        sources[index].isNew = false
        sources[index].picture = (sources[index].picture + 1) & 0x7fff
        sources[index].timestamp &+= 3_000
        let source = sources[index]
        if source.isAudio { return audioPacket(of: source) }
        var elements: [(UInt8, [UInt8])] = [(4, Array("1".utf8))]
        if let rid = source.rid { elements.append((10, Array(rid.utf8))) }
        return Media.packet(
            payloadType: 96,
            sequence: UInt16(truncatingIfNeeded: source.index),
            timestamp: source.timestamp,
            ssrc: source.ssrc,
            marker: true,
            elements: elements,
            payload: Media.vp8Payload(
                pictureID: source.picture,
                tl0: UInt8(truncatingIfNeeded: source.picture),
                isKeyframe: isKeyframe,
                size: frameSize.lowerBound + Int(noise.next() % UInt64(frameSize.count))
            )
        )
    }

    private mutating func audioPacket(of source: Source) -> [UInt8] {
        Media.packet(
            payloadType: 111,
            sequence: UInt16(truncatingIfNeeded: source.index),
            timestamp: source.timestamp,
            ssrc: source.ssrc,
            elements: [(4, Array("0".utf8))],
            payload: noise.bytes(20 + Int(noise.next() % 40))
        )
    }

    /// Sends the next packet, or padding; in a lossy run some are lost or late.
    private mutating func send(_ index: Int) {
        if sources[index].isQuiet { return }
        let rollover = sources[index].index >> 16
        if !sources[index].isAudio, Int.random(in: 0..<15, using: &noise) == 0 {
            sendPadding(index, rollover: rollover)
            sources[index].index += 1
            return
        }
        let bytes = packet(of: index)
        let peer = publishers[sources[index].publisher]
        sources[index].index += 1
        if isLossy, Int.random(in: 0..<12, using: &noise) == 0 {
            if !sources[index].isAudio { sources[index].lost.append(bytes) }
            return
        }
        if isLossy, sources[index].held == nil, Int.random(in: 0..<12, using: &noise) == 0 {
            sources[index].held = bytes
            return
        }
        call.send(bytes, from: peer, rollover: rollover)
        if let held = sources[index].held, Bool.random(using: &noise) {
            let isBefore = held.u16(2) > bytes.u16(2)
            call.send(held, from: peer, rollover: isBefore ? rollover - 1 : rollover)
            sources[index].held = nil
        }
    }

    private mutating func sendPadding(_ index: Int, rollover: UInt64) {
        var padding = Media.packet(
            payloadType: 96,
            sequence: UInt16(truncatingIfNeeded: sources[index].index),
            timestamp: sources[index].timestamp,
            ssrc: sources[index].ssrc,
            elements: [(4, Array("1".utf8))],
            payload: [0, 0, 0, 4]
        )
        padding[0] |= 0x20
        if sources[index].isNew { return }
        call.send(padding, from: publishers[sources[index].publisher], rollover: rollover)
    }

    /// Retransmits a lost packet.
    private mutating func repair() {
        let index = Int.random(in: sources.indices, using: &noise)
        guard !sources[index].lost.isEmpty else { return }
        let original = sources[index].lost.removeFirst()
        let header = 12 + 4 + 4 * Int(original.u16(14))
        var rtx = original
        rtx[1] = original[1] & 0x80 | 97
        rtx.replaceSubrange(2..<4, with: UInt16(truncatingIfNeeded: rtxIndex).bytes)
        rtx.replaceSubrange(8..<12, with: (0x7000_0000 + UInt32(index)).bytes)
        // A retransmission stream has the names of its media stream; RRID repeats the RID.
        for place in 16..<header where rtx[place] >> 4 == 10 {
            rtx[place] = 11 << 4 | rtx[place] & 15
        }
        rtx.insert(contentsOf: original.u16(2).bytes, at: header)
        call.send(rtx, from: publishers[sources[index].publisher], rollover: rtxIndex >> 16)
        rtxIndex += 1
    }

    /// Lets a viewer request packets that it has and packets that it lacks.
    private mutating func askAgain() {
        for (peer, ssrc) in zip(viewers, ssrcs) {
            guard let last = call.peers[peer].received.last(where: { $0.ssrc == ssrc }) else {
                continue
            }
            for _ in 0..<6 {
                let back = UInt16.random(in: 0...60, using: &noise)
                call.nack(last.u16(2) &- back &+ 3, from: peer, ssrc: ssrc)
            }
        }
    }
}
