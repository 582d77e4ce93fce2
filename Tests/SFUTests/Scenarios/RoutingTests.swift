import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Findings, events and counters that `Core` routes between its parts, and sums over all of them.
struct RoutingTests {
    private static let mid: (id: UInt8, data: [UInt8]) = (4, Array("0".utf8))

    @Test func `another path forgets the layers that the one before did not carry`() throws {
        var call = try ForwardingTests.call()
        let high = SlotShareTests.option(1)
        for (layer, time) in [(0, 0.0), (1, 30), (0, 31)] {
            let estimate = layer == 1 ? 600_000 : 500_000
            SlotShareTests.give(
                &call.core.allocator.shares[0].value,
                layer,
                within: estimate,
                at: time
            )
        }
        let soon = Instant(nanoseconds: 31_100_000_000)
        let before = call.core.allocator.shares[0].value
            .mayRise(to: high, within: 600_000, at: soon)
        call.core.transports.findings.append(.pathChanged(1))
        call.core.lose(.from(port: 9), at: call.now)
        let after = call.core.allocator.shares[0].value
            .mayRise(to: high, within: 600_000, at: soon)
        #expect(!before && after)
    }

    @Test func `held audio brings nothing of those whose packets took the places after it`() throws
    {
        var call = try Call()
        call.join(publications: [Media.audio(0)])
        call.join(publications: [Media.audio(2, ssrc: 0x2222)])
        call.join(slots: [Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
        for peer in 0..<3 { call.connect(peer) }
        let speech = Self.packet(1, payload: Array(repeating: 1, count: 40))
        var padding = Self.packet(2, payload: [0, 0, 0, 4])
        padding[0] |= 0x20
        call.send([(speech, 0), (padding, 0)], from: 0)
        let other = Media.packet(
            payloadType: 111,
            sequence: 1,
            timestamp: 960,
            ssrc: 0x2222,
            elements: [(4, Array("2".utf8))],
            payload: Array(repeating: 2, count: 40)
        )
        call.send(other, from: 1)
        let start = call.now.advanced(milliseconds: -20)
        call.apply(.bind(SpeechTests.slot, SpeechTests.binding(from: start)))
        call.run(milliseconds: 20)
        let heard = call.peers[2].received.filter { $0.u32(8) == 0xbbbb }.compactMap(\.last)
        #expect(heard == [1])
    }

    private static func packet(_ sequence: UInt16, payload: [UInt8]) -> [UInt8] {
        Media.packet(
            payloadType: 111,
            sequence: sequence,
            timestamp: UInt32(sequence) * 960,
            ssrc: 0x1111,
            elements: [mid],
            payload: payload
        )
    }

    @Test func `a mirror that gets another home begins another numbering`() throws {
        var call = try RelayTests.call()
        call.sendVideo(0, isKeyframe: true)
        call.run(milliseconds: 20)
        let known = Self.homeEpoch(in: call.workers[1].call.core)
        var configuration = Media.video(1)
        configuration.id = RelayedCall.mirrorID(1)
        let home = RelayTarget(worker: 2, publication: RelayTests.video)
        let mirror = Mirror(configuration: configuration, home: home, open: true)
        call.workers[1].call.apply(.mirror(mirror))
        let forgotten = Self.homeEpoch(in: call.workers[1].call.core)
        #expect(known != nil && forgotten == nil)
    }

    private static func homeEpoch(in core: borrowing Core) -> UInt32? {
        let publication = RelayedCall.mirrorID(1).place
        return core.receiver.encodings[core.receiver.publications[publication].encodings[0]]
            .homeEpoch
    }

    @Test func `what is sent is told before what is allotted after it`() throws {
        var call = try ForwardingTests.call()
        var sent = Batch(capacity: 1)
        let packet = Media.packet(
            payloadType: 96,
            sequence: 1,
            timestamp: 3_000,
            ssrc: 0x2222,
            marker: true,
            elements: [(4, Array("1".utf8))],
            payload: Media.vp8Payload(pictureID: 1, isKeyframe: true)
        )
        call.peers[0].peer.sendRTP(packet.span, index: 1, into: &sent)
        let path = call.peers[0].path
        call.core.receive(sent[0], on: path, at: call.now, into: &call.output)
        _ = call.core.flush(into: &call.output, at: call.now)
        let viewer = call.peers[1].id.place
        call.core.allocator.shares[0].value.hold = .quality
        call.core.allocate(viewer, at: call.now)
        var order: [String] = []
        while let event = call.core.takeEvent() {
            if case .started = event { order.append("started") }
            if case .videoHeld = event { order.append("held") }
        }
        #expect(order == ["started", "held"])
    }

    @Test func `the datagrams sent are those of all parts`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<60 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        let all = call.statistics()
        let handshakes = call.core.transports.counters.datagramsOut
        #expect(all.rtcpOut > 0 && all.rtpOut > 0 && handshakes > 0)
        let media = all.rtpOut + all.rtxOut + all.paddingOut + all.fillersOut
        #expect(all.datagramsOut == handshakes + media + all.rtcpOut)
    }

    @Test func `a new offer looks up the payload types of its viewers again`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let known = call.core.forwarder.slots[0].incomingPayloadType
        call.reconfigure(0) { $0.publications[0].cap.frameRate = 15 }
        let afterwards = call.core.forwarder.slots[0].incomingPayloadType
        #expect(known == 96 && afterwards == 0xff)
    }
}
