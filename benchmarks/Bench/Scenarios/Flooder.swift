import Foundation
import Kernel
import RTP
import SFU
import Sockets
import WorkerInterface

/// Address and USERNAME for connectivity checks to a client's transport.
struct FloodTarget: Sendable {
    var address: Address
    /// USERNAME: both fragments.
    var username: String
}

/// Sender of forged handshakes and checks that counts the SFU's answers to the forged addresses.
struct Flooder: Sendable {
    var targets: [FloodTarget]
    /// ClientHellos, and checks: half of these name a real client, none has its password.
    var hellos: Int
    var checks: Int
    /// Rate of both together.
    var perSecond: Int

    struct Tally: Sendable {
        var sent = 0
        /// Datagrams that the kernel did not accept.
        var refused = 0
        var bytesOut = 0
        /// Bytes that the SFU sent to forged addresses.
        var bytesBack = 0
        var seconds = 0.0
    }

    /// 127.2.0.0/16, which the rest of the bench does not use.
    private static let firstAddress: UInt32 = 0x7f02_0001
    private static let addresses: UInt32 = 10_000

    /// Sends everything on a separate thread.
    func run() async throws -> Tally {
        let hello = try Self.hello()
        let socket = try UDPSocket.open(Address(ipv4: 0, port: 0))
        let tally = await withCheckedContinuation { waiter in
            let thread = Thread { waiter.resume(returning: send(hello, on: socket)) }
            thread.name = "flood"
            thread.start()
        }
        socket.close()
        return tally
    }

    /// Returns a client's first DTLS flight.
    private static func hello() throws -> [UInt8] {
        let identity = try DTLSIdentity(profiles: [.aeadAes128Gcm])
        var association = try DTLSAssociation(
            identity: identity,
            role: .client,
            fingerprints: [identity.fingerprint],
            at: .monotonic()
        )
        return [UInt8](capacity: Batch.maximumLength) { output in
            _ = association.nextDatagram(into: &output)
        }
    }

    private func send(_ hello: [UInt8], on socket: UDPSocket) -> Tally {
        var tally = Tally()
        var inbox = Inbox()
        var batch = Batch(capacity: 1)
        var random = SystemRandomNumberGenerator()
        var left = (hellos: hellos, checks: checks)
        let start = Instant.monotonic()
        while left.hellos + left.checks > 0, let target = targets.randomElement(using: &random) {
            let isHello =
                Int.random(in: 0..<left.hellos + left.checks, using: &random)
                < left.hellos
            if isHello { left.hellos -= 1 } else { left.checks -= 1 }
            let path = Path(remote: target.address, local: 0)
            batch.append(to: path) { bytes in
                if isHello {
                    for byte in hello { bytes.append(byte) }
                } else {
                    Self.check(of: target.username, &random, into: &bytes)
                }
            }
            tally.bytesOut += batch.length(at: 0)
            let host = Self.firstAddress + UInt32.random(in: 0..<Self.addresses, using: &random)
            let run = batch.run(from: 0, limit: 1)
            let source = Address(ipv4: host, port: 0)
            if socket.send(run, of: batch, source: source) != 0 { tally.refused += 1 }
            batch.removeAll()
            tally.sent += 1
            if tally.sent % 64 == 0 { pace(tally.sent, since: start) }
            if tally.sent % 1_024 == 0 { Self.drain(socket, &inbox, into: &tally) }
        }
        usleep(200_000)
        Self.drain(socket, &inbox, into: &tally)
        tally.seconds = Double(Instant.monotonic().nanoseconds(since: start)) / 1e9
        return tally
    }

    private static func check(
        of username: String,
        _ random: inout SystemRandomNumberGenerator,
        into bytes: inout OutputSpan<UInt8>
    ) {
        let isKnown = Bool.random(using: &random)
        let name = isKnown ? username : String(UInt64.random(in: 0...(.max), using: &random))
        let low = UInt64.random(in: 0...(.max), using: &random)
        STUNWriter.bindingRequest(
            TransactionID(high: 7, low: low),
            username: Array(name.utf8).span,
            priority: 1,
            tieBreaker: low,
            useCandidate: true,
            into: &bytes,
            integrity: { _ in InlineArray(repeating: UInt8(truncatingIfNeeded: low)) }
        )
    }

    /// Waits if it is ahead of its rate.
    private func pace(_ sent: Int, since start: Instant) {
        let due = start.advanced(
            nanoseconds: Int64(Double(sent) / Double(perSecond) * 1e9)
        )
        let ahead = due.nanoseconds(since: .monotonic())
        if ahead > 0 { usleep(UInt32(clamping: ahead / 1_000)) }
    }

    private static func drain(_ socket: UDPSocket, _ inbox: inout Inbox, into tally: inout Tally) {
        while inbox.receive(from: socket) == nil, inbox.count > 0 {
            for index in 0..<inbox.count { tally.bytesBack += inbox.length(index) }
        }
    }
}
