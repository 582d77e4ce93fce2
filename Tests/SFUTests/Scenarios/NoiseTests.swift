import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Noise of every kind beside a call: nothing traps, nothing grows, the call is unharmed.
struct NoiseTests {
    static let total = Noise.count(1_000_000)

    /// Makes a call of peers 0 and 1; peer 2 makes the noise, peer 3 watches it.
    static func hostileCall() throws -> Call {
        var call = try ForwardingTests.call()
        call.join(
            publications: Self.hostilePublications,
            slots: [Media.slot(10, ssrc: 0xd000), Media.slot(11, kind: .audio, ssrc: 0xd100)]
        )
        call.join(slots: Self.hostileSlots)
        call.connect(2)
        call.connect(3)
        for (index, publication) in hostilePublications.enumerated() {
            call.bind(slot: 20 + UInt32(index), publication: publication.id.index)
        }
        call.bind(slot: 10, publication: 1)
        call.bind(slot: 11, publication: 0)
        return call
    }

    /// Each codec once: payload types from 96 on, two apart, RTX one above.
    static let formats = Codec.allCases.filter { $0 != .opus }.enumerated().map { index, codec in
        FormatMapping(
            format: MediaFormat(codec: codec),
            payloadType: 96 + 2 * UInt8(index),
            rtxPayloadType: codec.kind == .video ? 97 + 2 * UInt8(index) : nil,
            feedback: [.nack, .pictureLoss, .transportWide]
        )
    }

    static var hostilePublications: [PublicationConfiguration] {
        var extensions = Media.extensions
        extensions[.dependencyDescriptor] = 12
        extensions[.videoOrientation] = 13
        extensions[.playoutDelay] = 14
        extensions[.absoluteCaptureTime] = 9
        return (0..<3).map { index in
            let kind: MediaKind = index == 0 ? .audio : .video
            return PublicationConfiguration(
                id: PublicationID(index: 10 + UInt32(index), generation: 1),
                mid: "\(index)",
                kind: kind,
                formats: Self.formats.filter { $0.format.codec.kind == kind }
                    + (kind == .audio ? [Media.opus] : []),
                extensions: extensions,
                encodings: (index == 2 ? ["a", "b", "c"] : [nil]).map {
                    EncodingConfiguration(rid: $0)
                }
            )
        }
    }

    static var hostileSlots: [SlotConfiguration] {
        (0..<3 as Range<UInt32>).map { index in
            let kind: MediaKind = index == 0 ? .audio : .video
            var slot = Media.slot(20 + index, kind: kind, ssrc: 0xe000 + index * 256)
            slot.formats =
                formats.filter { $0.format.codec.kind == kind }
                + (kind == .audio ? [Media.opus] : [])
            slot.extensions[.dependencyDescriptor] = 12
            slot.extensions[.absoluteCaptureTime] = 11
            return slot
        }
    }

    @Test func `a call is unharmed by noise of every kind`() throws {
        var call = try ForwardingTests.call()
        call.run(milliseconds: 3_000)
        let before = call.occupancy
        call = try Self.hostileCall()
        let ledger = IndexLedger(memory: 16_384)
        call.loses = { toCore, datagram in
            if !toCore { ledger.note(datagram) }
            return false
        }
        var maker = NoiseMaker(seed: 20_261_121)
        var sent: UInt64 = 1
        var received: [UInt16] = []
        let largest = 4 * call.core.receiver.pool.used + 16_384
        for step in 0..<Self.total {
            maker.make(in: &call)
            guard step % 50 == 0 else { continue }
            call.sendVideo(
                sequence: UInt16(truncatingIfNeeded: sent),
                pictureID: UInt16(sent & 0x7fff),
                isKeyframe: sent == 1,
                rollover: sent >> 16
            )
            sent += 1
            call.run(milliseconds: 1)
            received += call.numbers(at: 1)
            for peer in call.peers {
                peer.received = []
                peer.reports = []
            }
            _ = call.takeEvents()
            #expect(call.core.receiver.pool.used < largest)
        }
        #expect(received.isContiguous)
        #expect(received.count == Int(sent) - 1)
        let undecryptable = call.peers.map { $0.undecryptable }
        #expect(undecryptable == [0, 0, 0, 0])
        #expect(ledger.violations == 0)
        #expect(call.misdirected == 0)
        #expect(call.takeEvents().isEmpty)
        #expect(call.statistics().isBalanced)
        call.apply(.close(call.peers[2].id))
        call.apply(.close(call.peers[3].id))
        call.run(milliseconds: 3_000)
        #expect(call.occupancy.with(streams: before.streams) == before)
    }
}

/// A source of noise, one piece after the other.
struct NoiseMaker {
    private var noise: SeededRandom
    private let stun = Samples.files("corpora/stun").map(\.bytes)
    private let packets: [[UInt8]]
    private let descriptors = Samples.files("corpora/dependency_descriptor").map(\.bytes)
    private let captures: [[UInt8]]
    private var indexes: [UInt32: UInt64] = [:]
    private var genuine: [UInt8] = []

    init(seed: UInt64) {
        noise = SeededRandom(seed: seed)
        let rtp = Samples.files("corpora/rtp").map(\.bytes)
        packets = rtp.isEmpty ? [Array(repeating: 0x80, count: 40)] : rtp
        let pcap = Samples.files("corpora/pcap").map(\.bytes).flatMap(Self.payloads)
        captures = pcap.isEmpty ? [Array(repeating: 0x90, count: 300)] : pcap
    }

    /// Returns the RTP datagrams of a capture; misaligned records merely give more noise.
    private static func payloads(_ file: [UInt8]) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var position = 24
        while position + 16 <= file.count, result.count < 2_000 {
            let length = Int(file[position + 8]) | Int(file[position + 9]) << 8
            let start = position + 16
            position = start + length
            guard position <= file.count, length > 42 + 12 else { continue }
            result.append(Array(file[(start + 42)..<position]))
        }
        return result
    }

    mutating func make(in call: inout Call) {
        let stranger = Path.from(port: UInt16.random(in: 1...60_000, using: &noise))
        let known = call.peers[2].path
        let path = Bool.random(using: &noise) ? stranger : known
        switch Int.random(in: 0..<12, using: &noise) {
        case 0: call.inject(noise.bytes(Int.random(in: 0...1_600, using: &noise)), on: path)
        case 1: call.inject(classed(), on: path)
        case 2: call.inject(mutated(stun.randomElement(using: &noise) ?? []), on: path)
        case 3: call.inject(mutated(check(in: &call)), on: path)
        case 4: call.inject(mutated(captures.randomElement(using: &noise) ?? []), on: path)
        case 5, 6: sendRTCP(in: &call)
        default: sendRTP(in: &call)
        }
    }

    /// Makes random bytes that look like one of the protocols.
    private mutating func classed() -> [UInt8] {
        var bytes = noise.bytes(Int.random(in: 1...200, using: &noise))
        bytes[0] = [0, 1, 20, 22, 23, 63, 128, 0x90, 0xbf].randomElement(using: &noise) ?? 0
        return bytes
    }

    private mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return [] }
        var bytes = Array(bytes.prefix(1_450))
        for _ in 0..<Int.random(in: 1...4, using: &noise) {
            let place = Int.random(in: bytes.indices, using: &noise)
            bytes[place] ^= UInt8.random(in: 1...255, using: &noise)
        }
        if Int.random(in: 0..<4, using: &noise) == 0 {
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &noise))
        }
        return bytes
    }

    /// Makes a check as the hostile peer would send it.
    private mutating func check(in call: inout Call) -> [UInt8] {
        if genuine.isEmpty || Int.random(in: 0..<100, using: &noise) == 0 {
            var sent = Batch(capacity: 4)
            call.peers[2].peer.check(at: call.now, into: &sent)
            genuine = sent[0].indices.map { sent[0][$0] }
        }
        return genuine
    }

    /// Sends a packet that SRTP accepts and whose contents are nonsense.
    private mutating func sendRTP(in call: inout Call) {
        var packet: [UInt8]
        switch Int.random(in: 0..<4, using: &noise) {
        case 0: packet = mutated(packets.randomElement(using: &noise) ?? [])
        case 1: packet = mutated(captures.randomElement(using: &noise) ?? [])
        default: packet = composed()
        }
        packet = Array(packet.prefix(1_440))
        guard packet.count >= 12, (try? Packet(encrypted: packet.span).headerLength) != nil else {
            return
        }
        packet[1] = Bool.random(using: &noise) ? packet[1] : payloadType()
        // These values would be taken for RTCP packet types.
        if (192...223).contains(packet[1]) { packet[1] = payloadType() }
        let ssrc = ssrc()
        let jump = Int.random(in: 0..<40, using: &noise) == 0
        let step = UInt64.random(in: jump ? 1...20_000 : 1...3, using: &noise)
        let index = indexes[ssrc].map { $0 + step } ?? UInt64.random(in: 0...20_000, using: &noise)
        indexes[ssrc] = index
        packet.replaceSubrange(2..<4, with: UInt16(truncatingIfNeeded: index).bytes)
        packet.replaceSubrange(8..<12, with: ssrc.bytes)
        call.send(packet, from: 2, rollover: index >> 16)
    }

    private mutating func ssrc() -> UInt32 {
        let spread: UInt32 = Int.random(in: 0..<20, using: &noise) == 0 ? 100_000 : 8
        return 0x4000_0000 + UInt32.random(in: 0..<spread, using: &noise)
    }

    private mutating func payloadType() -> UInt8 {
        let types: [UInt8] = NoiseTests.formats.map(\.payloadType) + [97, 101, 103, 105, 107, 111]
        let marker: UInt8 = Bool.random(using: &noise) ? 0x80 : 0
        return (types.randomElement(using: &noise) ?? 96) | marker
    }

    /// Makes header extensions of both forms with true and false lengths, and any payload.
    private mutating func composed() -> [UInt8] {
        var packet: [UInt8] = [0x90, 0] + noise.bytes(10)
        if Int.random(in: 0..<10, using: &noise) == 0 { packet[0] |= 0x20 }
        let isTwoByte = Bool.random(using: &noise)
        var block: [UInt8] = []
        let mid = ["0", "1", "2", "x"].randomElement(using: &noise) ?? "0"
        let rid = ["a", "b", "c", "nonsense"].randomElement(using: &noise) ?? "a"
        append(4, Array(mid.utf8), isTwoByte, to: &block)
        append(10, Array(rid.utf8), isTwoByte, to: &block)
        for _ in 0..<Int.random(in: 0...6, using: &noise) {
            let length = Int.random(in: 1...(isTwoByte ? 60 : 16), using: &noise)
            let descriptor = descriptors.randomElement(using: &noise) ?? []
            let isDescriptor = Bool.random(using: &noise) && !descriptor.isEmpty
            let data = isDescriptor ? Array(descriptor.prefix(length)) : noise.bytes(length)
            append(UInt8.random(in: 0...15, using: &noise), data, isTwoByte, to: &block)
        }
        if Bool.random(using: &noise) { block += noise.bytes(3) }
        while block.count % 4 != 0 { block.append(0) }
        packet += UInt16(isTwoByte ? 0x1000 : 0xbede).bytes + UInt16(block.count / 4).bytes + block
        if Bool.random(using: &noise) {
            let capture = captures.randomElement(using: &noise) ?? []
            return packet + mutated(Array(capture.dropFirst(12)))
        }
        return packet + noise.bytes(Int.random(in: 0...400, using: &noise))
    }

    private func append(_ id: UInt8, _ data: [UInt8], _ isTwoByte: Bool, to block: inout [UInt8]) {
        guard !data.isEmpty else { return }
        if isTwoByte {
            block += [id, UInt8(data.count)] + data
        } else {
            block += [id << 4 | UInt8(min(data.count, 16) - 1)] + data.prefix(16)
        }
    }

    /// Sends one to four RTCP blocks with true lengths and arbitrary contents.
    private mutating func sendRTCP(in call: inout Call) {
        var compound: [UInt8] = []
        for _ in 0..<Int.random(in: 1...4, using: &noise) {
            let words = Int.random(in: 0...80, using: &noise)
            let type = UInt8.random(in: 200...207, using: &noise)
            var body = noise.bytes(4 * words)
            let ssrcs: [UInt32] = [0xd000, 0xd001, 0xd100, 0x4000_0000, 0xaaaa]
            for place in [0, 4, 8] where place + 4 <= body.count && Bool.random(using: &noise) {
                let ssrc = ssrcs.randomElement(using: &noise) ?? 0
                body.replaceSubrange(place..<place + 4, with: ssrc.bytes)
            }
            let isTrue = Int.random(in: 0..<10, using: &noise) > 0
            let length = isTrue ? UInt16(words) : UInt16.random(in: 0...200, using: &noise)
            let count = UInt8.random(in: 0...31, using: &noise)
            let format =
                Bool.random(using: &noise) ? count : [1, 4, 15].randomElement(using: &noise) ?? 1
            compound += [0x80 | format, type] + length.bytes + body
        }
        if compound.count < 8 { compound += [0, 0, 0, 0] }
        call.sendRTCP(from: 2, bytes: Array(compound.prefix(1_400)))
    }
}

extension Occupancy {
    func with(streams: Int) -> Self {
        var result = self
        result.streams = streams
        return result
    }
}
