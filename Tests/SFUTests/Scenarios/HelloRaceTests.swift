import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// ClientHellos of attackers while peers join: they reach no association but their own.
///
/// A server that took the first ClientHello to arrive would let an attacker that sends one between
/// a peer's ICE check and its ClientHello end the peer's handshake before it began.
struct HelloRaceTests {
    /// Makes a client's first flight, once unchanged and once with unacceptable suites.
    private static func hellos(_ identity: DTLSIdentity, at now: Instant) throws -> [[UInt8]] {
        var association = try DTLSAssociation(
            identity: identity,
            role: .client,
            fingerprints: [identity.fingerprint],
            at: now
        )
        let hello = [UInt8](capacity: Batch.maximumLength) { output in
            _ = association.nextDatagram(into: &output)
        }
        // After both headers, the version and the random: session id, cookie, suites.
        let session = 13 + 12 + 2 + 32
        let cookie = session + 1 + Int(hello[session])
        let suites = cookie + 1 + Int(hello[cookie])
        let length = Int(hello.u16(suites))
        try #require(length > 0 && suites + 2 + length < hello.count)
        var spoiled = hello
        for place in 0..<length / 2 {
            spoiled.replaceSubrange(suites + 2 + 2 * place..<suites + 4 + 2 * place, with: [0, 1])
        }
        return [hello, spoiled]
    }

    /// E2: the peer's address is validated, and its own ClientHello has not arrived.
    @Test func `E2 none of a thousand peers loses the race against a stranger's hello`() throws {
        var call = try Call()
        let hellos = try Self.hellos(call.identity, at: call.now)
        var noise = SeededRandom(seed: 20_261_121)
        for _ in 0..<Noise.count(1_000) {
            let index = call.join()
            // The answer to the first check is lost, so the peer's ClientHello waits for the
            // second.
            call.loses = { toCore, _ in !toCore }
            var sent = Batch(capacity: 4)
            call.peers[index].peer.connect(
                fragment: "core\(index)",
                password: "corepassword\(index)-0123456789",
                fingerprint: call.identity.fingerprint,
                at: call.now,
                into: &sent
            )
            call.deliver(&sent, from: index)
            let isValidated = call.core.transports[TransportIndex(index)].path != nil
            try #require(isValidated)
            for _ in 0..<Int.random(in: 1...20, using: &noise) {
                let path = Path.from(port: UInt16.random(in: 1...60_000, using: &noise))
                call.inject(hellos[Int.random(in: 0...1, using: &noise)], on: path)
                if Int.random(in: 0..<4, using: &noise) == 0 { call.run(milliseconds: 1) }
            }
            call.loses = { _, _ in false }
            for _ in 0..<50 where !call.peers[index].peer.isConnected {
                call.run(milliseconds: 10)
            }
            let isConnected = call.peers[index].peer.isConnected
            #expect(isConnected && !call.peers[index].isRefused)
            call.apply(.close(call.peers[index].id))
        }
        #expect(call.misdirected == 0)
    }

    /// E1: a flood of spoofed ClientHellos, before and while a hundred peers join.
    @Test func `E1 a hundred join through a hundred thousand spoofed hellos`() throws {
        var call = try Call()
        let hellos = try Self.hellos(call.identity, at: call.now)
        var noise = SeededRandom(seed: 20_261_122)
        let share = Noise.count(100_000) / 100
        for _ in 0..<100 {
            let index = call.join()
            for _ in 0..<share {
                let host = UInt32.random(in: 0...(.max), using: &noise)
                let port = UInt16.random(in: 1...60_000, using: &noise)
                let hello = hellos[Int.random(in: 0...1, using: &noise)]
                call.inject(hello, on: .from(port: port, host: host))
            }
            call.connect(index)
            let isConnected = call.peers[index].peer.isConnected
            #expect(isConnected)
        }
        #expect(call.misdirected == 0)
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.unknownSource.index] == UInt64(100 * share))
        #expect(statistics.isBalanced)
    }
}
