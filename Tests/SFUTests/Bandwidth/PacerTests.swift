import RTP
import Testing

@testable import SFU

struct PacerTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    /// Returns packets with their send times, in steps of a millisecond, for packets queued at
    /// once.
    private static func drain(
        _ pacer: inout Pacer,
        milliseconds: Int64,
        from start: Instant = start
    ) -> [(millisecond: Int64, item: Pacer.Item)] {
        var left: [(millisecond: Int64, item: Pacer.Item)] = []
        for millisecond in 0..<milliseconds {
            let now = start.advanced(milliseconds: millisecond)
            while let item = pacer.next(at: now) { left.append((millisecond, item)) }
        }
        return left
    }

    @Test func `audio first, then retransmissions, video and padding`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 2_500_000)
        let classes: [Pacer.Class] = [.padding, .video, .retransmission, .audio, .video, .audio]
        for (index, kind) in classes.enumerated() {
            let taken = pacer.enqueue(UInt32(index), bytes: 200, class: kind, at: Self.start)
            #expect(taken)
        }
        let order = Self.drain(&pacer, milliseconds: 50).map { Int($0.item.index) }
        #expect(order == [3, 5, 2, 1, 4, 0])
        let isEmpty = pacer.isEmpty
        #expect(isEmpty)
    }

    @Test func `a large frame leaves in runs, over a few milliseconds`() {
        // 4 Mbit/s of estimate; a keyframe of 60 kB takes 48 ms of the pacing rate.
        var pacer = Pacer(at: Self.start, bitsPerSecond: 10_000_000)
        for index in 0..<50 {
            _ = pacer.enqueue(UInt32(index), bytes: 1_200, class: .video, at: Self.start)
        }
        let left = Self.drain(&pacer, milliseconds: 100)
        #expect(left.map { Int($0.item.index) } == Array(0..<50))
        let first = left.count { $0.millisecond == 0 }
        #expect((8...12).contains(first), "a run's worth at once")
        let last = left[left.count - 1].millisecond
        #expect((20...32).contains(last), "no packet waits more than about 30 ms")
    }

    @Test func `a small frame leaves at once`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 2_500_000)
        for index in 0..<4 {
            _ = pacer.enqueue(UInt32(index), bytes: 1_100, class: .video, at: Self.start)
        }
        let left = Self.drain(&pacer, milliseconds: 1)
        #expect(left.count == 4)
    }

    @Test func `at a low rate packets leave by twos and threes`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 500_000)
        for index in 0..<6 {
            _ = pacer.enqueue(UInt32(index), bytes: 1_200, class: .video, at: Self.start)
        }
        let left = Self.drain(&pacer, milliseconds: 60)
        #expect(left.count { $0.millisecond == 0 } == 3)
        #expect(left.count == 6)
        #expect(left[5].millisecond <= 31)
    }

    @Test func `audio never waits behind video`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 300_000)
        for index in 0..<100 {
            _ = pacer.enqueue(UInt32(index), bytes: 1_200, class: .video, at: Self.start)
        }
        _ = Self.drain(&pacer, milliseconds: 3)
        let later = Self.start.advanced(milliseconds: 3)
        _ = pacer.enqueue(1_000, bytes: 150, class: .audio, at: later)
        let due = pacer.deadline(at: later)
        let next = pacer.next(at: later)
        #expect(due == later)
        #expect(next?.index == 1_000)
    }

    @Test func `on average it keeps to the rate`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 2_000_000)
        var sent = 0
        for millisecond: Int64 in 0..<10_000 {
            let now = Self.start.advanced(milliseconds: millisecond)
            // The queue is never empty, but short enough that nothing is late.
            while pacer.waitingBytes < 3_000 {
                _ = pacer.enqueue(0, bytes: 1_000, class: .video, at: now)
            }
            while let item = pacer.next(at: now) { sent += Int(item.bytes) }
        }
        #expect(abs(sent - 2_500_000) < 50_000, "\(sent)")
    }

    @Test func `the deadline is when something leaves, and never spins`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 3_000_000)
        let idle = pacer.deadline(at: Self.start)
        #expect(idle == nil)
        for index in 0..<60 {
            _ = pacer.enqueue(UInt32(index), bytes: 1_200, class: .video, at: Self.start)
        }
        var now = Self.start
        var rounds = 0
        var left = 0
        while let deadline = pacer.deadline(at: now) {
            now = max(now, deadline)
            var some = false
            while pacer.next(at: now) != nil {
                left += 1
                some = true
            }
            rounds += 1
            #expect(some)
            guard rounds < 100 else { break }
        }
        #expect(left == 60)
        #expect(rounds <= 20, "runs, not single packets: \(rounds)")
        // Its last packet waits for half a burst to drain, beyond its 30 ms.
        #expect(now.nanoseconds(since: Self.start) <= 36_000_000)
    }

    @Test func `a full queue says so and drops nothing`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 100_000)
        for index in 0..<Pacer.maximumQueue {
            let taken = pacer.enqueue(UInt32(index), bytes: 100, class: .video, at: Self.start)
            #expect(taken)
        }
        let refused = pacer.enqueue(9_999, bytes: 100, class: .video, at: Self.start)
        let audio = pacer.enqueue(9_998, bytes: 100, class: .audio, at: Self.start)
        let waiting = pacer.waitingPackets
        #expect(!refused && audio)
        #expect(waiting == Pacer.maximumQueue + 1)
    }

    @Test func `what leaves past it is counted`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 800_000)
        let before = pacer.budget(at: Self.start)
        pacer.left(bytes: 1_500, at: Self.start)
        let after = pacer.budget(at: Self.start)
        #expect(before - after == 1_500)
        // 100 bytes a millisecond.
        let later = pacer.budget(at: Self.start.advanced(milliseconds: 10))
        #expect(later - after == 1_000)
    }

    @Test func `a probe leaves at its own rate, media first, and ends`() {
        var pacer = Pacer(at: Self.start, bitsPerSecond: 750_000)
        let probe = Probe(
            id: ProbeID(rawValue: 9),
            bitsPerSecond: 1_800_000,
            bytes: 4_500,
            minimumPackets: 5
        )
        _ = pacer.enqueue(7, bytes: 700, class: .video, at: Self.start)
        pacer.start(probe, at: Self.start)
        var bytes = 0
        var packets = 0
        var last: Int64 = 0
        for millisecond: Int64 in 0..<100 {
            let now = Self.start.advanced(milliseconds: millisecond)
            while let item = pacer.next(at: now) {
                #expect(item.index == 7 && item.probe == probe.id)
                bytes += Int(item.bytes)
                packets += 1
            }
            while let padding = pacer.padding(at: now) {
                #expect(padding.probe == probe.id)
                let size = pacer.paddingPacket
                #expect(size == 900)
                pacer.left(bytes: size, at: now)
                bytes += size
                packets += 1
                last = millisecond
            }
        }
        #expect(bytes >= 4_500 && bytes < 5_500)
        #expect(packets >= 5)
        #expect((15...24).contains(last), "20 ms at its rate: \(last)")
        let after = pacer.currentProbe
        #expect(after == nil)
    }
}
