import CKernel
import Glibc
import Kernel
import RTP
import Testing

@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// A worker's TCP connections over loopback: admission, closing, and counters.
struct TCPConnectionsTests {
    /// A listening worker without a core, and clients.
    struct Bench: ~Copyable {
        let listener: TCPListener
        var streams: TCPConnections
        var poller: Poller
        private var frames = RFC4571Deframer()
        var now = Instant(nanoseconds: 1_000_000_000)
        /// Received datagrams by connection; below, connections that became readable.
        var received: [UInt16: [[UInt8]]] = [:]
        /// The core's verdict on a frame.
        var verdict: (_ frame: [UInt8]) -> (isValidated: Bool, isAnswered: Bool)

        init(_ change: (inout TCPConnectionLimits) -> Void = { _ in }) throws {
            let listener = try TCPListener.open(Address(ipv4: 0x7f00_0001, port: 0))
            let poller = try Poller()
            try TCPConnections.watch([listener], with: poller)
            var limits = TCPConnectionLimits()
            change(&limits)
            self.listener = listener
            self.poller = poller
            streams = TCPConnections([listener], limits: limits)
            verdict = { frame in (frame.first == 1, frame.first == 1) }
        }

        deinit { listener.close() }

        /// Serves ready connections until none has been ready for 60 ms.
        ///
        /// On a busy machine a client's data may take that long.
        mutating func serve() {
            let beginning = Instant.monotonic()
            while true {
                let real = Instant.monotonic()
                let count = poller.wait(until: real.advanced(milliseconds: 60), at: real)
                guard count > 0, real.milliseconds(since: beginning) < 2_000 else { return }
                for index in 0..<count { serve(poller[index]) }
            }
        }

        private mutating func serve(_ found: Poller.Readiness) {
            switch TCPConnections.Subject(token: found.token) {
            case .listener(let index): streams.accept(index, with: poller, at: now)
            case .connection(let number):
                if found.writable { streams.noteWritable(number, with: poller, at: now) }
                if found.readable || found.hungUp { read(number) }
            case nil: Issue.record("a token of nobody's")
            }
        }

        private mutating func read(_ number: UInt16) {
            guard streams.read(number, into: &frames) != nil else { return }
            while let range = streams.nextFrame(of: number, in: &frames, at: now) {
                let bytes = range.indices.map { frames[range][$0 - range.lowerBound] }
                received[number, default: []].append(bytes)
                let (isValidated, isAnswered) = verdict(bytes)
                streams.noteValidation(number, isValidated: isValidated, isAnswered: isAnswered)
            }
        }

        mutating func pass(milliseconds: Int64) {
            let end = now.advanced(milliseconds: milliseconds)
            while now < end {
                now = min(end, now.advanced(milliseconds: 500))
                streams.expire(at: now)
            }
        }

        func connect() throws -> Client { try Client(to: listener.address) }

        /// Numbers of the open connections.
        var numbers: [UInt16] {
            (0..<streams.table.capacity).compactMap { streams.table.number(at: $0) }
        }

        func ends(_ cause: TCPConnectionStatistics.Cause) -> UInt64 { streams.statistics[cause] }
    }

    @Test
    func `frames come with the path of their connection, and answers go back on it`() throws {
        var bench = try Bench()
        let one = try bench.connect()
        let two = try bench.connect()
        bench.serve()
        one.send([1, 1], [2, 2])
        two.send([1, 9])
        bench.serve()
        #expect(Set(bench.received.values) == [[[1, 1], [2, 2]], [[1, 9]]])
        let statistics = bench.streams.statistics
        #expect(statistics.accepted == 2 && statistics.open == 2 && statistics.unchecked == 0)
        var batch = Batch(capacity: 4)
        for number in bench.numbers {
            let path = bench.streams.table[number].path
            let isFirst = bench.received[number]?.count == 2
            batch.append(to: path) { $0.append(isFirst ? 11 : 22) }
            #expect(path.isConnection && path.remote.ipv4 == 0x7f00_0001)
        }
        bench.streams.send(batch, with: bench.poller, at: bench.now)
        bench.serve()
        #expect(StreamPair.take(from: one.descriptor) == [0, 1, 11])
        #expect(StreamPair.take(from: two.descriptor) == [0, 1, 22])
    }

    @Test
    func `A9 an unvalidated connection is closed in time`() throws {
        var bench = try Bench()
        let silent = try bench.connect()
        let slow = try bench.connect()
        let good = try bench.connect()
        bench.serve()
        good.send([1])
        // One byte a second, and never a whole frame.
        StreamPair.write([0, 100], to: slow.descriptor)
        for _ in 0..<4 {
            bench.serve()
            bench.pass(milliseconds: 1_000)
            StreamPair.write([1], to: slow.descriptor)
        }
        #expect(bench.numbers.count == 3)
        bench.serve()
        bench.pass(milliseconds: 1_000)
        #expect(bench.numbers.count == 1)
        #expect(bench.ends(.silent) == 2)
        let (first, second, third) = (silent.isEnded, slow.isEnded, good.isEnded)
        #expect(first && second && !third)
        // The core never knew of them.
        let told = bench.streams.takeEnded()
        #expect(told == nil)
    }

    struct Ending: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var cause: TCPConnectionStatistics.Cause
        /// Whether it had been validated, so that the core must be told.
        var isTold = false
    }

    static let endings = [
        Ending(testDescription: "no check first", bytes: [0, 2, 7, 7], cause: .unauthenticated),
        Ending(testDescription: "an oversized frame first", bytes: [6, 0], cause: .oversized),
        Ending(
            testDescription: "an oversized frame later",
            bytes: [0, 1, 1, 0xff, 0xff, 0],
            cause: .oversized,
            isTold: true
        ),
        Ending(
            testDescription: "HTTP",
            bytes: Array("GET / HTTP/1.1\r\n\r\n".utf8),
            cause: .oversized
        ),
    ]

    @Test(arguments: endings)
    func `A9 an invalid frame ends the connection`(_ row: Ending) throws {
        var bench = try Bench()
        let client = try bench.connect()
        bench.serve()
        StreamPair.write(row.bytes, to: client.descriptor)
        bench.serve()
        #expect(bench.ends(row.cause) == 1)
        let isEnded = client.isEnded
        #expect(isEnded)
        let told = bench.streams.takeEnded()
        #expect((told != nil) == row.isTold)
        let statistics = bench.streams.statistics
        #expect(statistics.open == 0 && statistics.unchecked == 0)
    }

    @Test
    func `an error is an answer, and the next frame may be the check`() throws {
        var bench = try Bench()
        bench.verdict = { frame in (frame.first == 1, true) }
        let client = try bench.connect()
        bench.serve()
        client.send([7], [7])
        bench.serve()
        #expect(bench.streams.statistics.unchecked == 1)
        client.send([1])
        bench.serve()
        #expect(bench.streams.statistics.unchecked == 0)
        #expect(bench.numbers.count == 1)
    }

    @Test
    func `a peer that hangs up is missed, and one that stays silent too`() throws {
        var bench = try Bench()
        let stays = try bench.connect()
        do {
            let goes = try bench.connect()
            bench.serve()
            goes.send([1])
            stays.send([1])
            bench.serve()
        }
        bench.serve()
        #expect(bench.ends(.closed) == 1)
        let told = bench.streams.takeEnded()
        #expect(told?.isConnection == true)
        bench.pass(milliseconds: 59_000)
        #expect(bench.numbers.count == 1)
        bench.pass(milliseconds: 1_000)
        #expect(bench.ends(.idle) == 1)
        let isEnded = stays.isEnded
        #expect(isEnded)
        #expect(bench.streams.deadline == nil || bench.streams.isEmpty)
    }

    @Test
    func `a stall of the process ends nobody`() throws {
        var bench = try Bench()
        let new = try bench.connect()
        let old = try bench.connect()
        bench.serve()
        old.send([1])
        bench.serve()
        bench.now = bench.now.advanced(milliseconds: 35_000)
        bench.streams.expire(at: bench.now)
        #expect(bench.numbers.count == 2)
        new.send([1])
        bench.serve()
        bench.pass(milliseconds: 10_000)
        #expect(bench.numbers.count == 2)
        let (first, second) = (new.isEnded, old.isEnded)
        #expect(!first && !second)
    }

    @Test
    func `E16 no more connections than there may be, in all and from one address`() throws {
        var bench = try Bench {
            $0.connections = 16
            $0.connectionsPerAddress = 3
        }
        let one = try bench.connect()
        let two = try bench.connect()
        let three = try bench.connect()
        bench.serve()
        one.send([1])
        two.send([1])
        bench.serve()
        let four = try bench.connect()
        bench.serve()
        #expect(bench.ends(.addressLimit) == 1)
        let isRefused = four.isEnded
        #expect(isRefused)
        #expect(bench.numbers.count == 3)
        // A quarter of all connections may be new; another new one replaces the oldest of these.
        let second = try Self.crowd()
        #expect(second.crowded == 2 && second.limit == 1 && second.open == 4)
        let isKept = !three.isEnded
        #expect(isKept)
    }

    /// Fills a worker that takes four connections, one of them unvalidated.
    private static func crowd() throws -> (crowded: UInt64, limit: UInt64, open: Int) {
        var bench = try Bench { $0.connections = 4 }
        let first = try bench.connect()
        bench.serve()
        bench.now = bench.now.advanced(milliseconds: 1)
        let second = try bench.connect()
        bench.serve()
        let isCrowdedOut = first.isEnded
        #expect(isCrowdedOut)
        second.send([1])
        bench.serve()
        let third = try bench.connect()
        let fourth = try bench.connect()
        bench.serve()
        let isGone = third.isEnded
        #expect(isGone)
        fourth.send([1])
        bench.serve()
        let fifth = try bench.connect()
        bench.serve()
        fifth.send([1])
        bench.serve()
        let sixth = try bench.connect()
        bench.serve()
        sixth.send([1])
        bench.serve()
        let seventh = try bench.connect()
        bench.serve()
        let isRefused = seventh.isEnded
        #expect(isRefused)
        return (bench.ends(.crowded), bench.ends(.limit), bench.numbers.count)
    }

    @Test
    func `late datagrams of an ended connection do not reach the next one`() throws {
        var bench = try Bench { $0.connections = 1 }
        var paths: Set<Path> = []
        var old: Path?
        for round in 0..<8 {
            let client = try bench.connect()
            bench.serve()
            client.send([1])
            bench.serve()
            let number = try #require(bench.numbers.first)
            paths.insert(bench.streams.table[number].path)
            if let old {
                var batch = Batch(capacity: 1)
                batch.append(to: old) { $0.append(5) }
                bench.streams.send(batch, with: bench.poller, at: bench.now)
                #expect(StreamPair.take(from: client.descriptor).isEmpty)
                #expect(bench.streams.errors == UInt64(round))
            }
            old = bench.streams.table[number].path
            bench.streams.end(number, .released)
        }
        #expect(Set(paths.map(\.local)).count == 8)
    }

    @Test
    func `A9 a peer that stops reading costs the others nothing`() throws {
        var bench = try Bench { $0.queueBytes = 64 << 10 }
        let slow = try bench.connect()
        let good = try bench.connect()
        bench.serve()
        slow.send([1, 0])
        good.send([1, 1])
        bench.serve()
        let slowNumber = try #require(bench.received.first { $1[0] == [1, 0] }?.key)
        let goodNumber = try #require(bench.received.first { $1[0] == [1, 1] }?.key)
        let paths = [slowNumber, goodNumber].map { bench.streams.table[$0].path }
        var count = 0
        var sent = 0
        while bench.streams.drops.sum(.full) < 500, sent < 40_000 {
            var batch = Batch(capacity: 20)
            for path in paths {
                for index in 0..<10 {
                    let isAudio = index == 0
                    let bytes = SendQueueTests.packet(
                        ssrc: isAudio ? 2 : 1,
                        timestamp: UInt32(sent / 3),
                        length: isAudio ? 60 : 1_200
                    )
                    var place = batch.next
                    for index in bytes.indices { place[index] = bytes[index] }
                    batch.commit(length: bytes.count, to: path, as: isAudio ? .audio : .video)
                }
            }
            sent += 10
            bench.streams.send(batch, with: bench.poller, at: bench.now)
            for _ in 0..<200 where bench.streams.table[goodNumber].sender.isWaiting {
                count += StreamPair.take(from: good.descriptor).count
                bench.streams.noteWritable(goodNumber, with: bench.poller, at: bench.now)
            }
            count += StreamPair.take(from: good.descriptor).count
        }
        let drops = bench.streams.drops
        #expect(drops[.full, .video] >= 500)
        #expect(drops[.full, .audio] == 0)
        #expect(bench.streams.waitingCount <= TCPConnectionLimits().queue.datagrams)
        for _ in 0..<200 where count < sent / 10 * (62 + 9 * 1_202) {
            bench.serve()
            count += StreamPair.take(from: good.descriptor).count
        }
        #expect(count == sent / 10 * (62 + 9 * 1_202))
        bench.now = bench.now.advanced(milliseconds: 1_000)
        bench.streams.expireQueues(at: bench.now)
        #expect(bench.streams.waitingCount == 0)
    }
}
