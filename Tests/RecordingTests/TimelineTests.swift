import RTP
import SFU
import Testing
import WorkerInterface

@testable import Recording

struct TimelineTests {
    /// A sender of 20 ms Opus packets that arrive 60 ms after their capture.
    private struct Sender {
        var packets = Packets(codec: .opus)
        var timeline = CaptureTimeline()
        var instants: [Instant] = []
        /// Capture time by the sender reports, less the arrival time, in milliseconds.
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
                if let instant = timeline.instant(of: packet) { instants.append(instant) }
                packets.pass(milliseconds: 20)
            }
        }

        /// Milliseconds by which the last packet's time precedes its arrival.
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
        // The report claims something impossible.
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

    /// Claimed and true clocks of a sender.
    ///
    /// The capture time that a report claims, in nanoseconds after the arrival, and the number of
    /// ticks by which each packet's timestamp is ahead of the right one.
    struct Claim: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var captured: Int64?
        var leap: UInt32 = 0
    }

    private static let year: Int64 = 365 * 86_400 * 1_000_000_000

    static let claims = [
        Claim(testDescription: "years ago", captured: -20 * year),
        Claim(testDescription: "in years", captured: 20 * year),
        Claim(testDescription: "the least instant", captured: Int64.min / 2),
        Claim(testDescription: "the last instant", captured: Int64.max / 2),
        Claim(testDescription: "an hour ago", captured: -3_600_000_000_000),
        Claim(testDescription: "timestamps that leap ahead", leap: 0x7fff_ffff),
        Claim(testDescription: "timestamps that leap back", leap: 0x8000_0001),
        Claim(testDescription: "both of these", captured: -20 * year, leap: 0x7fff_ffff),
    ]

    @Test(arguments: claims)
    func `A4 no claim moves a capture more than ten seconds from its arrival`(_ claim: Claim) {
        var packets = Packets(codec: .opus)
        var timeline = CaptureTimeline()
        var last = Instant(nanoseconds: .min)
        for step in 0..<1_000_000 {
            var packet = packets.next([1])
            packets.timestamp &+= claim.leap
            // Half the packets use another clock, as where reports of two senders disagree.
            if let captured = claim.captured, step % 2 == 0 {
                let instant = Instant(nanoseconds: packets.now.nanoseconds &+ captured)
                packet.captured = (instant, packet.timestamp)
            }
            guard let instant = timeline.instant(of: packet) else {
                Issue.record("packet \(step) has no time")
                return
            }
            let before = packet.arrival.nanoseconds(since: instant)
            guard (-1_000_000_000...10_000_000_000).contains(before), instant > last else {
                Issue.record("packet \(step) lies \(before) ns before its arrival")
                return
            }
            last = instant
            packets.pass(milliseconds: 20)
        }
    }

    @Test func `A4 an implausible report is ignored`() {
        var sender = Sender()
        sender.delay = 20_000
        sender.send(100)
        #expect(sender.error == 0)
    }

    @Test func `frames that come faster than a file counts are left out in the end`() {
        var packets = Packets(codec: .opus)
        var timeline = CaptureTimeline()
        let instants = (0..<20_000).map { _ in timeline.instant(of: packets.next([1])) }
        let kept = instants.compactMap { $0 }
        #expect(kept.count == 10_001, "one at each millisecond from 0 to 10,000")
        #expect(kept.last.map { $0.milliseconds(since: packets.now) <= 10_000 } == true)
    }
}
