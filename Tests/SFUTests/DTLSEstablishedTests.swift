import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Established associations, which have no `SSL` object, against peers that are OpenSSL alone.
@Suite("DTLS after the handshake")
struct DTLSEstablishedTests {
    let here: DTLSIdentity
    let there: DTLSIdentity
    static let start = Instant(nanoseconds: 0)

    init() throws {
        here = try DTLSIdentity()
        there = try DTLSIdentity()
    }

    /// Our association and OpenSSL's, connected over a path that may lose what we send.
    final class Meeting {
        var ours: DTLSAssociation
        let peer: OpenSSLPeer
        var isConnected = false
        var isClosed = false
        /// Datagrams from us that are to be lost.
        var losses = 0
        /// All that the peer has sent.
        var history: [[UInt8]] = []
        var now = DTLSEstablishedTests.start

        init(
            _ here: DTLSIdentity,
            _ there: DTLSIdentity,
            as role: DTLSRole,
            suite: String? = nil
        )
            throws
        {
            ours = try DTLSAssociation(
                identity: here,
                role: role,
                fingerprints: [there.fingerprint],
                at: DTLSEstablishedTests.start
            )
            peer = OpenSSLPeer(
                there,
                role == .client ? .server : .client,
                expects: here.fingerprint,
                suite: suite
            )
        }

        /// Passes on all datagrams; returns those that we sent.
        @discardableResult
        func settle() -> [[UInt8]] {
            var sent: [[UInt8]] = []
            while true {
                if let datagram = takeDatagram(&ours) {
                    sent.append(datagram)
                    if losses > 0 { losses -= 1 } else { peer.receive(datagram) }
                } else if let datagram = peer.takeDatagram() {
                    history.append(datagram)
                    deliver(datagram)
                } else {
                    return sent
                }
            }
        }

        func deliver(_ datagram: [UInt8]) {
            switch ours.receive(datagram.span, at: now) {
            case .connected: isConnected = true
            case .closed: isClosed = true
            case .handshaking, .established, .failed: break
            }
        }
    }

    struct Setting: Sendable, CustomTestStringConvertible {
        var role: DTLSRole
        var suite: String
        var testDescription: String { "as \(role) with \(suite)" }
    }

    static let settings = [DTLSRole.client, .server].flatMap { role in
        ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"].map {
            Setting(role: role, suite: $0)
        }
    }

    @Test(arguments: settings)
    func `OpenSSL's goodbye ends it, and is answered`(setting: Setting) throws {
        let meeting = try Meeting(here, there, as: setting.role, suite: setting.suite)
        meeting.settle()
        #expect(meeting.isConnected && meeting.peer.isConnected)
        // Data channels are not served; what arrives for them ends nothing.
        for _ in 0..<100 { meeting.peer.write([1, 2, 3]) }
        let answers = meeting.settle()
        #expect(answers.isEmpty && !meeting.isClosed && meeting.history.count > 2)
        meeting.peer.close()
        let goodbye = meeting.settle()
        #expect(meeting.isClosed && meeting.peer.isClosed && goodbye.count == 1)
    }

    @Test(arguments: settings)
    func `OpenSSL takes our goodbye`(setting: Setting) throws {
        let meeting = try Meeting(here, there, as: setting.role, suite: setting.suite)
        meeting.settle()
        #expect(meeting.isConnected && !meeting.peer.isClosed)
        meeting.ours.close()
        let sent = meeting.settle()
        #expect(meeting.peer.isClosed && sent.count == 1)
    }

    @Test func `a peer that repeats its last flight gets ours, so often and so long`() throws {
        let meeting = try Meeting(here, there, as: .server)
        meeting.settle(losing: 2)
        #expect(meeting.isConnected && !meeting.peer.isConnected)
        var answers = 0
        // OpenSSL gives up after twelve.
        for _ in 0..<12 {
            meeting.losses = 1
            meeting.peer.repeatFlight()
            let before = meeting.history.reduce(0) { $0 + $1.count }
            let sent = meeting.settle()
            let heard = meeting.history.reduce(0) { $0 + $1.count } - before
            #expect(sent.reduce(0) { $0 + $1.count } <= heard)
            answers += sent.count
        }
        #expect(answers == 10)

        let other = try Meeting(here, there, as: .server)
        other.settle(losing: 2)
        other.now = Self.start.advanced(milliseconds: 239_000)
        other.losses = 1
        other.peer.repeatFlight()
        #expect(other.settle().count == 1)
        other.now = Self.start.advanced(milliseconds: 240_000)
        other.peer.repeatFlight()
        #expect(other.settle().isEmpty && !other.peer.isConnected)
        other.now = Self.start.advanced(milliseconds: 239_000)
        other.peer.repeatFlight()
        other.settle()
        #expect(other.peer.isConnected)
        other.ours.close()
        other.settle()
        #expect(other.peer.isClosed)
    }

    @Test func `a client does not answer the server's repeated last flight`() throws {
        let meeting = try Meeting(here, there, as: .client)
        // The server's last flight waits until the client has asked for it twice.
        var held: [[UInt8]] = []
        while held.isEmpty {
            while let datagram = takeDatagram(&meeting.ours) { meeting.peer.receive(datagram) }
            while let datagram = meeting.peer.takeDatagram() {
                if meeting.peer.isConnected {
                    held.append(datagram)
                } else {
                    meeting.deliver(datagram)
                }
            }
        }
        meeting.now = Self.start.advanced(milliseconds: 200)
        _ = meeting.ours.expire(at: meeting.now)
        while let datagram = takeDatagram(&meeting.ours) { meeting.peer.receive(datagram) }
        while let datagram = meeting.peer.takeDatagram() { held.append(datagram) }
        #expect(held.count == 2 && held[0] != held[1])
        meeting.deliver(held[0])
        #expect(meeting.isConnected)
        meeting.deliver(held[1])
        #expect(takeDatagram(&meeting.ours) == nil && !meeting.isClosed)
    }

    @Test func `nothing that was said in the handshake is answered when it is said again`() throws {
        let meeting = try Meeting(here, there, as: .server)
        meeting.settle()
        for datagram in meeting.history + meeting.history { meeting.deliver(datagram) }
        #expect(meeting.settle().isEmpty && !meeting.isClosed)
        // A plain ClientHello is no more than that, and an encrypted one is declined.
        let hello = OpenSSLPeer(there, .client, expects: here.fingerprint).takeDatagram()
        meeting.deliver(try #require(hello))
        #expect(meeting.settle().isEmpty && !meeting.isClosed)
        meeting.peer.renegotiate()
        meeting.losses = 1
        let declined = meeting.settle()
        #expect(declined.map(\.count) == [39] && declined.first?.first == 21)
        #expect(!meeting.isClosed)
        meeting.ours.close()
        #expect(meeting.settle().count == 1)
    }

    /// Splits a datagram into its records.
    static func records(of datagram: [UInt8]) -> [[UInt8]] {
        var records: [[UInt8]] = []
        var start = 0
        while let header = DTLSRecordHeader(at: start, of: datagram.span) {
            records.append(Array(datagram[start..<header.end]))
            start = header.end
        }
        return records
    }

    @Test(arguments: 1...24)
    func `each record of each flight may be lost`(lost: Int) throws {
        var link = try DTLSLink(client: there, server: here)
        var number = 0
        link.run { _, datagram in
            Self.records(of: datagram).filter { _ in
                number += 1
                return number != lost
            }.flatMap(\.self)
        }
        try expectGoodbye(&link, closing: lost.isMultiple(of: 2) ? .client : .server)
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `records lost, doubled and out of order are survived`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var link = try DTLSLink(client: there, server: here)
        link.run { _, datagram in
            var records = Self.records(of: datagram)
            records += records.filter { _ in Int.random(in: 0..<10, using: &random) < 3 }
            records.removeAll { _ in Int.random(in: 0..<10, using: &random) < 2 }
            records.shuffle(using: &random)
            return records.flatMap(\.self)
        }
        try expectGoodbye(&link, closing: seed.isMultiple(of: 2) ? .client : .server)
    }

    private func expectGoodbye(_ link: inout DTLSLink, closing: DTLSRole) throws {
        let client = try #require(link.clientEnd.keys)
        let server = try #require(link.serverEnd.keys)
        let mirrored = Digest.equal(client.local, server.remote)
        #expect(mirrored)
        switch closing {
        case .client: link.client.close()
        case .server: link.server.close()
        }
        link.exchange()
        #expect(closing == .client ? link.serverEnd.isClosed : link.clientEnd.isClosed)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `changed records end nothing`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let meeting = try Meeting(here, there, as: seed.isMultiple(of: 2) ? .client : .server)
        meeting.settle()
        for _ in 0..<20 { meeting.peer.write([7]) }
        meeting.peer.close()
        var last: [UInt8] = []
        while let datagram = meeting.peer.takeDatagram() {
            for _ in 0..<20 {
                var changed = datagram
                let place = Int.random(in: 0..<datagram.count, using: &random)
                changed[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                // A changed length hides the records behind it; none before it is a goodbye.
                if place >= datagram.count - 39 { meeting.deliver(changed) }
            }
            last = datagram
        }
        #expect(!meeting.isClosed && takeDatagram(&meeting.ours) == nil)
        meeting.deliver(last)
        #expect(meeting.isClosed)
    }
}

extension DTLSEstablishedTests.Meeting {
    /// Passes on all datagrams, but loses our second one: the last flight.
    func settle(losing number: Int) {
        var sent = 0
        while true {
            if let datagram = takeDatagram(&ours) {
                sent += 1
                if sent != number { peer.receive(datagram) }
            } else if let datagram = peer.takeDatagram() {
                history.append(datagram)
                deliver(datagram)
            } else {
                return
            }
        }
    }
}
