import CKernel
import Foundation
import RTP
import Testing

@testable import Kernel
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Kernel sockets on ports that the kernel chooses.
struct UDPSocketTests {
    /// Receives datagrams, and waits up to ten seconds for the first.
    ///
    /// Loopback mostly delivers before the send call returns; on a busy machine it need not.
    static func receive(_ inbox: inout Inbox, from socket: UDPSocket) throws -> Int32? {
        var poller = try Poller()
        try poller.add(socket.descriptor, for: .readable, token: 0)
        let now = Instant.monotonic()
        _ = poller.wait(until: now.advanced(milliseconds: 10_000), at: now)
        return inbox.receive(from: socket)
    }

    static func batch(_ lengths: [Int], to path: Path) -> Batch {
        var batch = Batch(capacity: lengths.count)
        for (index, length) in lengths.enumerated() {
            batch.append(to: path) { output in
                for _ in 0..<length { output.append(UInt8(truncatingIfNeeded: index)) }
            }
        }
        return batch
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `runs arrive as single datagrams`(host: String) throws {
        let host = try #require(Address(text: host))
        guard let sender = try? UDPSocket.open(host) else { return }  // A machine without IPv6.
        let receiver = try UDPSocket.open(host)
        defer {
            sender.close()
            receiver.close()
        }
        let lengths = [1_200, 1_200, 1_200, 40, 1_000, 1_000, 3]
        var batch = Self.batch(lengths, to: Path(remote: receiver.address, local: 0))
        var udpSender = UDPSender([sender])
        udpSender.send(&batch, from: LocalAddresses([sender]), at: .monotonic())
        #expect(batch.count == 0)
        #expect(udpSender.errors == 0 && udpSender.waiting == 0)

        var inbox = Inbox()
        var received: [Int] = []
        while received.count < lengths.count, try Self.receive(&inbox, from: receiver) == nil {
            for index in 0..<inbox.count {
                #expect(inbox.remote(index) == sender.address)
                let first = inbox[index][0]
                #expect(Int(first) == received.count)
                received.append(inbox.length(index))
            }
        }
        #expect(received == lengths)
        #expect(inbox.receive(from: receiver) == EAGAIN)
    }

    @Test
    func `answers from the address that was asked`() throws {
        let any = try UDPSocket.open(Address(ipv4: 0, port: 0))
        let peer = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer {
            any.close()
            peer.close()
        }
        var inbox = Inbox()
        var locals = LocalAddresses([any])
        for asked in [0x7f00_0002, 0x7f00_0003, 0x7f00_0002] as [UInt32] {
            let target = Address(ipv4: asked, port: any.address.port)
            var question = Self.batch([12], to: Path(remote: target, local: 0))
            var asking = UDPSender([peer])
            asking.send(&question, from: LocalAddresses([peer]), at: .monotonic())

            #expect(try Self.receive(&inbox, from: any) == nil)
            let local = inbox.local(0)
            #expect(local.address == target.with(port: 0))
            let number = locals.number(
                socket: 0,
                address: local.address,
                interface: local.interface
            )
            var answer = Self.batch([12], to: Path(remote: inbox.remote(0), local: number))
            var answering = UDPSender([any])
            answering.send(&answer, from: locals, at: .monotonic())

            #expect(try Self.receive(&inbox, from: peer) == nil)
            #expect(inbox.remote(0) == target)
        }
    }

    @Test
    func `an oversized datagram is flagged and dropped`() throws {
        let receiver = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { receiver.close() }
        let client = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { kernel_close(client) }
        var run = unsafe kernel_segments()
        let bytes = [UInt8](repeating: 1, count: 3_000)
        let result = unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe run.remote = receiver.address.kernel
            unsafe run.first = bytes.baseAddress
            unsafe run.count = 1
            unsafe run.last_length = 3_000
            return unsafe kernel_send_segments(client, false, &run)
        }
        #expect(result == 0)
        var inbox = Inbox()
        #expect(try Self.receive(&inbox, from: receiver) == nil)
        let isTruncated = inbox.isTruncated(0)
        let count = inbox[0].count
        #expect(isTruncated && count == 0)
    }

    @Test
    func `a refused datagram is an error and no more`() throws {
        let sender = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { sender.close() }
        // From loopback the outside cannot be reached.
        let outside = Address(ipv4: 0xc000_0201, port: 9)
        var batch = Self.batch([100, 100], to: Path(remote: outside, local: 0))
        var udpSender = UDPSender([sender])
        udpSender.send(&batch, from: LocalAddresses([sender]), at: .monotonic())
        #expect(udpSender.errors == 2)
        #expect(batch.count == 0)
        #expect(udpSender.takeSendError() != nil)
        #expect(udpSender.takeSendError() == nil)
    }

    @Test
    func `a port in use is an error that names it`() throws {
        let first = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { first.close() }
        let expected = SystemError(operation: first.address.endpointText, number: EADDRINUSE)
        #expect(throws: expected) { try UDPSocket.open(first.address) }
    }
}
