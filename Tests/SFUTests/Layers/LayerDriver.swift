import LoadPeer
import RTP
import TestSupport

@testable import SFU
@testable import WorkerInterface

/// Drives a publisher with layers, a bad network before the core, and viewers whose target layers
/// change.
struct LayerDriver: ~Copyable {
    /// Quality of the publisher's network.
    enum Network: String, CaseIterable, Sendable { case clean, disordered, lossy }

    static let viewers = 3

    let coding: Coding
    let network: Network
    var call: Call
    var models: [DecoderModel]
    private(set) var switches = 0
    private var noise: SeededRandom
    private var streams: [SyntheticStream] = []
    private var frames: UInt32 = 0
    private var wanted: Set<UInt32> = []
    /// Packets that the network delays, and by how many pictures.
    private var held: [(bytes: [UInt8], rollover: UInt64, delay: Int)] = []
    /// Lost packets that may be retransmitted.
    private var losses: [(bytes: [UInt8], origin: Origin, delay: Int)] = []
    private var rtxIndex: UInt64 = 1
    private var picture = 0

    init(_ coding: Coding, _ network: Network, seed: UInt64) throws {
        self.coding = coding
        self.network = network
        noise = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 | 1)
        call = try Call(seed: seed)
        models = Array(repeating: DecoderModel(coding), count: Self.viewers)
        for encoding in coding.rids.indices {
            streams.append(SyntheticStream(coding, encoding: encoding, noise: &noise))
        }
        join()
    }

    private mutating func join() {
        let format = FormatMapping(
            format: MediaFormat(codec: coding.codec),
            payloadType: 96,
            rtxPayloadType: 97,
            feedback: [.nack, .pictureLoss]
        )
        var publication = Media.video(1, rids: coding.rids)
        publication.formats = [format]
        publication.extensions[.dependencyDescriptor] = 12
        call.join(publications: [publication])
        var slots: [SlotConfiguration] = []
        for index in 0..<Self.viewers {
            var slot = Media.slot(
                UInt32(index),
                ssrc: 0xa000 + UInt32(index) * 0x10,
                formats: [format]
            )
            slot.extensions[.dependencyDescriptor] = 13
            slots.append(slot)
        }
        call.join(slots: slots)
        call.connect(0)
        call.connect(1)
        for index in 0..<Self.viewers { call.bind(slot: UInt32(index), publication: 1) }
    }

    /// Sends one picture of each encoding, and runs what falls due in its time.
    mutating func step(aims: Bool = true) {
        takeRequests()
        var packets: [(bytes: [UInt8], rollover: UInt64)] = []
        for index in streams.indices {
            let isKeyframe = wanted.remove(streams[index].ssrc) != nil || noise.next() % 100 == 0
            let picture = streams[index].picture(
                isKeyframe: isKeyframe,
                frames: &frames,
                noise: &noise
            )
            for (bytes, origin) in picture { pass(bytes, origin, into: &packets) }
        }
        send(packets)
        picture += 1
        if aims { retarget() }
        tick(milliseconds: 33)
        if network != .clean, picture % 4 == 0 { askAgain() }
        takeReceived()
    }

    /// Sends a picture that the caller made.
    mutating func step(picture packets: [(bytes: [UInt8], origin: Origin)]) {
        var passed: [(bytes: [UInt8], rollover: UInt64)] = []
        for (bytes, origin) in packets { pass(bytes, origin, into: &passed) }
        send(passed)
        retarget()
        tick(milliseconds: 33)
        picture += 1
        if network != .clean, picture % 4 == 0 { askAgain() }
        takeReceived()
    }

    /// Delivers all that the network still holds, and finishes.
    mutating func finishCapture() {
        for index in held.indices { held[index].delay = 0 }
        for index in losses.indices { losses[index].delay = 0 }
        send([])
        for _ in 0..<4 {
            askAgain()
            takeReceived()
        }
        for index in models.indices { models[index].finish() }
    }

    /// Drains the network, and answers all outstanding retransmission requests.
    mutating func finish() {
        for _ in 0..<40 { step(aims: false) }
        // This includes the last picture.
        for index in held.indices { held[index].delay = 0 }
        send([])
        for _ in 0..<4 { askAgain() }
        takeReceived()
        for index in models.indices { models[index].finish() }
    }

    private mutating func send(_ packets: [(bytes: [UInt8], rollover: UInt64)]) {
        var packets = packets
        for index in held.indices { held[index].delay -= 1 }
        for late in held where late.delay <= 0 { packets.append((late.bytes, late.rollover)) }
        held.removeAll { $0.delay <= 0 }
        if !packets.isEmpty { call.send(packets, from: 0) }
        repair()
    }

    private mutating func pass(
        _ bytes: [UInt8],
        _ origin: Origin,
        into packets: inout [(bytes: [UInt8], rollover: UInt64)]
    ) {
        let rollover = UInt64(origin.number >> 16)
        guard network != .clean else { return packets.append((bytes, rollover)) }
        switch noise.next() % 40 {
        case 0: held.append((bytes, rollover, Int(noise.next() % 3)))
        case 1 where !packets.isEmpty: packets.insert((bytes, rollover), at: packets.count - 1)
        case 2:
            packets.append((bytes, rollover))
            packets.append((bytes, rollover))
        case 3 where network == .lossy:
            losses.append((bytes, origin, 1 + Int(noise.next() % 4)))
        default: packets.append((bytes, rollover))
        }
    }

    /// Retransmits some of the lost packets; the rest stay lost.
    private mutating func repair() {
        for index in losses.indices { losses[index].delay -= 1 }
        for loss in losses where loss.delay <= 0 {
            if noise.next() % 4 == 0 {
                let name = UInt64(loss.origin.encoding) << 32 | UInt64(loss.origin.number)
                for index in models.indices { models[index].lost.insert(name) }
            } else {
                call.send(retransmission(of: loss.bytes), from: 0, rollover: rtxIndex >> 16)
                rtxIndex += 1
            }
        }
        losses.removeAll { $0.delay <= 0 }
    }

    private func retransmission(of original: [UInt8]) -> [UInt8] {
        let header = 16 + 4 * Int(original.u16(14))
        var rtx = original
        rtx[1] = original[1] & 0x80 | 97
        rtx.replaceSubrange(2..<4, with: UInt16(truncatingIfNeeded: rtxIndex).bytes)
        rtx.replaceSubrange(8..<12, with: (0x7000_0000 + original.u32(8)).bytes)
        var place = 16
        while place + 1 < header, rtx[place] != 0 {
            if rtx[place] == 10 { rtx[place] = 11 }
            place += 2 + Int(rtx[place + 1])
        }
        rtx.insert(contentsOf: original.u16(2).bytes, at: header)
        return rtx
    }

    private mutating func retarget() {
        for slot in 0..<Self.viewers where noise.next() % 3 == 0 {
            let count = call.core.receiver.publications[1].options.count
            guard count > 0 else { continue }
            let option = Int(noise.next() % UInt64(count))
            let slot = SlotIndex(slot)
            var target: LayerTarget? = call.core.receiver.publications[1].options[option].target
            if noise.next() % 50 == 0 { target = nil }
            let before = call.core.forwarder.slotRecords[slot].target
            let bridge = UInt8(truncatingIfNeeded: switches % 4)
            call.core.retarget(slot, at: target, at: call.now, bridge: bridge)
            if target != before { switches += 1 }
        }
    }

    /// Points all viewers at the highest or the lowest layer.
    mutating func retarget(atHighest: Bool) {
        for slot in 0..<Self.viewers {
            let count = call.core.receiver.publications[1].options.count
            let option = call.core.receiver.publications[1].options[atHighest ? count - 1 : 0]
            call.core.retarget(SlotIndex(slot), at: option.target, at: call.now)
        }
    }

    /// Lets a new viewer take over a slot; returns whether it has a picture at once.
    ///
    /// The one before stops watching; its model is returned.
    mutating func replaceViewer(of slot: Int) -> (hasPicture: Bool, former: DecoderModel) {
        call.bind(slot: UInt32(slot), publication: nil)
        takeReceived()
        let former = models[slot]
        models[slot] = DecoderModel(coding)
        models[slot].lost = former.lost
        models[slot].mayBeCondensed = true
        call.bind(slot: UInt32(slot), publication: 1)
        takeReceived()
        return (models[slot].arrivals > 0, former)
    }

    private mutating func tick(milliseconds: Int64) {
        call.now = call.now.advanced(milliseconds: milliseconds)
        while call.core.expire(at: call.now, into: &call.output) {}
        call.settle()
        for index in call.peers.indices {
            guard let due = call.peers[index].peer.deadline, due <= call.now else { continue }
            var sent = Batch(capacity: 16)
            call.peers[index].peer.expire(at: call.now, into: &sent)
            call.deliver(&sent, from: index)
        }
    }

    private mutating func takeRequests() {
        wanted.formUnion(call.peers[0].takeKeyframeRequests())
        call.peers[1].reports.removeAll(keepingCapacity: true)
    }

    private mutating func askAgain() {
        for index in models.indices {
            for number in models[index].missing.suffix(40) {
                call.nack(number, from: 1, ssrc: 0xa000 + UInt32(index) * 0x10)
            }
        }
    }

    private mutating func takeReceived() {
        for bytes in call.peers[1].received {
            let ssrc = bytes.u32(8) &- 0xa000
            models[Int(ssrc >> 4)].receive(bytes, isRetransmission: ssrc & 1 == 1)
        }
        call.peers[1].received.removeAll(keepingCapacity: true)
    }
}
