import LoadPeer
import RTP
import Testing
import WorkerInterface

@testable import SFU

/// L8: packets of a small room that arrive during a large room's batch.
struct BatchPreemptionTests {
    private static let crowd = 150

    /// Makes a speaker with many listeners, and a speaker with one.
    private static func call() throws -> Call {
        var call = try Call()
        call.join(publications: [Media.audio(0)])
        call.join(publications: [Media.audio(1)])
        for viewer in 0...UInt32(crowd) {
            call.join(slots: [Media.slot(viewer, kind: .audio, ssrc: 0x1_0000 + viewer)])
        }
        for peer in call.peers.indices { call.connect(peer) }
        for viewer in 0..<UInt32(crowd) { call.bind(slot: viewer, publication: 0) }
        call.bind(slot: UInt32(crowd), publication: 1)
        for speaker in 0...1 { call.send(packet(1), from: speaker) }
        return call
    }

    private static func packet(_ sequence: UInt16) -> [UInt8] {
        Media.packet(
            payloadType: 111,
            sequence: sequence,
            timestamp: UInt32(sequence) * 960,
            ssrc: 0x1111,
            payload: [1, 2, 3]
        )
    }

    /// Makes a speaker's packet as it appears on the wire.
    private static func datagram(_ call: inout Call, _ sequence: UInt16, from peer: Int) -> [UInt8]
    {
        var sent = Batch(capacity: 2)
        call.peers[peer].peer.sendRTP(packet(sequence).span, index: UInt64(sequence), into: &sent)
        return sent[0].indices.map { sent[0][$0] }
    }

    @Test func `L8 a small audience preempts a large batch, and nothing is sent twice`() throws {
        var call = try Self.call()
        let before = call.peers.map(\.received.count)
        let many = Self.datagram(&call, 2, from: 0)
        let next = Self.datagram(&call, 3, from: 0)
        let few = (2...3).map { Self.datagram(&call, $0, from: 1) }
        let paths = call.peers.map(\.path)
        let isAlone = call.mayOvertake(few[0], from: 1)
        #expect(!isAlone, "there is nothing to overtake")

        var output = Batch(capacity: Core.batchCapacity)
        call.core.receive(many.span, on: paths[0], at: call.now, into: &output)
        let isMore = call.core.flush(into: &output, at: call.now)
        #expect(isMore && output.count == Core.batchCapacity)
        call.hand(&output)

        call.core.preempt()
        let verdicts = [
            ("it would overtake itself", call.mayOvertake(next, from: 0), false),
            ("not a stream of that peer", call.mayOvertake(few[0], from: 2), false),
            ("a header that is cut off", call.mayOvertake([0x80, 111], from: 1), false),
            ("RTCP of a viewer", call.mayOvertake([0x80, 201, 0, 1], from: 3), true),
            ("a check", call.mayOvertake([0, 1, 0, 0], from: 1), true),
        ]
        for (name, found, isRight) in verdicts { #expect(found == isRight, "\(name)") }
        for datagram in few {
            let isTaken = call.mayOvertake(datagram, from: 1)
            #expect(isTaken)
            call.core.receive(datagram.span, on: paths[1], at: call.now, into: &output)
        }
        let isEvenMore = call.core.flush(into: &output, at: call.now)
        #expect(!isEvenMore && output.count == 2)
        call.hand(&output)
        call.core.resumePreempted()

        let isAnythingLeft = call.core.flush(into: &output, at: call.now)
        #expect(!isAnythingLeft && output.count == Self.crowd - Core.batchCapacity)
        call.hand(&output)
        call.core.receive(next.span, on: paths[0], at: call.now, into: &output)
        while call.core.flush(into: &output, at: call.now) { call.hand(&output) }
        call.hand(&output)

        for (index, peer) in call.peers.enumerated() {
            #expect(peer.received.count == before[index] + (index > 1 ? 2 : 0), "peer \(index)")
            #expect(peer.undecryptable == 0)
        }
        let statistics = call.statistics()
        #expect(statistics.isBalanced)
    }

    @Test func `L8 within a batch small audiences are served first`() throws {
        var call = try Self.call()
        let before = call.peers.map(\.received.count)
        let many = Self.datagram(&call, 2, from: 0)
        let few = Self.datagram(&call, 2, from: 1)
        let next = Self.datagram(&call, 3, from: 1)
        let paths = call.peers.map(\.path)
        var output = Batch(capacity: Core.batchCapacity)
        call.core.receive(many.span, on: paths[0], at: call.now, into: &output)
        call.core.receive(few.span, on: paths[1], at: call.now, into: &output)
        let isMore = call.core.flush(into: &output, at: call.now)
        #expect(isMore)
        let first = output.path(at: 0)
        #expect(first == paths.last)
        call.hand(&output)

        call.core.preempt()
        let mayOvertake = call.mayOvertake(next, from: 1)
        #expect(mayOvertake, "nothing of it is left in the batch")
        call.core.receive(next.span, on: paths[1], at: call.now, into: &output)
        while call.core.flush(into: &output, at: call.now) { call.hand(&output) }
        call.hand(&output)
        call.core.resumePreempted()
        while call.core.flush(into: &output, at: call.now) { call.hand(&output) }
        call.hand(&output)

        for (index, peer) in call.peers.enumerated() where index > 1 {
            let isLast = index == call.peers.count - 1
            #expect(peer.received.count == before[index] + (isLast ? 2 : 1), "peer \(index)")
        }
        let statistics = call.statistics()
        #expect(statistics.isBalanced)
    }

    @Test func `L8 a large audience does not preempt`() throws {
        var call = try Self.call()
        let many = Self.datagram(&call, 2, from: 0)
        call.core.preempt()
        let mayOvertake = call.mayOvertake(many, from: 0)
        #expect(!mayOvertake)
        call.core.resumePreempted()
    }
}

extension Call {
    fileprivate func mayOvertake(_ datagram: [UInt8], from peer: Int) -> Bool {
        core.mayOvertake(datagram.span, on: peers[peer].path)
    }

    /// Delivers the core's output to the peers.
    fileprivate mutating func hand(_ output: inout Batch) {
        for position in 0..<output.count {
            let path = output.path(at: position)
            guard let index = peers.firstIndex(where: { $0.path == path }) else { continue }
            _ = take(output[position].indices.map { output[position][$0] }, at: index)
        }
        output.removeAll()
    }
}
