import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Forwarding while a viewer's path has become too narrow for its media.
struct NarrowedPathTests {
    /// Sends three temporal layers of one encoding; the lowest takes a sixth of the bits.
    private static func send(_ step: UInt16, _ call: inout Call) {
        let layer = [0, 2, 1, 2][Int(step % 4)] as UInt8
        let sizes = layer == 0 ? [700] : [1_100, 1_100, 1_100]
        for (index, size) in sizes.enumerated() {
            var payload = Media.vp8Payload(
                pictureID: step,
                tl0: UInt8(truncatingIfNeeded: step / 4),
                isKeyframe: step == 0,
                startsFrame: index == 0,
                size: size
            )
            payload[5] = layer << 6 | (layer > 0 ? 0x20 : 0)
            let packet = Media.packet(
                payloadType: 96,
                sequence: call.transportSequence,
                timestamp: UInt32(step) * 3_000,
                ssrc: 0x2222,
                marker: index == sizes.count - 1,
                elements: [(4, Array("1".utf8)), (3, call.transportSequence.bytes)],
                payload: payload
            )
            call.transportSequence += 1
            call.send(packet, from: 0)
        }
        call.run(milliseconds: 33)
    }

    /// Sends a receiver report of 10 % loss: from then on the estimate limits forwarding.
    private static func reportLoss(_ call: inout Call) {
        call.sendRTCP(from: 1) { output in
            output.append(0x81)
            output.append(201)
            output.append(bigEndian: UInt16(7))
            output.append(bigEndian: UInt32(1))
            output.append(bigEndian: UInt32(0xaaaa))
            output.append(bigEndian: UInt32(26) << 24)
            for _ in 0..<4 { output.append(bigEndian: UInt32(0)) }
        }
    }

    @Test func `fewer layers of the same encoding need no keyframe: the picture goes on`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        for step in 0..<90 as Range<UInt16> { Self.send(step, &call) }
        let target = call.core.forwarder.slotRecords[0].target
        #expect(target?.temporal == 2)
        let asked = call.keyframeRequests(at: 0)
        call.peers[1].received = []
        Self.reportLoss(&call)
        call.run(milliseconds: 200)
        let fallen = call.core.forwarder.slotRecords[0].target
        #expect(fallen?.encoding == target?.encoding && fallen?.temporal ?? 2 < 2)
        for step in 90..<120 as Range<UInt16> {
            if step % 10 == 0 { Self.reportLoss(&call) }
            Self.send(step, &call)
        }
        #expect(call.keyframeRequests(at: 0) == asked)
        // The lowest layer, and nothing else once the switch has been made.
        #expect(call.peers[1].received.count >= 7)
    }
}
