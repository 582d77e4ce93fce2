import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// F5: conditions for moving media to another address while the one in use is alive.
struct PathMoveTests {
    private static let elsewhere = Path.from(port: 6_666, host: 0x0a00_0001)

    /// Makes a call of a publisher (0) and two viewers (1 and 2).
    static func call() throws -> Call {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        call.connect(2)
        call.bind(slot: 5, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        return call
    }

    /// Returns a check that a peer sends now, as an on-path observer sees it.
    private static func check(of index: Int, in call: inout Call) -> [UInt8] {
        let sent = Captured()
        call.loses = { toCore, datagram in
            if toCore, datagram[0] == 0, datagram[1] == 1 { sent.bytes = datagram }
            return false
        }
        call.check(from: index)
        call.loses = { _, _ in false }
        return sent.bytes
    }

    private final class Captured { var bytes: [UInt8] = [] }

    private static func received(_ call: borrowing Call) -> [Int] {
        call.peers.map(\.received.count)
    }

    @Test func `F5 a check sent again from elsewhere moves nothing`() throws {
        var call = try Self.call()
        let check = Self.check(of: 1, in: &call)
        for round in 0..<40 {
            call.inject(check, on: Self.elsewhere)
            call.settle()
            call.run(milliseconds: 100)
            call.sendVideo(
                sequence: UInt16(2 + round),
                pictureID: UInt16(2 + round),
                isKeyframe: false
            )
        }
        let received = Self.received(call)
        #expect(received == [0, 41, 41])
        // Only answers to the checks, and our own checks: no media, no RTCP.
        #expect(call.misdirected == 80)
        let path = call.core.transports[1].path
        #expect(path == call.peers[1].path)
    }

    @Test func `F5 a participant that forges another's address takes nothing from it`() throws {
        var call = try Self.call()
        let check = Self.check(of: 2, in: &call)
        for round in 0..<40 {
            // The peer's own check, authentic in all but the address.
            call.inject(check, on: call.peers[1].path)
            call.settle()
            call.sendVideo(
                sequence: UInt16(2 + round),
                pictureID: UInt16(2 + round),
                isKeyframe: false
            )
            call.run(milliseconds: 33)
        }
        let received = Self.received(call)
        #expect(received == [0, 41, 41])
        #expect(call.peers[1].undecryptable == 0)
        let owner = call.core.transports.paths[call.peers[1].path]
        #expect(owner == 1)
    }

    @Test func `F4 a peer that moves is followed with its next check`() throws {
        var call = try Self.call()
        call.peers[1].path = Self.elsewhere
        call.check(from: 1)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let received = Self.received(call)
        #expect(received == [0, 2, 2])
    }

    @Test func `F4 a moved peer has no bandwidth limit until its new path is measured`()
        throws
    {
        var call = try Self.call()
        // Nothing arrives in response to what is sent: the old path has failed.
        for _ in 0..<40 {
            call.core.transports[1].bandwidth?.estimator.sent(
                1,
                bytes: 1_200,
                at: call.now,
                probe: nil
            )
            call.run(milliseconds: 100)
        }
        call.core.transports[1].bandwidth?.estimator.current = 12_000
        call.peers[1].path = Self.elsewhere
        call.check(from: 1)
        let estimate = call.core.transports[1].bandwidth?.estimator.estimate
        let usable = call.core.transports[1].bandwidth?.usableEstimate(at: call.now)
        #expect(estimate == PathBandwidth.startBitrate)
        #expect(usable == .some(nil))
        let due = call.core.transports[1].allocationDue
        #expect(due != nil || call.core.transports[1].allocatedAt == call.now)
    }

    @Test func `F4 a peer whose connection was lost has no limit until its path is measured`()
        throws
    {
        var call = try Self.call()
        let udp = call.peers[1].path
        let connections = [1, 2].map { number in
            Path(
                remote: Address(ipv4: 0x7f00_0001, port: 40_000 + number),
                local: Path.firstConnection | number
            )
        }
        call.peers[1].path = connections[0]
        call.check(from: 1)
        // Media falls back to UDP.
        call.core.transports[1].bandwidth?.estimator.current = 12_000
        call.core.lose(connections[0], at: call.now)
        var estimate = call.core.transports[1].bandwidth?.estimator.estimate
        #expect(estimate == PathBandwidth.startBitrate)
        // No path is left, and then there is another one.
        call.core.transports[1].bandwidth?.estimator.current = 12_000
        call.core.lose(udp, at: call.now)
        estimate = call.core.transports[1].bandwidth?.estimator.estimate
        #expect(estimate == 12_000)
        call.peers[1].path = connections[1]
        call.check(from: 1)
        estimate = call.core.transports[1].bandwidth?.estimator.estimate
        #expect(estimate == PathBandwidth.startBitrate)
        // The same one again is no other.
        call.core.transports[1].bandwidth?.estimator.current = 12_000
        call.check(from: 1)
        estimate = call.core.transports[1].bandwidth?.estimator.estimate
        #expect(estimate == 12_000)
    }

    @Test(arguments: [2, 200])
    func `A8 who nominates a thousand times a second harms nobody and keeps eight addresses`(
        addresses: Int
    ) throws {
        var call = try Self.call()
        let others = (1..<addresses).map { Path.from(port: 6_666, host: 0x0a00_0000 + UInt32($0)) }
        let paths = [call.peers[1].path] + others
        let before = call.occupancy
        var moves = 0
        for round in 0..<2_000 {
            call.peers[1].path = paths[round % addresses]
            let old = call.core.transports[1].path
            call.check(from: 1)
            let now = call.core.transports[1].path
            if now != old { moves += 1 }
            if round % 20 == 0 {
                let number = UInt16(2 + round / 20)
                call.sendVideo(sequence: number, pictureID: number, isKeyframe: false)
            }
            call.run(milliseconds: 1)
        }
        // Fifty a second from known addresses, and twenty times as many from others.
        #expect(moves <= (addresses == 2 ? 150 : 2_000), "\(moves)")
        let received = Self.received(call)
        #expect(received[2] == 101, "the other viewer")
        let kept = call.occupancy
        #expect(kept.paths <= before.paths + 7 && kept.transports == before.transports)

        call.run(milliseconds: 1_000)
        call.check(from: 1)
        call.sendVideo(sequence: 102, pictureID: 102, isKeyframe: false)
        let after = Self.received(call)
        #expect(after[1] == received[1] + 1 && after[2] == 102, "at the one that it named last")
    }

    /// Drops all of our checks.
    private static func silence(_ call: inout Call) {
        call.loses = { toCore, datagram in !toCore && datagram[0] == 0 && datagram[1] == 1 }
    }

    @Test func `F4 neither packets nor silence move media, only an answer to our check`() throws {
        var call = try Self.call()
        Self.silence(&call)
        let old = call.peers[1].path
        call.peers[1].path = Self.elsewhere
        call.check(from: 1)
        call.nack(1, from: 1, ssrc: 0xaaaa)
        call.run(milliseconds: 7_600)
        let before = call.core.transports[1].path
        #expect(before == old)
        call.loses = { _, _ in false }
        // Any packet from there triggers another check, which is answered now.
        call.nack(1, from: 1, ssrc: 0xaaaa)
        let after = call.core.transports[1].path
        #expect(after == Self.elsewhere)
    }

    @Test func `two peers that use an address in turn both get their media`() throws {
        var call = try Self.call()
        let address = call.peers[1].path
        call.peers[1].path = .from(port: 6_543)
        call.peers[2].path = address
        call.check(from: 2)
        call.check(from: 1)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let received = Self.received(call)
        #expect(received == [0, 2, 2])
        let undecryptable = call.peers.map(\.undecryptable)
        #expect(undecryptable == [0, 0, 0])
    }

    @Test func `an answer that nobody asked for means nothing`() throws {
        var call = try Self.call()
        call.inject(Self.check(of: 1, in: &call), on: Self.elsewhere)
        var noise = SeededRandom(seed: 5)
        for _ in 0..<1_000 {
            var answer: [UInt8] = [1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0]
            answer += [UInt8.random(in: 0...3, using: &noise)]
            answer += noise.bytes(8)
            call.inject(answer, on: Self.elsewhere)
        }
        let path = call.core.transports[1].path
        #expect(path == call.peers[1].path)
        #expect(call.statistics().isBalanced)
    }
}
