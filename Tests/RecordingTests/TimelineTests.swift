import RTP
import SFU
import Testing

@testable import Recording

struct TimelineTests {
    /// 20 ms of Opus, whose packets come 60 ms after they were captured.
    private struct Sender {
        var packets = Packets(codec: .opus)
        var timeline = CaptureTimeline()
        var instants: [Instant] = []
        /// What the sender reports say is the capture, less the arrival, in milliseconds.
        var delay: Int64?
        var epoch: UInt32 = 1

        mutating func send(_ count: Int) {
            for _ in 0..<count {
                var packet = packets.next([1])
                packet.epoch = epoch
                if let delay {
                    packet.captured = (
                        packets.now.advanced(milliseconds: -delay), packets.timestamp
                    )
                }
                instants.append(timeline.instant(of: packet))
                packets.pass(milliseconds: 20)
            }
        }

        /// Milliseconds by which the last packet's time is before its arrival.
        var error: Int64 {
            packets.now.advanced(milliseconds: -20).milliseconds(
                since: instants[instants.count - 1]
            )
        }
    }

    @Test func `arrival counts until a report has come, and then capture, little by little`() {
        var sender = Sender()
        sender.send(50)
        #expect(sender.error == 0)
        sender.delay = 60
        sender.send(10)
        #expect((9...10).contains(sender.error), "a millisecond for each 20")
        sender.send(60)
        #expect(sender.error == 60)
        for (one, next) in zip(sender.instants, sender.instants.dropFirst()) {
            #expect((19...21).contains(next.milliseconds(since: one)))
        }
    }

    @Test func `another encoding takes as long, until its own report has come`() {
        var sender = Sender()
        sender.delay = 60
        sender.send(100)
        sender.delay = nil
        sender.epoch = 2
        sender.packets.timestamp = 7
        sender.send(20)
        #expect((58...60).contains(sender.error))
        sender.delay = 60
        sender.send(1)
        #expect((58...60).contains(sender.error))
    }

    @Test func `time jumps forward over a gap and never goes back`() {
        var sender = Sender()
        sender.delay = 60
        sender.send(10)
        sender.packets.pass(milliseconds: 5_000)
        sender.send(1)
        #expect(sender.error == 60)
        // The report says something that cannot be.
        sender.delay = 10_000
        sender.send(10)
        #expect(sender.instants == sender.instants.sorted())
        #expect(Set(sender.instants).count == sender.instants.count)
    }

    @Test func `nothing was captured after it came, whatever a report says`() {
        var sender = Sender()
        sender.delay = -300
        sender.send(100)
        #expect(sender.error == 0)
    }

    @Test func `another numbering goes on from where its own clock says`() {
        var sender = Sender()
        sender.delay = 60
        sender.send(10)
        var packet = sender.packets.next([1])
        packet.epoch = 2
        packet.timestamp = 5
        packet.captured = (sender.packets.now.advanced(milliseconds: -60), 5)
        let instant = sender.timeline.instant(of: packet)
        #expect(instant == sender.packets.now.advanced(milliseconds: -60))
    }
}
