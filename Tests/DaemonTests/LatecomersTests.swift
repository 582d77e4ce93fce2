import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import WorkerInterface

/// Datagrams that arrive while a batch is being sent, and have to wait for its end.
@Suite struct LatecomersTests {
    private static func path(_ number: Int) -> Path {
        Path(remote: Address(ipv4: 0x7f00_0001, port: UInt16(1_000 + number)), local: 0)
    }

    @Test func `who waits keeps its order, its path and the time it came at`() {
        var latecomers = Latecomers()
        for number in 0..<Latecomers.capacity {
            let bytes = [UInt8](repeating: UInt8(number), count: 1 + number * 11)
            let isKept = latecomers.append(
                bytes.span,
                on: Self.path(number),
                arrival: Int64(number) * 1_000
            )
            #expect(isKept)
        }
        // A whole batch of the core's, and no more.
        #expect(latecomers.count == Core.batchCapacity)
        #expect(latecomers.free == 0)
        for number in 0..<Latecomers.capacity {
            let bytes = latecomers[number]
            let copy = bytes.indices.map { bytes[$0] }
            #expect(copy == [UInt8](repeating: UInt8(number), count: 1 + number * 11))
            #expect(latecomers.path(number) == Self.path(number))
            #expect(latecomers.arrival(number) == Int64(number) * 1_000)
        }
        latecomers.removeAll()
        #expect(latecomers.free == Latecomers.capacity)
    }

    @Test func `nothing is cut, and what is too long is not kept`() {
        var latecomers = Latecomers()
        let longest = [UInt8](repeating: 7, count: Batch.maximumLength)
        let isKept = latecomers.append(longest.span, on: Self.path(0), arrival: 1)
        #expect(isKept)
        let tooLong = [UInt8](repeating: 7, count: 9_000)
        let isKeptToo = latecomers.append(tooLong.span, on: Self.path(1), arrival: 2)
        #expect(!isKeptToo)
        #expect(latecomers.count == 1)
        let count = latecomers[0].count
        #expect(count == longest.count)
    }
}
