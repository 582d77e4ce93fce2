import CKernel
import CMicroHTTPD
import Glibc
import Kernel
import RTP
import Testing

@testable import Daemon
@testable import WorkerInterface

/// Slow, many and incomplete clients, against the real HTTP library.
struct HTTPConnectionTests {
    let server: HTTPServer

    init() throws { server = try HTTPServer(Address(ipv4: 0x7f00_0001, port: 0)) }

    /// Connects clients that each send a text, and lets the server read it.
    private func clients(_ count: Int, from last: UInt32 = 1, say text: String) throws -> [Int32] {
        var clients: [Int32] = []
        for _ in 0..<count {
            let client = try HTTPServerTests.connect(to: server.address.port, from: last)
            Self.say(text, to: client)
            clients.append(client)
            server.run(at: .monotonic())
        }
        return clients
    }

    private static func say(_ text: String, to client: Int32) {
        #expect(kernel_write(client, Array(text.utf8).span) == Int64(text.utf8.count))
    }

    /// Reads all that the server has sent; `isOpen` is false once the connection has ended.
    private static func heard(from client: Int32) -> (text: String, isOpen: Bool) {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var places = buffer.mutableSpan
            let count = kernel_read(client, &places)
            guard count > 0 else {
                return (String(decoding: all, as: UTF8.self), count == Int64(-EAGAIN))
            }
            all += buffer[..<Int(count)]
        }
    }

    private static func openCount(_ clients: [Int32]) -> Int {
        clients.count { heard(from: $0).isOpen }
    }

    @Test
    func `who waits for metrics when the server goes is answered`() throws {
        var server: HTTPServer? = try HTTPServer(Address(ipv4: 0x7f00_0001, port: 0))
        let port = try #require(server?.address.port)
        let client = try HTTPServerTests.connect(to: port)
        defer { kernel_close(client) }
        Self.say("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", to: client)
        while server?.wantsMetrics == false { server?.run(at: .monotonic()) }
        server = nil
        let (text, isOpen) = Self.heard(from: client)
        #expect(text.hasPrefix("HTTP/1.1 503 "))
        #expect(text.hasSuffix("\r\n\r\nshutting down\n"))
        #expect(!isOpen)
    }

    @Test(arguments: [
        "", "G", "GET /healthz HTTP/1.1\r\nHost:",
        "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
    ])
    func `64 unfinished requests of one address keep no health check out`(_ start: String) throws {
        let slow = try clients(64, say: start)
        defer { slow.forEach(kernel_close) }
        #expect(try HTTPServerTests.ask(server, "GET /healthz", within: 3).body == "ok\n")
    }

    @Test
    func `unfinished requests of many addresses keep no health check out`() throws {
        var slow: [Int32] = []
        defer { slow.forEach(kernel_close) }
        for last in 2..<80 as Range<UInt32> { slow += try clients(2, from: last, say: "GET") }
        #expect(try HTTPServerTests.ask(server, "GET /healthz", within: 3).body == "ok\n")
    }

    @Test
    func `an address that has too many loses its own oldest`() throws {
        let patient = try clients(4, from: 2, say: "GET /heal")
        let greedy = try clients(60, say: "GET /heal")
        defer { (patient + greedy).forEach(kernel_close) }
        server.run(at: .monotonic())
        #expect(Self.openCount(patient) == 4)
        #expect(Self.openCount(Array(greedy.suffix(16))) == 16)
        #expect(Self.openCount(Array(greedy.dropLast(16))) == 0)
        for client in patient {
            Self.say("thz HTTP/1.1\r\nHost: x\r\n\r\n", to: client)
            server.run(at: .monotonic())
            #expect(Self.heard(from: client).text.hasSuffix("ok\n"))
        }
    }

    @Test(arguments: ["GET /healthz HTTP/1.1\r\nX: ", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"])
    func `a connection has ten seconds, however it uses them`(_ start: String) throws {
        let begin = Instant.monotonic()
        let client = try #require(try clients(1, say: start).first)
        defer { kernel_close(client) }
        for tenths in 1...99 as ClosedRange<Int64> {
            Self.say("x", to: client)
            server.run(at: begin.advanced(milliseconds: tenths * 100))
            #expect(Self.heard(from: client).isOpen)
        }
        let end = begin.advanced(milliseconds: 10_500)
        #expect(try #require(server.deadline(at: begin)) <= end)
        server.run(at: end)
        server.run(at: end)
        #expect(!Self.heard(from: client).isOpen)
        #expect(!server.wantsMetrics)
    }

    @Test
    func `64 requests for metrics that do not come keep no health check out`() throws {
        let waiting = try clients(64, say: "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        defer { waiting.forEach(kernel_close) }
        #expect(try HTTPServerTests.ask(server, "GET /healthz", within: 3).body == "ok\n")
    }

    @Test
    func `a client that does not read its answer is let go`() throws {
        let begin = Instant.monotonic()
        let client = try #require(
            try clients(1, say: "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").first
        )
        defer { kernel_close(client) }
        server.publish(metrics: [UInt8](repeating: 0x61, count: 32 << 20), at: begin)
        #expect(server.deadline(at: begin) != nil)
        let end = begin.advanced(milliseconds: 10_500)
        server.run(at: end)
        server.run(at: end)
        // No deadline is left.
        #expect(server.deadline(at: end) == nil)
    }

    /// Returns the source of an IPv6 address given as two halves.
    private static func source(_ first: UInt64, _ second: UInt64) -> [UInt64] {
        let source = http_ipv6_source(first.bigEndian, second.bigEndian)
        return [source.high, source.low]
    }

    @Test
    func `IPv4 clients in an IPv6 address are told apart, and one's IPv6 addresses are not`() {
        let mapped = Self.source(0, 0xffff_7f00_0001)
        #expect(mapped == [0, UInt64((0x7f00_0001 as UInt32).bigEndian)])
        #expect(mapped != Self.source(0, 0xffff_7f00_0002))
        let network = 0x2001_0db8_0000_0001 as UInt64
        #expect(Self.source(network, 0xffff_7f00_0001) == Self.source(network, 2))
        #expect(Self.source(network, 2) != Self.source(network &+ 1, 2))
        #expect(Self.source(0, 1) == Self.source(0, 2))
    }
}
