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

    @Test func `what is added while the first ones are taken follows in order`() {
        var deferred = DeferredDatagrams()
        var (added, taken) = (0, 0)
        // Fills the places several times over, in steps that do not divide their number.
        while taken < 5 * DeferredDatagrams.capacity {
            while deferred.free > 0 {
                let number = [UInt8(added >> 8), UInt8(added & 0xff)]
                let path = Self.path(added % 1_000)
                let isKept = deferred.append(number.span, on: path, arrival: Int64(added))
                #expect(isKept)
                added += 1
            }
            for index in 0..<deferred.count {
                let number = taken + index
                let bytes = deferred[index]
                #expect(Int(bytes[0]) << 8 | Int(bytes[1]) == number)
                #expect(deferred.path(index) == Self.path(number % 1_000))
                #expect(deferred.arrival(index) == Int64(number))
            }
            deferred.removeFirst(53)
            taken += 53
        }
        let left = deferred.count
        #expect(left == DeferredDatagrams.capacity - 53)
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
