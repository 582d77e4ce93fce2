import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Packets in a relay ring when rights, workers and publications change.
struct RelayFenceTests {
    static let video = RelayTests.video

    /// Makes two workers that both receive a few packets; worker 1 is busy from here on.
    static func busyCall() throws -> RelayedCall {
        var call = try RelayTests.call(workers: 2)
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.sendAudio(step)
            call.run(milliseconds: 20)
        }
        call.busy = [1]
        return call
    }

    private func fenced(_ call: RelayedCall, _ worker: Int) -> UInt64? {
        call.workers[worker].call.apply(.fence(epoch: 9))
        for event in call.workers[worker].call.takeEvents() {
            if case .fenced(9, _, let packets) = event { return packets }
        }
        return nil
    }

    @Test func `a gate that closes holds what already lies in the ring`() throws {
        var call = try Self.busyCall()
        for step in 5..<15 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
        call.gate(1, home: 0, open: false, to: [1])
        #expect(fenced(call, 0) == 15)
        #expect(fenced(call, 1) == 5)
        call.busy = []
        call.exchange()
        for step in 15..<20 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
        let statistics = call.statistics()
        #expect(statistics[1].relayDrops[DropReason.gated.index] == 10)
        #expect(statistics[0].drops[DropReason.gated.index] == 5)
        #expect(statistics.allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    @Test func `packets from before a gate's reopening are not sent after it`() throws {
        var call = try Self.busyCall()
        for step in 5..<15 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 8)
            call.sendAudio(step)
        }
        for publication in [0, 1] as [UInt32] {
            call.gate(publication, home: 0, open: false, to: [1])
            call.gate(publication, home: 0, open: true, to: [1])
        }
        call.busy = []
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
        #expect(call.viewer(1).numbers(of: 0xbbbb).count == 5)
        call.sendVideo(15, isKeyframe: true)
        call.sendAudio(15)
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 6)
        #expect(call.viewer(1).numbers(of: 0xbbbb).count == 6)
        #expect(call.viewer(1).numbers(of: 0xaaaa).isContiguous)
        #expect(call.statistics()[1].relayDrops[DropReason.gated.index] == 20)
    }

    @Test func `a home that is slow to close its gate cannot open the mirror's`() throws {
        var call = try Self.busyCall()
        let mirror = RelayedCall.mirrorID(1)
        call.workers[1].call.apply(.gate(mirror, open: false))
        for step in 5..<10 as Range<UInt16> { call.sendVideo(step, isKeyframe: true) }
        call.busy = []
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
    }

    @Test func `a gate that opens asks the publisher at once, from home and mirror alike`() throws {
        var call = try RelayTests.call(workers: 2)
        call.workers[0].call.apply(.bind(RelayTests.slot, nil))
        call.sendVideo(0, isKeyframe: true)
        call.gate(1, home: 0, open: false, to: [1])
        call.run(milliseconds: 1_000)
        call.workers[0].call.peers[0].reports = []
        call.gate(1, home: 0, open: true, to: [1])
        call.run(milliseconds: 50)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
    }

    @Test func `a full ring drops and counts, and a keyframe mends the picture`() throws {
        var call = try Self.busyCall()
        for step in 5..<805 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
        #expect(call.viewer(0).numbers(of: 0xaaaa).count == 805)
        let dropped = 800 - UInt64(RelayRing.capacity)
        #expect(call.statistics()[0].drops[DropReason.relayQueueFull.index] == dropped)
        call.busy = []
        call.run(milliseconds: 2)
        call.workers[0].call.peers[0].reports = []
        call.sendVideo(805, isKeyframe: false)
        call.run(milliseconds: 2)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        let before = call.viewer(1).numbers(of: 0xaaaa).count
        #expect(before == 5 + RelayRing.capacity + 1)
        call.sendVideo(806, isKeyframe: true)
        call.run(milliseconds: 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == before + 1)
        #expect(call.statistics().allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    @Test func `a request that finds the ring full is repeated`() throws {
        var call = try RelayTests.call(workers: 2)
        call.sendVideo(0, isKeyframe: true)
        call.run(milliseconds: 500)
        call.workers[0].call.peers[0].reports = []
        // Worker 1 has a publisher too, whose packets fill the ring to worker 0.
        call.workers[1].call.join(publications: [Media.video(2)])
        call.workers[1].call.connect(1)
        call.alignClocks()
        call.wire(Media.video(2), from: 1, to: [0])
        call.busy = [0]
        for step in 0..<600 as Range<UInt16> {
            call.workers[1].call.sendVideo(
                from: 1,
                ssrc: 0x9999,
                sequence: step,
                pictureID: step,
                isKeyframe: false
            )
        }
        call.loseTheirPicture(1)
        call.run(milliseconds: 10)
        call.busy = []
        call.run(milliseconds: 100)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 0)
        call.run(milliseconds: 400)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
    }

    @Test func `nothing leaves a mirror that ended, or a slot that was unbound`() throws {
        for isUnmirrored in [true, false] {
            var call = try Self.busyCall()
            for step in 5..<10 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
            if isUnmirrored {
                call.workers[1].call.apply(.unmirror(RelayedCall.mirrorID(1)))
            } else {
                call.workers[1].call.apply(.bind(RelayTests.slot, nil))
            }
            #expect(fenced(call, 1) == 5)
            call.busy = []
            call.exchange()
            #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
            let reason: DropReason = isUnmirrored ? .unknownStream : .noSubscriber
            let statistics = call.statistics()
            #expect(statistics[1].relayDrops[reason.index] == 5)
            #expect(statistics.allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
        }
    }

    @Test func `a reused mirror slot gets nothing of its predecessor`() throws {
        var call = try Self.busyCall()
        for step in 5..<10 as Range<UInt16> { call.sendVideo(step, isKeyframe: true) }
        let old = RelayedCall.mirrorID(1)
        call.workers[1].call.apply(.unmirror(old))
        var configuration = Media.video(3)
        configuration.id = PublicationID(index: old.index, generation: old.generation + 1)
        let home = RelayTarget(worker: 0, publication: PublicationID(index: 3, generation: 1))
        let mirror = Mirror(configuration: configuration, home: home, open: true)
        call.workers[1].call.apply(.mirror(mirror))
        let binding = Binding(publication: configuration.id, subscription: 8, open: true)
        call.workers[1].call.apply(.bind(RelayTests.slot, binding))
        call.busy = []
        call.exchange()
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
    }

    @Test func `a mirror goes on when its publication finds a new home`() throws {
        var call = try RelayTests.call(workers: 3)
        let ledgers = call.keepLedgers()
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        call.workers[2].call.join(publications: [Media.video(1)])
        call.workers[2].call.connect(1)
        call.alignClocks()
        call.wire(Media.video(1), from: 2, to: [1])
        // Packets that the old home worker still relays are dropped.
        call.sendVideo(5, isKeyframe: true)
        call.run(milliseconds: 20)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
        for step in 0..<5 as Range<UInt16> {
            call.workers[2].call.sendVideo(
                from: 1,
                sequence: step,
                pictureID: 100 + step,
                isKeyframe: step == 0
            )
            call.run(milliseconds: 20)
        }
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 10)
        #expect(call.viewer(1).numbers(of: 0xaaaa).isContiguous)
        #expect(ledgers[1].violations == 0)
    }

    @Test func `an end gives everything back`() throws {
        var call = try Self.busyCall()
        let before = call.workers[1].call.occupancy.encodings
        call.busy = []
        call.exchange()
        for publication in [0, 1] as [UInt32] {
            call.workers[1].call.apply(.unmirror(RelayedCall.mirrorID(publication)))
        }
        #expect(call.workers[1].call.occupancy.encodings == before - 2)
        call.run(milliseconds: 100)
        #expect(call.workers[1].call.core.receiver.pool.used == 1)
        #expect(call.workers[1].call.core.receiver.mirrorsDue == nil)
        call.workers[0].call.apply(.close(call.workers[0].call.peers[0].id))
        #expect(call.workers[0].call.core.relays.relayedCount == 0)
    }
}
