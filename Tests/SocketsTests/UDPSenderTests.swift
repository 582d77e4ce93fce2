import CKernel
import Glibc
import RTP
import Testing

@testable import Kernel
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// A socket whose other end the test reads when it likes.
///
/// It is no UDP socket but a local datagram socket, which ignores addresses and is full as soon as
/// a test wants: the kernel then returns EAGAIN, which it never does on loopback.
private struct Pipe: ~Copyable {
    let socket: UDPSocket
    let end: Int32

    init(sendBuffer: Int32 = 4_096) throws {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0)
        socket = UDPSocket(descriptor: ends[0], address: Address(ipv4: 0x7f00_0001, port: 9))
        end = ends[1]
        _ = kernel_set_send_buffer(ends[0], sendBuffer)
    }

    deinit {
        socket.close()
        kernel_close(end)
    }

    /// Returns the lengths of the received datagrams.
    func take(atMost limit: Int = .max) -> [Int] {
        var lengths: [Int] = []
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while lengths.count < limit {
            let length = unsafe recv(end, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            guard length > 0 else { break }
            lengths.append(length)
        }
        return lengths
    }
}

struct UDPSenderTests {
    /// Makes datagrams of these lengths, each in a frame of its own.
    private static func batch(
        _ lengths: [Int],
        ssrc: UInt32 = 1,
        as content: DatagramContent = .video
    ) -> Batch {
        var batch = Batch(capacity: max(1, lengths.count))
        for (index, length) in lengths.enumerated() {
            let bytes = SendQueueTests.packet(
                ssrc: ssrc,
                timestamp: UInt32(index),
                length: length
            )
            var place = batch.next
            for index in bytes.indices { place[index] = bytes[index] }
            batch.commit(length: length, to: SendQueueTests.path(7), as: content)
        }
        return batch
    }

    /// Increasing lengths, so that each datagram needs a call of its own.
    private static let growing = (0..<60).map { 400 + $0 }

    @Test
    func `what a full socket refuses is sent later, in order and once`() throws {
        let pipe = try Pipe()
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket])
        var ready = try Poller()
        try ready.add(pipe.socket.descriptor, for: .readable, token: 0)
        var now = Instant.monotonic()
        var batch = Self.batch(Self.growing)
        udpSender.send(&batch, from: locals, at: now)
        let (waiting, awaits) = (udpSender.waiting, udpSender.awaitsRoom(socket: 0))
        #expect(batch.count == 0 && waiting > 0 && waiting < 60 && awaits)

        // While they wait, resuming does nothing, and others are queued behind them.
        udpSender.resume(from: locals, at: now)
        var later = Self.batch([500], as: .audio)
        udpSender.send(&later, from: locals, at: now)
        let more = udpSender.waiting
        #expect(more == waiting + 1)

        ready.change(pipe.socket.descriptor, to: [.readable, .writable], token: 0)
        var received: [Int] = []
        for _ in 0..<100 where received.count < 61 {
            received += pipe.take()
            guard ready.wait(until: now.advanced(milliseconds: 10_000), at: now) == 1 else { break }
            #expect(ready[0].writable)
            now = now.advanced(milliseconds: 1)
            udpSender.noteWritable(socket: 0)
            udpSender.resume(from: locals, at: now)
        }
        received += pipe.take()
        #expect(received == Self.growing + [500])
        let (left, stillAwaits, deadline) = (
            udpSender.waiting, udpSender.awaitsRoom(socket: 0), udpSender.deadline
        )
        #expect(left == 0 && !stillAwaits && deadline == nil)
        let (drops, errors) = (udpSender.drops, udpSender.errors)
        #expect(drops == SendDrops() && errors == 0)
    }

    @Test
    func `a call for many destinations goes on behind one that is refused`() throws {
        let receiver = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        let sender = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer {
            receiver.close()
            sender.close()
        }
        let locals = LocalAddresses([sender])
        var udpSender = UDPSender([sender])
        var batch = Batch(capacity: 128)
        // More runs than one call takes; the kernel refuses port 0, here the 20th and the 41st.
        for index in 0..<100 {
            let isRefused = index == 20 || index == 41
            let remote = isRefused ? receiver.address.with(port: 0) : receiver.address
            var place = batch.next
            place[0] = UInt8(index)
            // Growing lengths, so that each is a run of its own.
            batch.commit(length: index + 1, to: Path(remote: remote, local: 0), as: .video)
        }
        udpSender.send(&batch, from: locals, at: .monotonic())
        var inbox = Inbox(capacity: 128)
        #expect(inbox.receive(from: receiver) == nil)
        let received = (0..<inbox.count).map { Int(inbox[$0][0]) }
        #expect(received == (0..<100).filter { $0 != 20 && $0 != 41 })
        let (errors, waiting) = (udpSender.errors, udpSender.waiting)
        #expect(errors == 2 && waiting == 0)
    }

    @Test
    func `queued datagrams that became stale are not sent`() throws {
        let pipe = try Pipe()
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket])
        let now = Instant(nanoseconds: 0)
        var batch = Self.batch(Self.growing)
        udpSender.send(&batch, from: locals, at: now)
        let waiting = udpSender.waiting
        let sent = pipe.take()
        #expect(sent.count + waiting == 60)
        let deadline = udpSender.deadline
        let end = now.advanced(milliseconds: 200)
        #expect(deadline == end)
        udpSender.noteWritable(socket: 0)
        udpSender.resume(from: locals, at: end)
        #expect(pipe.take().isEmpty)
        let drops = udpSender.drops
        #expect(drops[.stale, .video] == UInt64(waiting))
    }

    @Test
    func `queued datagrams that lost their right are not sent`() throws {
        let pipe = try Pipe()
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket])
        let now = Instant(nanoseconds: 0)
        var batch = Self.batch(Self.growing, ssrc: 1)
        udpSender.send(&batch, from: locals, at: now)
        let waiting = udpSender.waiting
        var other = Self.batch([300], ssrc: 2, as: .audio)
        udpSender.send(&other, from: locals, at: now)
        udpSender.withdraw([SSRC(rawValue: 1)])
        _ = pipe.take()
        udpSender.noteWritable(socket: 0)
        udpSender.resume(from: locals, at: now)
        #expect(pipe.take() == [300])
        let drops = udpSender.drops
        #expect(drops[.withdrawn, .video] == UInt64(waiting))
    }

    @Test
    func `a full queue drops whole frames, and the rest of them when it comes`() throws {
        let pipe = try Pipe()
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket], limits: SendQueueLimits(datagrams: 4))
        let now = Instant(nanoseconds: 0)
        var batch = Self.batch(Self.growing)
        udpSender.send(&batch, from: locals, at: now)
        let sent = pipe.take()
        let last = Int(udpSender.drops[.full, .video]) + sent.count
        #expect(last == 56)
        udpSender.noteWritable(socket: 0)
        udpSender.resume(from: locals, at: now)
        #expect(pipe.take() == Array(Self.growing.suffix(4)))
        // The queue is empty and the socket accepts data, but a frame stays incomplete.
        var rest = Self.batch(Self.growing.map { $0 + 100 })
        udpSender.send(&rest, from: locals, at: now)
        let received = pipe.take(atMost: sent.count)
        #expect(received == Self.growing.prefix(sent.count).map { $0 + 100 })
        let dropped = udpSender.drops[.full, .video]
        #expect(Int(dropped) == 2 * (56 - sent.count))
    }

    @Test
    func `a path that refuses GSO gets single datagrams, and is reported once`() throws {
        // The pipe refuses datagrams longer than its buffer: EMSGSIZE, like a small MTU.
        let pipe = try Pipe(sendBuffer: 2_304)
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket])
        let lengths = Array(repeating: 600, count: 10)
        for round in 0..<2 {
            var batch = Self.batch(lengths)
            let now = Instant(nanoseconds: 0)
            udpSender.send(&batch, from: locals, at: now)
            var received = pipe.take()
            for _ in 0..<100 where received.count < 10 {
                udpSender.noteWritable(socket: 0)
                udpSender.resume(from: locals, at: now)
                received += pipe.take()
            }
            #expect(received == lengths)
            let sendError = udpSender.takeSendError()
            let expected = UDPSender.SendError.segmentsRefused(
                socket: 0,
                number: EMSGSIZE,
                byPath: true
            )
            #expect(sendError == (round == 0 ? expected : nil))
        }
        let errors = udpSender.errors
        #expect(errors == 0)
    }

    struct Refusal: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var number: Int32
        var pause: SocketSender.Pause?
        var byPath: Bool?
    }

    static let refusals = [
        Refusal(testDescription: "a full socket", number: EAGAIN, pause: .untilWritable),
        Refusal(
            testDescription: "no memory",
            number: ENOBUFS,
            pause: .until(Instant(nanoseconds: 1_000_007))
        ),
        Refusal(testDescription: "a small MTU", number: EINVAL, byPath: true),
        Refusal(testDescription: "a small MTU, told otherwise", number: EMSGSIZE, byPath: true),
        Refusal(testDescription: "no checksum offload", number: EIO, byPath: true),
        Refusal(testDescription: "an old kernel", number: EOPNOTSUPP, byPath: false),
        Refusal(testDescription: "an older kernel", number: ENOPROTOOPT, byPath: false),
        Refusal(testDescription: "no route", number: ENETUNREACH),
        Refusal(testDescription: "a firewall", number: EPERM),
    ]

    @Test(arguments: refusals)
    func `each errno has its reaction`(_ entry: Refusal) {
        #expect(SocketSender.pause(after: entry.number, at: Instant(nanoseconds: 7)) == entry.pause)
        var gsoLimits = GSOLimits()
        let path = SendQueueTests.path(1)
        let other = SendQueueTests.path(2)
        #expect(gsoLimits.learn(entry.number, from: path) == entry.byPath)
        #expect(gsoLimits.limit(path) == (entry.byPath == nil ? SendRun.maximumCount : 1))
        #expect(gsoLimits.limit(other) == (entry.byPath == false ? 1 : SendRun.maximumCount))
    }

    /// One viewer behind a tunnel must not cost all others their runs.
    @Test func `routes that refuse runs are believed of the socket once they are many`() {
        var gsoLimits = GSOLimits()
        let last = GSOLimits.refusedRoutesLimit
        for number in 1...last {
            let isByPath = gsoLimits.learn(EIO, from: SendQueueTests.path(UInt16(number)))
            #expect(isByPath == (number < last))
            let other = gsoLimits.limit(SendQueueTests.path(1_000))
            #expect(other == (number < last ? SendRun.maximumCount : 1))
        }
    }

    @Test
    func `the first call with media is stamped`() throws {
        let pipe = try Pipe()
        let locals = LocalAddresses([pipe.socket])
        var udpSender = UDPSender([pipe.socket])
        let now = Instant(nanoseconds: 0)
        var signalling = Self.batch([100], as: .other)
        udpSender.send(&signalling, from: locals, at: now)
        let none = udpSender.takeStamp()
        #expect(!none.hasMedia)
        let before = wallClock()
        var media = Self.batch([100, 200])
        udpSender.send(&media, from: locals, at: now)
        let stamp = udpSender.takeStamp()
        #expect(stamp.first >= before && stamp.first <= wallClock())
        let taken = udpSender.takeStamp()
        #expect(!taken.hasMedia)
    }
}
