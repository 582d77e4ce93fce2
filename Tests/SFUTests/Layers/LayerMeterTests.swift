import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Measurement of the layers' bit rates.
struct LayerMeterTests {
    private static let base = LayerPoint(spatial: 0, temporal: 0)

    /// An encoding of one layer: thirty frames a second of one packet each.
    private struct Encoder: ~Copyable {
        var meter = LayerMeter(isEnabled: true)
        var now = Instant(nanoseconds: 5_000_000_000)

        /// Sends for a while, or is silent at a rate of 0.
        mutating func send(bitsPerSecond: Int, milliseconds: Int) {
            for step in 0..<milliseconds {
                now = now.advanced(milliseconds: 1)
                if step % 100 == 0 { _ = meter.measure(at: now) }
                guard bitsPerSecond > 0, step % 33 == 0 else { continue }
                var info = PacketInfo()
                info.arrival = now
                info.points = LayerPoints(from: 0, 0)
                info.marks = info.points
                _ = meter.receive(info, bytes: bitsPerSecond / 8 * 33 / 1_000)
            }
        }

        var usual: Int { meter.expectedBitrate(of: base) }
        var measured: Int { meter.rate(of: base, at: now).bitrate }
    }

    @Test func `a layer that resumes at a low rate keeps its earlier estimate`() {
        var encoder = Encoder()
        encoder.send(bitsPerSecond: 1_500_000, milliseconds: 5_000)
        let before = encoder.usual
        #expect((1_400_000...1_600_000).contains(before))
        encoder.send(bitsPerSecond: 0, milliseconds: 20_000)
        let away = encoder.usual
        #expect(away >= before * 4 / 5)
        encoder.send(bitsPerSecond: 200_000, milliseconds: 2_500)
        let (measured, usual) = (encoder.measured, encoder.usual)
        #expect((150_000...250_000).contains(measured))
        #expect(usual == away)
        // A rate that persists is accepted in the end.
        encoder.send(bitsPerSecond: 200_000, milliseconds: 30_000)
        let believed = encoder.usual
        #expect((190_000...220_000).contains(believed))
    }

    @Test func `the first window of a resumed layer begins with its first packet`() {
        var encoder = Encoder()
        encoder.send(bitsPerSecond: 600_000, milliseconds: 3_000)
        // A window that began before the first packet would measure less, whatever its phase.
        for pause in [2_000, 2_300, 2_600, 2_900] {
            encoder.send(bitsPerSecond: 0, milliseconds: pause)
            encoder.send(bitsPerSecond: 600_000, milliseconds: 950)
            let measured = encoder.measured
            #expect((560_000...640_000).contains(measured), "after \(pause) ms")
        }
    }

    @Test func `what the sender says counts until it has been measured for a while`() {
        var encoder = Encoder()
        encoder.meter.state(900_000, 30, of: Self.base)
        let stated = encoder.usual
        #expect(stated == 900_000)
        encoder.send(bitsPerSecond: 300_000, milliseconds: 1_500)
        let early = encoder.usual
        #expect(early == 900_000)
        encoder.send(bitsPerSecond: 300_000, milliseconds: 5_000)
        let late = encoder.usual
        #expect((280_000...330_000).contains(late))
        encoder.meter.state(.max, 0, of: Self.base)
        encoder.send(bitsPerSecond: 0, milliseconds: 3_000)
        let bounded = encoder.usual
        #expect(bounded == 50_000_000)
    }

    @Test func `a publisher's allocation is known with the first packet of a layer`() throws {
        var call = try Call()
        var publication = Media.video(1, rids: ["q", "h"])
        publication.extensions[.videoLayersAllocation] = 5
        call.join(publications: [publication])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        // Stream 1 of 2, one spatial layer each: two temporal layers of 100 and 300 kbit/s, one of
        // 1,000; 320 by 180 and 640 by 360.
        let allocation: [UInt8] = [
            0x51, 0x40, 0x64, 0xac, 0x02, 0xe8, 0x07, 0x01, 0x3f, 0x00, 0xb3, 30, 0x02, 0x7f,
            0x01, 0x67,
        ]
        for (index, rid) in ["q", "h"].enumerated() {
            var element = allocation
            element[0] = index == 0 ? 0x11 : 0x51
            // A byte is missing: the whole allocation is ignored.
            let isWhole = index == 1
            let packet = Media.packet(
                payloadType: 96,
                sequence: 1,
                timestamp: 0,
                ssrc: 0x5000 + UInt32(index),
                marker: true,
                elements: [
                    (4, Array("1".utf8)), (10, Array(rid.utf8)),
                    (5, isWhole ? Array(element.prefix(7)) : element),
                ],
                payload: Media.vp8Payload(
                    pictureID: 1,
                    tl0: 0,
                    isKeyframe: true,
                    startsFrame: true,
                    width: UInt16(320 << index),
                    height: UInt16(180 << index),
                    size: 900
                )
            )
            call.send([(packet, 0)], from: 0)
        }
        let first = call.core.receiver.publications[1].options[0]
        let second = call.core.receiver.publications[1].options[1]
        #expect(first.usualBitrate == 0)
        #expect(second.usualBitrate == 1_000_000 && second.peakBitrate == 1_000_000)
    }
}
