import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Gates that are open under the lease of a home at another node.
struct LeaseTests {
    static let mirror = RelayedCall.mirrorID(1)

    /// Makes a call whose second worker has its video mirror under lease 3.
    private func call() throws -> RelayedCall {
        let call = try RelayFenceTests.busyCall()
        call.workers[1].call.apply(.lease(Self.mirror, of: 3))
        return call
    }

    private func review(_ call: inout RelayedCall, endsIn milliseconds: Int64) {
        let now = call.workers[1].call.now
        call.workers[1].call.core.reviewLeases(at: now) { home in
            home == 3
                ? now.advanced(milliseconds: milliseconds) : Instant(nanoseconds: .max)
        }
    }

    @Test func `what lies in the ring does not leave once the lease is over`() throws {
        var call = try call()
        let hasLeases = call.workers[1].call.core.hasLeases
        #expect(hasLeases)
        for step in 5..<15 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
        review(&call, endsIn: 0)
        call.busy = []
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
    }

    @Test func `a lease that goes on leaves the gate as it is`() throws {
        var call = try call()
        review(&call, endsIn: 500)
        for step in 5..<15 as Range<UInt16> { call.sendVideo(step, isKeyframe: false) }
        call.busy = []
        call.run(milliseconds: 5)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 15)
    }

    @Test func `the gate opens again with the lease, as the home wants it by then`() throws {
        for isMuted in [false, true] {
            var call = try call()
            review(&call, endsIn: 0)
            call.workers[1].call.apply(.gate(Self.mirror, open: !isMuted))
            call.busy = []
            call.sendVideo(5, isKeyframe: true)
            call.run(milliseconds: 5)
            #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
            review(&call, endsIn: 500)
            call.run(milliseconds: 20)
            call.sendVideo(6, isKeyframe: true)
            call.run(milliseconds: 5)
            #expect(call.viewer(1).numbers(of: 0xaaaa).count == (isMuted ? 5 : 6))
        }
    }

    /// Number of packets at the viewer after one more, with these leases in force.
    private func seen(_ call: inout RelayedCall, _ step: UInt16, under leases: Set<Int>) -> Int {
        let now = call.workers[1].call.now
        call.workers[1].call.core.reviewLeases(at: now) { home in
            leases.contains(home) ? now.advanced(milliseconds: 500) : now
        }
        call.run(milliseconds: 20)
        call.sendVideo(step, isKeyframe: true)
        call.run(milliseconds: 5)
        return call.viewer(1).numbers(of: 0xaaaa).count
    }

    @Test func `another lease takes the place of one when it has begun`() throws {
        var call = try call()
        call.busy = []
        #expect(seen(&call, 5, under: [3]) == 6)
        call.workers[1].call.apply(.lease(Self.mirror, of: 4))
        #expect(seen(&call, 6, under: [3]) == 7, "the new one has not begun")
        #expect(seen(&call, 7, under: [3, 4]) == 8)
        #expect(seen(&call, 8, under: [3]) == 8, "the former one counts no longer")
        #expect(seen(&call, 9, under: [4]) == 9)
    }

    @Test func `another lease takes the place of one that is over`() throws {
        var call = try call()
        call.busy = []
        call.workers[1].call.apply(.lease(Self.mirror, of: 4))
        #expect(seen(&call, 5, under: []) == 5)
        // Its number is another home's by now.
        #expect(seen(&call, 6, under: [3]) == 5)
        #expect(seen(&call, 7, under: [4]) == 6)
    }

    @Test(arguments: [false, true]) func `without a lease the gate is as the home wants it`(
        isMuted: Bool
    ) throws {
        var call = try call()
        call.busy = []
        #expect(seen(&call, 5, under: []) == 5)
        call.workers[1].call.apply(.gate(Self.mirror, open: !isMuted))
        call.workers[1].call.apply(.lease(Self.mirror, of: nil))
        let hasLeases = call.workers[1].call.core.hasLeases
        #expect(!hasLeases)
        #expect(seen(&call, 6, under: []) == (isMuted ? 5 : 6))
    }

    @Test func `a publication that ends is under no lease any more`() throws {
        var call = try call()
        call.busy = []
        call.workers[1].call.apply(.bind(RelayTests.slot, nil))
        call.workers[1].call.apply(.unmirror(Self.mirror))
        let hasLeases = call.workers[1].call.core.hasLeases
        #expect(!hasLeases)
        review(&call, endsIn: 0)
    }
}
