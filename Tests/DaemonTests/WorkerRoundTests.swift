import LoadPeer
import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Order of a worker's round, as a recording port sees it.
struct WorkerRoundTests {
    @Test func `the steps of a round come in order`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        bench.port.arrived = [bench.check()]
        bench.port.relayed = 1
        let (isOpen, steps) = bench.run(applying: [.fence(epoch: 7)])
        #expect(isOpen)
        let fence = WorkerEvent.fenced(epoch: 7, at: bench.port.now, packets: 0)
        #expect(
            steps.dropFirst() == [
                .read(1),
                .resume, .relay, .send(1),
                .receiveRelayed, .relay, .send(0),
                .drain, .withdraw([]),
                .relay, .send(0),
                .expireConnections, .watch,
                .post([fence]),
            ]
        )
    }

    @Test func `commands take effect after the received batch was sent`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        // The check would earn no answer from a transport that is closed.
        bench.port.arrived = [bench.check()]
        bench.run(applying: [.close(RoundBench.transport)])
        #expect(bench.port.takeSent().count == 1)
        bench.port.arrived = [bench.check()]
        bench.run(applying: [])
        #expect(bench.port.takeSent().isEmpty)
    }

    @Test func `queued media is withdrawn before the events that promise it`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        let unbind = WorkerCommand.bind(RoundBench.slots[0].id, nil)
        let (_, steps) = bench.run(applying: [unbind, .fence(epoch: 1)])
        let withdrawal = steps.firstIndex(of: .withdraw([RoundBench.slots[0].ssrc]))
        let event = WorkerEvent.fenced(epoch: 1, at: bench.port.now, packets: 0)
        let promise = steps.firstIndex {
            if case .post(let events) = $0 { events.contains(event) } else { false }
        }
        #expect(try #require(withdrawal) < #require(promise))
    }

    @Test func `deferred datagrams come before new ones, without a sleep`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        let (old, new) = (bench.check(), bench.check())
        let isKept = bench.round.deferred.append(old.span, on: RecordingPort.path, arrival: 0)
        #expect(isKept)
        bench.port.arrived = [new]
        let before = bench.port.now
        let (_, steps) = bench.run(applying: [])
        #expect(steps.first == .sleep(until: before))
        let answers = bench.port.takeSent().map { Array($0[8..<20]) }
        #expect(answers == [old, new].map { Array($0[8..<20]) })
    }

    @Test func `without anything deferred, it sleeps until something is due`() throws {
        var bench = try RoundBench()
        let before = bench.port.now
        let (_, steps) = bench.run(applying: [])
        guard case .sleep(let deadline) = steps.first else {
            Issue.record("no sleep")
            return
        }
        #expect(deadline > before)
    }

    @Test func `media that came behind a goodbye in the same batch is sent`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        try bench.connect()
        let packet = bench.media(0)
        bench.port.arrived = [bench.goodbye(), packet]
        bench.run(applying: [])
        let sent = bench.port.takeSent()
        let slot = RoundBench.slots[0].ssrc
        #expect(bench.numbers(in: sent, of: slot) == [0])
        bench.port.arrived = [bench.media(1)]
        bench.run(applying: [])
        #expect(bench.port.takeSent().allSatisfy { $0[0] < 128 })
    }

    @Test func `a busy worker lets datagrams gather, but nothing that was deferred or relayed`()
        throws
    {
        var bench = try RoundBench()
        bench.port.sleepMilliseconds = 0
        func isPaused(_ steps: [RecordingPort.Step]) -> Bool {
            if case .rest = steps.first { true } else { false }
        }
        // Four at a time, and twelve more in each pause.
        bench.port.gathering = Array(repeating: [5, 5], count: 12)
        var paused = 0
        for _ in 0..<1_000 {
            let before = bench.port.now
            bench.port.arrived = Array(repeating: [5, 5], count: 4)
            let (_, steps) = bench.run(applying: [])
            if isPaused(steps) {
                paused += 1
                #expect(steps.contains(.read(16)))
                #expect(bench.port.now.nanoseconds(since: before) <= 500_000)
            }
            bench.port.now = bench.port.now.advanced(nanoseconds: 100_000)
        }
        #expect(paused > 500)
        bench.port.arrived = [[5, 5]]
        bench.run(applying: [])
        #expect(bench.round.pauseEnd != nil)
        bench.port.relayed = 1
        bench.run(applying: [])
        #expect(bench.round.pauseEnd == nil)
        bench.port.arrived = [[5, 5]]
        bench.run(applying: [])
        #expect(bench.round.pauseEnd != nil)
        let isKept = bench.round.deferred.append([5, 5].span, on: RecordingPort.path, arrival: 0)
        #expect(isKept && bench.round.pauseEnd == nil)
    }

    @Test func `a worker without media rests for 5 ms, until media or a command comes`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        try bench.connect()
        // Checks and reports go on, and figures are asked for.
        let last = bench.port.now
        for step in 0..<200 {
            bench.port.now = bench.port.now.advanced(milliseconds: 10)
            bench.port.arrived = [bench.check()]
            let (_, steps) = bench.run(
                applying: step % 50 == 0 ? [.report(token: UInt64(step))] : []
            )
            let rests = steps.compactMap { if case .rest(let end) = $0 { end } else { nil } }
            let isQuiet = bench.port.now.milliseconds(since: last) > 1_020
            #expect(rests.isEmpty || isQuiet)
            #expect(!isQuiet || bench.round.pauseEnd == bench.port.now.advanced(milliseconds: 5))
        }
        bench.port.arrived = [bench.media(0)]
        bench.run(applying: [])
        #expect(bench.round.pauseEnd == nil && !bench.port.takeSent().isEmpty)
        bench.port.now = bench.port.now.advanced(milliseconds: 1_100)
        bench.run(applying: [])
        #expect(bench.round.pauseEnd != nil)
        bench.run(applying: [.fence(epoch: 1)])
        #expect(bench.round.pauseEnd == nil)
    }

    @Test func `a socket is read eight times, and until it is empty after a stall`() throws {
        var bench = try RoundBench()
        bench.port.capacity = 2
        bench.port.arrived = Array(repeating: [5, 5], count: 100)
        bench.run(applying: [])
        #expect(bench.port.arrived.count == 84)
        bench.port.sleepMilliseconds = 501
        bench.run(applying: [])
        #expect(bench.port.arrived.isEmpty)
    }

    @Test func `a batch is sent before more is received than the core takes`() throws {
        var bench = try RoundBench()
        bench.port.arrived = Array(repeating: [5, 5], count: 3 * Core.batchCapacity)
        let (_, steps) = bench.run(applying: [])
        var taken = 0
        for step in steps {
            if case .read(let count) = step { taken += count }
            if case .send = step { taken = 0 }
            #expect(taken <= Core.batchCapacity)
        }
        #expect(bench.port.arrived.isEmpty)
    }

    @Test func `a closed mailbox ends the rounds after the last events`() throws {
        var bench = try RoundBench()
        bench.port.isClosed = true
        let (isOpen, steps) = bench.run(applying: [.fence(epoch: 1)])
        #expect(!isOpen)
        let event = WorkerEvent.fenced(epoch: 1, at: bench.port.now, packets: 0)
        #expect(steps.last == .post([event]))
    }

    @Test func `what may not preempt a large batch follows it in order`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        try bench.connect()
        bench.port.arrived = (0..<64).map { bench.media($0) }
        let check = bench.check()
        bench.port.late = [bench.media(64), check, bench.media(65)]
        let (_, steps) = bench.run(applying: [.fence(epoch: 1)])
        let preemption = try #require(steps.firstIndex(of: .readPreempting(3)))
        let drain = try #require(steps.firstIndex(of: .drain))
        #expect(preemption < drain)
        #expect(bench.round.deferredCount == 2)
        var sent = bench.port.takeSent()
        // The answer preempts the rest of the batch.
        let answer = try #require(sent.firstIndex { $0.count > 20 && $0[8..<20] == check[8..<20] })
        #expect(answer >= 100 && answer < 192)
        bench.port.arrived = [bench.media(66)]
        bench.run(applying: [])
        sent += bench.port.takeSent()
        for slot in RoundBench.slots {
            #expect(bench.numbers(in: sent, of: slot.ssrc) == Array(0...66))
        }
    }
}
