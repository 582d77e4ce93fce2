import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Samples for the metrics of all peers' paths and connections.
struct PathSampleTests {
    /// Sends a viewer's report on its video, with the echo of a report of ours that old.
    private func report(_ call: inout Call, lost: UInt8, roundTrip milliseconds: Int64 = 80) {
        let then = call.core.transports.ntp(at: call.now.advanced(milliseconds: -milliseconds))
        var report = ReceptionReport(ssrc: SSRC(rawValue: 0xaaaa))
        report.lastSenderReport = then.compact
        report.fractionLost = lost
        report.jitter = 1_800
        let reports = [report]
        call.sendRTCP(from: 1) { output in
            ReceiverReport.encode(
                sender: SSRC(rawValue: 1),
                reports: reports.span,
                into: &output
            )
        }
    }

    @Test func `a viewer counts once a second, however often it reports`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        for _ in 0..<10 {
            for lost in [0, 128, 64] as [UInt8] { report(&call, lost: lost) }
            call.run(milliseconds: 100)
        }
        call.run(milliseconds: 50)
        var viewers = call.statistics().paths.viewers
        #expect(viewers.loss.count == 1 && viewers.loss.sum == 0.25)
        #expect(viewers.jitter.count == 1 && viewers.jitter.sum == 0.02)
        #expect(viewers.roundTrip.count == 1)
        #expect(abs(viewers.roundTrip.sum - 0.08) < 0.001)
        // Without further reports the old ones are not sampled again.
        call.run(milliseconds: 5_000)
        viewers = call.statistics().paths.viewers
        #expect(viewers.loss.count == 1 && viewers.roundTrip.count == 1)
        report(&call, lost: 0)
        call.run(milliseconds: 1_100)
        #expect(call.statistics().paths.viewers.loss.count == 2)
    }

    @Test func `a publisher's loss and jitter are those of our own reports`() throws {
        var call = try ForwardingTests.call()
        for sequence in 0..<40 as Range<UInt16> where sequence % 4 != 3 {
            call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: sequence == 0)
        }
        call.run(milliseconds: 1_500)
        let publishers = call.statistics().paths.publishers
        #expect(publishers.loss.count == 1 && publishers.loss.sum > 0.1)
        #expect(publishers.jitter.count == 1)
        #expect(call.statistics().paths.viewers.loss.count == 0)
    }

    @Test func `a publisher's round trips are those of checks that were sent once`() throws {
        var call = try ForwardingTests.call()
        call.run(milliseconds: 20_000)
        let before = call.statistics().paths.publishers.roundTrip
        // Only the publisher's own checks count, about one in five seconds.
        #expect((2...5).contains(before.count) && before.sum == 0)

        // Two answers are lost; the third may be to any of the three checks.
        let path = call.peers[0].path
        var checks = 0
        call.answers = { asked in
            guard asked == path else { return true }
            checks += 1
            return checks > 2
        }
        while checks < 3 { call.run(milliseconds: 50) }
        #expect(call.statistics().paths.publishers.roundTrip.count == before.count)
        call.run(milliseconds: 7_000)
        #expect(call.statistics().paths.publishers.roundTrip.count > before.count)
    }

    @Test func `the time to connect begins with the offer`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.run(milliseconds: 400)
        call.connect(0)
        let connections = call.statistics().connections
        #expect(connections.seconds.count == 1)
        #expect((0.4...0.5).contains(connections.seconds.sum))
        #expect(connections.failures.isEmpty)
    }

    enum End: CaseIterable, CustomTestStringConvertible {
        case noCheck, noHandshake, halfHandshake, closed, closedAfterCheck, fingerprint

        var cause: ConnectionOutcomes.Failure {
            switch self {
            case .noCheck: .iceTimeout
            case .noHandshake: .dtlsTimeout
            case .halfHandshake: .handshake
            case .closed: .closedBeforeICE
            case .closedAfterCheck: .closedBeforeDTLS
            case .fingerprint: .fingerprint
            }
        }

        var testDescription: String { "\(self): \(cause.rawValue)" }
    }

    @Test(arguments: End.allCases)
    func `a transport that is never connected is counted once, by its cause`(_ end: End) throws {
        var call = try Call()
        let other = try DTLSIdentity().fingerprint
        call.join(slots: [Media.slot(0)], fingerprints: end == .fingerprint ? [other] : nil)
        let id = call.peers[0].id
        switch end {
        case .noCheck, .closed: break
        case .noHandshake, .closedAfterCheck:
            // Without an answer to its check the peer begins no handshake.
            call.loses = { toCore, _ in !toCore }
            call.connect(0)
        case .halfHandshake:
            call.loses = { toCore, datagram in !toCore && (20...63).contains(datagram[0]) }
            call.connect(0)
        case .fingerprint: call.connect(0)
        }
        switch end {
        case .noCheck, .noHandshake, .halfHandshake:
            call.silent = [0]
            call.run(milliseconds: 31_000)
        case .closed, .closedAfterCheck, .fingerprint: break
        }
        // The control plane closes it in any case.
        call.apply(.close(id))
        let connections = call.statistics().connections
        #expect(connections.failures == [end.cause: 1])
        #expect(connections.seconds.count == 0)
        #expect(connections.timedOut == 0 && connections.closedByPeer == 0)
    }

    @Test func `each reason is a cause`() {
        typealias Failure = ConnectionOutcomes.Failure
        #expect(Failure(.timeout, hasPath: false) == .iceTimeout)
        #expect(Failure(.timeout, hasPath: true) == .dtlsTimeout)
        #expect(Failure(.closed, hasPath: true) == .closedBeforeDTLS)
        #expect(Failure(.handshakeFailed, hasPath: true) == .handshake)
        #expect(Failure(.fingerprintMismatch, hasPath: true) == .fingerprint)
        #expect(Failure(.noSRTPProfile, hasPath: true) == .profile)
    }

    @Test func `a connected transport that ends is no failure to connect`() throws {
        var call = try ForwardingTests.call()
        var sent = Batch(capacity: 4)
        call.peers[1].peer.close(into: &sent)
        call.deliver(&sent, from: 1)
        call.silent = [0]
        call.run(milliseconds: 31_000)
        for peer in [0, 1] { call.apply(.close(call.peers[peer].id)) }
        let connections = call.statistics().connections
        #expect(connections.closedByPeer == 1 && connections.timedOut == 1)
        #expect(connections.failures.isEmpty && connections.seconds.count == 2)
    }

    @Test func `a transport that an earlier process opened is not counted again`() throws {
        var call = try Call(isSaved: true)
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.restart(after: 100)
        #expect(call.statistics().connections == ConnectionOutcomes())
    }

    @Test func `nor is one that cannot go on`() throws {
        var call = try Call()
        call.join(slots: [Media.slot(0)])
        let id = call.peers[0].id
        call.apply(.resume(id, wasConnected: true))
        let events = call.takeEvents()
        #expect(events.contains(.transport(id, .disconnected(.timeout))))
        #expect(call.statistics().connections == ConnectionOutcomes())
    }

    @Test func `outcomes add up`() {
        var first = ConnectionOutcomes()
        first.seconds.add(0.2)
        first.note(.iceTimeout)
        first.timedOut = 2
        var second = ConnectionOutcomes()
        second.note(.iceTimeout)
        second.note(.handshake)
        second.closedByPeer = 1
        first += second
        #expect(first.failures == [.iceTimeout: 2, .handshake: 1])
        #expect(first.seconds.count == 1 && first.timedOut == 2 && first.closedByPeer == 1)
    }
}
