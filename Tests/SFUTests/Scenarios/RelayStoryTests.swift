import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Seeded random stories of rooms that span workers.
///
/// No packet index carries two packets, every packet is accounted for, and nothing leaves without a
/// right.
struct RelayStoryTests {
    @Test(arguments: 1...UInt64(Noise.count(120)))
    func `no packet index carries two packets on any worker`(seed: UInt64) throws {
        var story = try RelayRandomWalk(seed: seed)
        for _ in 0..<250 { story.step() }
        story.finish()
        #expect(story.ledgers.map(\.violations) == [0, 0, 0])
        #expect(story.ledgers.reduce(0) { $0 + $1.packets } > 200)
        #expect(story.leaks == 0)
        #expect(story.call.statistics().allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
        let relayed = story.call.statistics()
        let out = relayed.reduce(0) { $0 + $1.relayedOut }
        #expect(out == relayed.reduce(0) { $0 + $1.relayedIn })
    }
}

/// A publisher of two layers at worker 0 and one without layers at worker 1.
///
/// Each worker has a viewer with one slot that uses RTX and one that does not.
struct RelayRandomWalk {
    var call: RelayedCall
    let ledgers: [IndexLedger]
    /// Number of packets that left a worker while all gates were closed.
    private(set) var leaks = 0
    private var noise: SeededRandom
    private var generation: UInt32 = 1
    private var ssrcs: [UInt32] = [0x100, 0x200, 0x300]
    private var numbers: [UInt64] = [65_300, 100, 65_500]
    private var pictures: [UInt16] = [0, 0, 0]
    private var isOpen = true
    private var rids: [String?] = ["q", "h"]

    private static let home = PublicationID(index: 1, generation: 1)

    init(seed: UInt64) throws {
        noise = SeededRandom(seed: seed &* 0x9e37_79b9)
        call = try RelayedCall(workers: 3, seed: seed)
        call.workers[0].call.join(publications: [Media.video(1, rids: ["q", "h"])])
        call.workers[1].call.join(publications: [Media.video(2)])
        let plain = FormatMapping(
            format: MediaFormat(codec: .vp8),
            payloadType: 121,
            feedback: [.nack, .pictureLoss]
        )
        for worker in call.workers {
            worker.call.join(slots: [
                Media.slot(0, ssrc: 0xa100), Media.slot(1, ssrc: 0xa300, formats: [plain]),
            ])
            for peer in worker.call.peers.indices { worker.call.connect(peer) }
        }
        call.alignClocks()
        ledgers = call.keepLedgers()
        wire()
        call.wire(Media.video(2), from: 1, to: [0, 2])
        for index in 0..<3 { for slot in 0..<2 { bind(UInt32(slot), on: index) } }
    }

    mutating func step() {
        switch Int.random(in: 0..<40, using: &noise) {
        case 0: toggleGate()
        case 1, 2: bind(UInt32.random(in: 0...1, using: &noise), on: anyWorker)
        case 3: restartSource()
        case 4: makeMirrorsAnew()
        case 5: reshape()
        case 6, 7, 8: askAgain()
        case 9: call.busy = [Int.random(in: 0...2, using: &noise)]
        case 10, 11: call.busy = []
        case 12: if !call.busy.isEmpty { flood() }
        case 13: call.lag = Int64.random(in: 0...5, using: &noise)
        case 14: call.run(milliseconds: Int64.random(in: 100...900, using: &noise))
        default:
            for _ in 0..<6 { send(Int.random(in: 0...2, using: &noise)) }
            call.run(milliseconds: Int64.random(in: 0...20, using: &noise))
        }
    }

    /// Drains all rings.
    mutating func finish() {
        call.busy = []
        call.run(milliseconds: 10)
    }

    private var anyWorker: Int {
        mutating get { Int.random(in: 0...2, using: &noise) }
    }

    private var mirror: PublicationID { PublicationID(index: 50, generation: generation) }

    private func wire() {
        var configuration = Media.video(1, rids: rids)
        configuration.id = mirror
        let home = RelayTarget(worker: 0, publication: Self.home)
        for index in 1..<3 {
            let made = Mirror(configuration: configuration, home: home, open: isOpen)
            call.workers[index].call.apply(.mirror(made))
        }
        let targets = [1, 2].map { RelayTarget(worker: $0, publication: mirror) }
        call.workers[0].call.apply(.relay(Self.home, to: targets))
    }

    private mutating func bind(_ slot: UInt32, on worker: Int) {
        let other = PublicationID(index: 2, generation: 1)
        let isOther = Int.random(in: 0..<4, using: &noise) == 0
        let binding = Binding(
            publication: isOther
                ? worker == 1 ? other : RelayedCall.mirrorID(2)
                : worker == 0 ? Self.home : mirror,
            subscription: isOther ? 8 : 7,
            open: Int.random(in: 0..<6, using: &noise) > 0
        )
        let id = SlotID(index: slot, generation: 1)
        call.workers[worker].call.apply(.bind(id, binding))
    }

    private mutating func toggleGate() {
        isOpen = !isOpen || Int.random(in: 0..<3, using: &noise) > 0
        call.workers[0].call.apply(.gate(Self.home, open: isOpen))
        for index in 1..<3 { call.workers[index].call.apply(.gate(mirror, open: isOpen)) }
        guard !isOpen else { return }
        // After the fence nothing leaves, whatever the rings hold.
        let busy = call.busy
        call.busy = []
        for index in 0...1 { send(index) }
        call.exchange()
        call.busy = busy
        for index in 0..<3 {
            let publication = index == 0 ? Self.home.place : mirror.place
            leaks += call.workers[index].call.core.copiesPastFence(of: publication)
        }
    }

    /// Changes the SSRC, or makes the numbers jump.
    private mutating func restartSource() {
        let index = Int.random(in: 0...2, using: &noise)
        if Bool.random(using: &noise) {
            ssrcs[index] += 1
            numbers[index] = noise.next() & 0x7fff
        } else {
            numbers[index] += 10_000
        }
    }

    private mutating func makeMirrorsAnew() {
        for index in 1..<3 { call.workers[index].call.apply(.unmirror(mirror)) }
        generation += 1
        wire()
        for index in 1..<3 { for slot in 0..<2 { bind(UInt32(slot), on: index) } }
    }

    /// Applies another offer: the layers are swapped, at the home and at its mirrors.
    private mutating func reshape() {
        rids.swapAt(0, 1)
        let rids = rids
        call.workers[0].call.reconfigure(0) { $0.publications = [Media.video(1, rids: rids)] }
        if !isOpen { call.workers[0].call.apply(.gate(Self.home, open: false)) }
        wire()
    }

    private mutating func flood() {
        for _ in 0..<550 { send(0) }
    }

    private mutating func send(_ index: Int) {
        numbers[index] += Int.random(in: 0..<15, using: &noise) == 0 ? 2 : 1
        pictures[index] = (pictures[index] + 1) & 0x7fff
        let isPadding = Int.random(in: 0..<15, using: &noise) == 0
        let isKeyframe = Int.random(in: 0..<5, using: &noise) == 0
        var elements: [(UInt8, [UInt8])] = [(4, Array("1".utf8))]
        if index < 2 { elements.append((10, Array((index == 0 ? "q" : "h").utf8))) }
        let media = Media.vp8Payload(
            pictureID: pictures[index],
            isKeyframe: isKeyframe,
            size: 20 + Int(noise.next() % 40)
        )
        var packet = Media.packet(
            payloadType: 96,
            sequence: UInt16(truncatingIfNeeded: numbers[index]),
            timestamp: UInt32(pictures[index]) &* 3_000,
            ssrc: ssrcs[index],
            marker: true,
            elements: elements,
            payload: isPadding ? [0, 0, 0, 4] : media
        )
        if isPadding { packet[0] |= 0x20 }
        let worker = call.workers[index == 2 ? 1 : 0]
        worker.call.send(packet, from: 0, rollover: numbers[index] >> 16)
    }

    /// Lets a viewer request packets that it has and packets that it lacks.
    private mutating func askAgain() {
        let worker = anyWorker
        let peer = worker == 2 ? 0 : 1
        for ssrc in [0xa100, 0xa300] as [UInt32] {
            let received = call.workers[worker].call.peers[peer].received
            guard let last = received.last(where: { $0.ssrc == ssrc }) else { continue }
            for _ in 0..<6 {
                let back = UInt16.random(in: 0...60, using: &noise)
                call.workers[worker].call.nack(last.u16(2) &- back &+ 3, from: peer, ssrc: ssrc)
            }
        }
    }
}

extension Core {
    /// Counts copies of a publication's packets that left after its gate had closed.
    fileprivate func copiesPastFence(of publication: PublicationIndex) -> Int {
        var copies: UInt64 = 0
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            copies += forwarder.slots[slot].packets - forwarder.slotRecords[slot].retransmissions
            copies -= forwarder.slotRecords[slot].fencedPackets
        }
        return Int(copies)
    }
}
