import RTP
import Testing

@testable import Daemon
@testable import WorkerInterface

/// Rounds of a worker with DTLS records of known peers, which wait for media.
struct HandshakeTurnTests {
    @Test func `handshakes wait for the batch, and take turns`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        try bench.connect()
        // Three records that are no use, and then media.
        let record: [UInt8] = [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        bench.port.arrived = Array(repeating: record, count: 3) + (0..<4).map { bench.media($0) }
        bench.run(applying: [])
        let sent = bench.port.takeSent()
        for slot in RoundBench.slots {
            #expect(bench.numbers(in: sent, of: slot.ssrc) == Array(0...3))
        }
        // A turn is over after one of them, as it lasts no time here.
        var left = [bench.round.deferredCount]
        while bench.round.deferredCount > 0 {
            let now = bench.port.now
            let (_, steps) = bench.run(applying: [])
            #expect(steps.first == .sleep(until: now))
            left.append(bench.round.deferredCount)
        }
        #expect(left == [2, 1, 0])
    }

    @Test func `a worker hurries while its turns leave handshakes, and a little longer`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        try bench.connect()
        let record: [UInt8] = [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        bench.port.arrived = [record]
        var (_, steps) = bench.run(applying: [])
        #expect(steps.filter(\.isHurry) == [])
        var hurries: [RecordingPort.Step] = []
        for _ in 0..<3 {
            bench.port.arrived = [record, record]
            (_, steps) = bench.run(applying: [])
            hurries += steps.filter(\.isHurry)
        }
        #expect(hurries == [.hurry(true)])
        while bench.round.deferredCount > 1 { bench.run(applying: []) }
        bench.port.now = bench.port.now.advanced(milliseconds: 15)
        (_, steps) = bench.run(applying: [])
        #expect(steps.filter(\.isHurry) == [])
        bench.port.now = bench.port.now.advanced(milliseconds: 6)
        (_, steps) = bench.run(applying: [])
        #expect(steps.filter(\.isHurry) == [.hurry(false)])
        bench.port.now = bench.port.now.advanced(milliseconds: 60)
        (_, steps) = bench.run(applying: [])
        #expect(steps.filter(\.isHurry) == [])
    }

    @Test func `records of strangers take no room`() throws {
        var bench = try RoundBench()
        bench.run(applying: bench.configuration)
        // One of two would be left for the next turn.
        let record: [UInt8] = [22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        bench.port.arrived = [record, record]
        bench.run(applying: [])
        #expect(bench.round.deferredCount == 0)
    }
}
