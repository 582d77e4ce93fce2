import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import WorkerInterface

/// Datagrams that arrive while a batch is being sent, and have to wait for its end.
@Suite struct DeferredDatagramsTests {
    private static func path(_ number: Int) -> Path {
        Path(remote: Address(ipv4: 0x7f00_0001, port: UInt16(1_000 + number)), local: 0)
    }

    @Test func `waiting datagrams keep their order, path and arrival time`() {
        var deferred = DeferredDatagrams()
        for number in 0..<DeferredDatagrams.capacity {
            let bytes = [UInt8](repeating: UInt8(number), count: 1 + number * 11)
            let isKept = deferred.append(
                bytes.span,
                on: Self.path(number),
                arrival: Int64(number) * 1_000
            )
            #expect(isKept)
        }
        // A whole batch of the core's, and no more.
        #expect(deferred.count == Core.batchCapacity)
        #expect(deferred.free == 0)
        for number in 0..<DeferredDatagrams.capacity {
            let bytes = deferred[number]
            let copy = bytes.indices.map { bytes[$0] }
            #expect(copy == [UInt8](repeating: UInt8(number), count: 1 + number * 11))
            #expect(deferred.path(number) == Self.path(number))
            #expect(deferred.arrival(number) == Int64(number) * 1_000)
        }
        deferred.removeAll()
        #expect(deferred.free == DeferredDatagrams.capacity)
    }

    @Test func `nothing is cut, and what is too long is not kept`() {
        var deferred = DeferredDatagrams()
        let longest = [UInt8](repeating: 7, count: Batch.maximumLength)
        let isKept = deferred.append(longest.span, on: Self.path(0), arrival: 1)
        #expect(isKept)
        let tooLong = [UInt8](repeating: 7, count: 9_000)
        let isKeptToo = deferred.append(tooLong.span, on: Self.path(1), arrival: 2)
        #expect(!isKeptToo)
        #expect(deferred.count == 1)
        let count = deferred[0].count
        #expect(count == longest.count)
    }
}
