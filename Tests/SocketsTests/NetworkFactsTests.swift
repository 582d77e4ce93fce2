import CKernel
import Foundation
import RTP
import SFU
import Testing

@testable import Kernel
@testable import Sockets
@testable import WorkerInterface

/// Buffers and drops of sockets as the kernel tells them, against those that were asked for.
struct NetworkFactsTests {
    @Test(arguments: ["127.0.0.1", "::1", "0.0.0.0"])
    func `a socket is listed with its buffers`(host: String) throws {
        let host = try #require(Address(text: host))
        guard let socket = try? UDPSocket.open(host) else { return }  // A machine without IPv6.
        defer { socket.close() }
        #expect(socket.setBuffers(.init(receive: 90_000, send: 70_000)).isEmpty)
        let all = try NetworkFacts.boundSockets()
        let found = try #require(all.first { Address($0.address) == socket.address && !$0.tcp })
        #expect(found.ipv6 == host.isIPv6)
        #expect(found.receive_buffer == 90_000 && found.send_buffer == 70_000)
        #expect(found.drops == 0 && found.waiting == 0)
    }

    @Test func `what a full socket loses is told`() throws {
        let loopback = Address(ipv4: 0x7f00_0001, port: 0)
        let (sender, receiver) = (try UDPSocket.open(loopback), try UDPSocket.open(loopback))
        defer {
            sender.close()
            receiver.close()
        }
        _ = receiver.setBuffers(.init(receive: 4_096, send: 4_096))
        for _ in 0..<40 {
            let path = Path(remote: receiver.address, local: 0)
            var batch = UDPSocketTests.batch(Array(repeating: 1_000, count: 8), to: path)
            _ = sender.send(&batch)
        }
        let found = try NetworkFacts.boundSockets().first {
            Address($0.address) == receiver.address
        }
        let facts = try #require(found)
        #expect(facts.drops > 100 && facts.drops < 320 && facts.waiting > 0)
    }

    @Test func `a listener is listed, and a connection is not`() throws {
        let listener = try TCPListener.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { listener.close() }
        let found = try NetworkFacts.boundSockets().filter(\.tcp).map { Address($0.address) }
        #expect(found.contains(listener.address))
    }

    @Test func `the interfaces have loopback`() throws {
        let interfaces = try NetworkFacts.interfaces()
        let loopback = interfaces.first { Address($0.address).text == "127.0.0.1" }
        #expect(loopback?.loopback == true)
    }

    @Test func `clocks and features have an answer`() throws {
        let clock = kernel_clock_state()
        #expect(clock.known && clock.error >= 0)
        #expect(kernel_udp_segments_supported() == 0)
        // Standard input of tests is no terminal.
        let (input, output) = (Pipe(), Pipe())
        #expect(!kernel_terminal_begin(input.fileHandleForReading.fileDescriptor).valid)
        let size = kernel_terminal_measure(output.fileHandleForWriting.fileDescriptor)
        #expect(size.rows == 0 && size.columns == 0)
    }

    @Test(
        arguments: [
            ("Max open files            1024                 524288               files", 1_024),
            ("Max processes 5 6 processes\nMax open files 7 8 files\nMax locked memory 9 9", 7),
            ("Max open files            unlimited            unlimited            files", nil),
            ("Max processes             1024                 524288               processes", nil),
            ("", nil),
        ] as [(String, Int?)]
    )
    func `the limit of open files is read`(_ text: String, _ limit: Int?) {
        #expect(ProcessLimits.openFiles(text) == limit)
    }
}
