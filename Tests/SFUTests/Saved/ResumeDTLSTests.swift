import LoadPeer
import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

/// DTLS associations go on after the process has died.
struct ResumeDTLSTests {
    /// A publisher of sound, and its viewer.
    private func call() throws -> Call {
        var call = try Call(isSaved: true)
        call.join(publications: [Media.audio(0)])
        call.join(slots: [Media.slot(0, kind: .audio, ssrc: 0xa100)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 0)
        _ = call.takeEvents()
        return call
    }

    private func sendSound(_ number: UInt16, in call: inout Call) {
        let packet = Media.packet(
            payloadType: 111,
            sequence: number,
            timestamp: UInt32(number) &* 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: Array(repeating: 1, count: 40)
        )
        call.send(packet, from: 0)
    }

    private func ends(_ call: inout Call) -> [WorkerEvent] {
        call.takeEvents().filter { event in
            if case .transport(_, .disconnected) = event { true } else { false }
        }
    }

    @Test(arguments: [0, 1, 2])
    func `a transport says goodbye in any life`(lives: Int) throws {
        var call = try call()
        for _ in 0..<lives { call.restart(after: 60) }
        let wasClosed = call.peers[1].peer.isClosed
        call.apply(.close(call.peers[1].id))
        call.settle()
        let isClosed = call.peers[1].peer.isClosed
        #expect(!wasClosed && isClosed)
    }

    @Test(arguments: [0, 1, 2])
    func `a peer's goodbye is heard and answered in any life`(lives: Int) throws {
        var call = try call()
        for _ in 0..<lives { call.restart(after: 60) }
        let answers = Recorder()
        call.inspects = { _, datagram in
            if datagram.first == 21 { answers.datagrams.append(datagram) }
        }
        var sent = Batch(capacity: 4)
        call.peers[1].peer.close(into: &sent)
        call.deliver(&sent, from: 1)
        call.settle()
        #expect(ends(&call) == [.transport(call.peers[1].id, .disconnected(.closed))])
        #expect(answers.datagrams.map(\.count) == [39])
    }

    final class Recorder {
        var datagrams: [[UInt8]] = []
    }

    @Test func `what was said in an earlier life is not answered again`() throws {
        var call = try Call(isSaved: true)
        call.join(slots: [Media.slot(0, kind: .audio, ssrc: 0xa100)])
        // The first copy of our last flight is lost, so that the peer repeats its own.
        let said = Recorder()
        let lost = Recorder()
        call.loses = { toCore, datagram in
            guard let first = datagram.first, 20...25 ~= first else { return false }
            if toCore { said.datagrams.append(datagram) }
            guard !toCore, first == 20, lost.datagrams.isEmpty else { return false }
            lost.datagrams.append(datagram)
            return true
        }
        call.connect(0)
        call.restart(after: 60)
        let answers = Recorder()
        call.inspects = { _, datagram in
            if let first = datagram.first, 20...25 ~= first { answers.datagrams.append(datagram) }
        }
        #expect(lost.datagrams.count == 1 && !said.datagrams.isEmpty)
        for datagram in said.datagrams { call.inject(datagram, on: call.peers[0].path) }
        call.settle()
        #expect(answers.datagrams.isEmpty)
    }

    @Test func `a last flight that was lost with the process is sent by the next one`() throws {
        var call = try Call(isSaved: true)
        call.join(slots: [Media.slot(0, kind: .audio, ssrc: 0xa100)])
        call.loses = { toCore, datagram in !toCore && datagram.first == 20 }
        call.connect(0)
        let before = call.peers[0].peer.isConnected
        call.restart(after: 60)
        call.loses = { _, _ in false }
        call.run(milliseconds: 1_000)
        let after = call.peers[0].peer.isConnected
        #expect(!before && after)
        #expect(ends(&call).isEmpty)
    }

    /// With 1,120 spoiled, the association has no key length.
    @Test(arguments: [nil, 1_120])
    func `a hello to a resumed transport starts nothing`(damaged: Int?) throws {
        var call = try call()
        if let damaged { call.life?.damage(byteOf: .transports, element: 1, at: damaged) }
        call.restart(after: 60)
        var client = try DTLSAssociation(
            identity: call.identity,
            role: .client,
            fingerprints: [call.identity.fingerprint],
            at: call.now
        )
        let taken = takeDatagram(&client)
        let hello = try #require(taken)
        let answers = Recorder()
        call.inspects = { _, datagram in
            if let first = datagram.first, 20...25 ~= first { answers.datagrams.append(datagram) }
        }
        call.inject(hello, on: call.peers[1].path)
        for _ in 0..<40 { call.run(milliseconds: 1_000) }
        #expect(ends(&call).isEmpty && answers.datagrams.isEmpty)
        let before = call.peers[1].received.count
        sendSound(7, in: &call)
        #expect(call.peers[1].received.count == before + 1)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `no nonce is used twice, and nothing is read twice, over many lives`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var record = SavedTransport()
        record.dtls.keyLength = 16
        record.dtls.writeNext = 1
        record.dtls.nonceOffset = .max - 20
        // Both directions have the same key, so that it can read its own records.
        unsafe withUnsafeMutablePointer(to: &record) { record in
            var nonces: Set<[UInt8]> = []
            var records: [[UInt8]] = []
            var read: Set<[UInt8]> = []
            var count = 0
            // The process dies after any of them.
            for _ in 0..<40 {
                var state = unsafe record.pointee.dtls
                var layer = DTLSRecordTests.Pair.layer(&state)
                unsafe layer.save(at: SavedPlace(record))
                for _ in 0..<Int.random(in: 0...5, using: &random) {
                    let sealed = DTLSRecordTests.seal([1, 2], by: &layer)
                    nonces.insert(Array(sealed[13..<21]))
                    records.append(sealed)
                    count += 1
                }
                for old in records.suffix(10).shuffled(using: &random) {
                    let isNew = read.insert(old).inserted
                    let content = [UInt8](capacity: 100) { _ = layer.open(old.span, into: &$0) }
                    #expect(content == (isNew ? [1, 2] : []))
                }
            }
            #expect(nonces.count == count && count > 40)
        }
    }
}
