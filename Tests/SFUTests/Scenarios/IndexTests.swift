import RTP
import Testing

@testable import SFU

/// No packet index carries two packets, whatever happens; and where nothing is lost on the way
/// to sfud, viewers see one continuous stream.
struct IndexTests {
    /// The lossy runs, and those in which the publishers' network is perfect.
    static let runs = (0..<UInt64(Noise.count(80))).flatMap { [($0 + 1, true), ($0 + 1, false)] }

    @Test(arguments: runs)
    func `no packet index carries two packets`(seed: UInt64, isLossy: Bool) throws {
        var story = try IndexStory(seed: seed, isLossy: isLossy)
        for _ in 0..<600 { story.step() }
        let ledger = story.ledger
        #expect(ledger.violations == 0)
        #expect(ledger.packets > 200)
        let undecryptable = (2..<4).map { story.call.peers[$0].undecryptable }
        // Repeats without RTX are bit-identical, and SRTP takes each once.
        #expect(undecryptable.reduce(0, +) == ledger.repeats)
        let isBalanced = story.call.statistics().isBalanced
        #expect(isBalanced)
        let destinationsAgree = story.call.destinationsAgree
        #expect(destinationsAgree)
        guard !isLossy else { return }
        try expectContinuity(story.call.peers[2].received, ssrc: 0xa100)
        try expectContinuity(story.call.peers[3].received, ssrc: 0xa300)
    }

    private func expectContinuity(_ packets: [[UInt8]], ssrc: UInt32) throws {
        let media = packets.filter { $0.ssrc == ssrc }
        #expect(media.map { $0.u16(2) }.isContiguous)
        let times = media.map { $0.u32(4) }
        #expect(zip(times, times.dropFirst()).allSatisfy { Int32(bitPattern: $1 &- $0) > 0 })
        let pictures = try media.map { bytes in
            let packet = try Packet(bytes.span)
            return try #require(VP8Descriptor(packet.payload)?.pictureID)
        }
        let steps = zip(pictures, pictures.dropFirst()).map { ($1 &- $0) & 0x7fff }
        #expect(steps.allSatisfy { $0 == 1 })
    }
}

/// Two publishers and two viewers, one without RTX, and all that may happen to them.
struct IndexStory: ~Copyable {
    /// One incoming stream.
    struct Source {
        var peer: Int
        var ssrc: UInt32
        var rid: String?
        var index: UInt64
        var picture: UInt16 = 0
        var timestamp: UInt32 = 0
        var lost: [[UInt8]] = []
        var held: [UInt8]?
        var isNew = true
    }

    var call: Call
    let ledger = IndexLedger()
    private var noise: Noise
    private let isLossy: Bool
    private var sources: [Source]
    private var rtxIndex: UInt64 = 1
    private var gates = [true, true]

    init(seed: UInt64, isLossy: Bool) throws {
        noise = Noise(seed: seed &* 0x9e37_79b9)
        self.isLossy = isLossy
        call = try Call(seed: seed)
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
            Source(peer: 0, ssrc: 0x100, rid: "q", index: start),
            Source(peer: 0, ssrc: 0x200, rid: "h", index: 30_000),
            Source(peer: 1, ssrc: 0x300, rid: nil, index: start),
        ]
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 2)
        let ledger = ledger
        call.loses = { toCore, datagram in
            if !toCore { ledger.note(datagram) }
            return false
        }
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
        let id = PublicationID(index: 1 + UInt32(index), generation: 1)
        call.apply(.gate(id, open: gates[index]))
    }

    private mutating func bind(slot: UInt32) {
        call.bind(slot: slot, publication: [1, 1, 2, 2, nil].randomElement(using: &noise) ?? nil)
    }

    /// Another SSRC, or a jump of the numbers, as after a restart of the encoder.
    private mutating func changeSource() {
        let index = Int.random(in: sources.indices, using: &noise)
        sources[index].lost = []
        sources[index].held = nil
        sources[index].isNew = true
        if Bool.random(using: &noise) {
            sources[index].ssrc += 1
            sources[index].index = noise.next() & 0x7fff
        } else {
            sources[index].index += 10_000
        }
    }

    /// The viewer without RTX numbers its extensions and payload types anew.
    private mutating func renegotiate() {
        let payloadType = UInt8.random(in: 100...120, using: &noise)
        let id = UInt8.random(in: 1...14, using: &noise)
        call.reconfigure(3) { configuration in
            configuration.slots[0].formats[0].payloadType = payloadType
            configuration.slots[0].extensions[.mid] = id
        }
    }

    private mutating func packet(of index: Int) -> [UInt8] {
        let isKeyframe = sources[index].isNew || Int.random(in: 0..<5, using: &noise) == 0
        sources[index].isNew = false
        sources[index].picture = (sources[index].picture + 1) & 0x7fff
        sources[index].timestamp &+= 3_000
        let source = sources[index]
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
                size: 20 + Int(noise.next() % 40)
            )
        )
    }

    /// Sends the next packet, or padding; in a lossy run some are lost or come late.
    private mutating func send(_ index: Int) {
        let rollover = sources[index].index >> 16
        if Int.random(in: 0..<15, using: &noise) == 0 {
            sendPadding(index, rollover: rollover)
            sources[index].index += 1
            return
        }
        let bytes = packet(of: index)
        let peer = sources[index].peer
        sources[index].index += 1
        if isLossy, Int.random(in: 0..<12, using: &noise) == 0 {
            sources[index].lost.append(bytes)
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
        call.send(padding, from: sources[index].peer, rollover: rollover)
    }

    /// What was lost comes as a retransmission.
    private mutating func repair() {
        let index = Int.random(in: sources.indices, using: &noise)
        guard !sources[index].lost.isEmpty else { return }
        let original = sources[index].lost.removeFirst()
        let header = 12 + 4 + 4 * Int(original.u16(14))
        var rtx = original
        rtx[1] = original[1] & 0x80 | 97
        rtx.replaceSubrange(2..<4, with: UInt16(truncatingIfNeeded: rtxIndex).bytes)
        rtx.replaceSubrange(8..<12, with: (0x7000_0000 + UInt32(index)).bytes)
        // The repaired stream is named as its media is; one RID's name is the repaired one's too.
        for place in 16..<header where rtx[place] >> 4 == 10 {
            rtx[place] = 11 << 4 | rtx[place] & 15
        }
        rtx.insert(contentsOf: original.u16(2).bytes, at: header)
        call.send(rtx, from: sources[index].peer, rollover: rtxIndex >> 16)
        rtxIndex += 1
    }

    /// A viewer asks for what it has and for what it has not.
    private mutating func askAgain() {
        for (peer, ssrc) in [(2, 0xa100), (3, 0xa300)] as [(Int, UInt32)] {
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
