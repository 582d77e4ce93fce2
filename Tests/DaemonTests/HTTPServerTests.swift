import CKernel
import Foundation
import Kernel
import RTP
import Testing

@testable import Daemon
@testable import Sockets
@testable import WorkerInterface

/// The server and a client of its own on one thread.
struct HTTPServerTests {
    /// Sends a request and returns the answer's status line and body.
    static func ask(
        _ server: HTTPServer,
        _ request: String,
        publish: String? = nil,
        within seconds: Int64 = 10
    ) throws -> (status: String, body: String) {
        let client = try connect(to: server.address.port)
        defer { kernel_close(client) }
        let text = "\(request) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        #expect(kernel_write(client, Array(text.utf8).span) == Int64(text.utf8.count))
        var poller = try Poller()
        try poller.add(server.descriptor, for: .readable, token: 0)
        try poller.add(client, for: .readable, token: 1)
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let end = Instant.monotonic().advanced(milliseconds: seconds * 1_000)
        while true {
            let now = Instant.monotonic()
            try #require(now < end, "no answer comes")
            _ = poller.wait(until: min(server.deadline(at: now) ?? end, end), at: now)
            server.run(at: .monotonic())
            if server.wantsMetrics, let publish {
                server.publish(metrics: Array(publish.utf8), at: .monotonic())
            }
            var places = buffer.mutableSpan
            let count = kernel_read(client, &places)
            if count == 0 { break }
            if count > 0 { answer += buffer[..<Int(count)] }
        }
        let whole = String(decoding: answer, as: UTF8.self)
        let parts = whole.components(separatedBy: "\r\n\r\n")
        return (String(whole.prefix { $0 != "\r\n" }), parts.count > 1 ? parts[1] : "")
    }

    static func connect(to port: UInt16, from last: UInt32 = 1) throws -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        var own = address(0x7f00_0000 | last, port: 0)
        let bound = unsafe withUnsafePointer(to: &own) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe Glibc.bind(client, address, size)
            }
        }
        try #require(bound == 0)
        var server = address(0x7f00_0001, port: port)
        let result = unsafe withUnsafePointer(to: &server) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe Glibc.connect(client, address, size)
            }
        }
        try #require(result == 0)
        let flags = fcntl(client, F_GETFL)
        try #require(fcntl(client, F_SETFL, flags | O_NONBLOCK) == 0)
        return client
    }

    private static func address(_ ipv4: UInt32, port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = ipv4.bigEndian
        return address
    }

    @Test
    func `answers what it has and refuses the rest`() throws {
        let server = try HTTPServer(Address(ipv4: 0x7f00_0001, port: 0))
        #expect(try Self.ask(server, "GET /healthz") == ("HTTP/1.1 200 OK", "ok\n"))
        server.isHealthy = false
        #expect(
            try Self.ask(server, "GET /healthz")
                == ("HTTP/1.1 503 Service Unavailable", "shutting down\n")
        )
        #expect(try Self.ask(server, "GET /other").status == "HTTP/1.1 404 Not Found")
        #expect(
            try Self.ask(server, "DELETE /healthz").status == "HTTP/1.1 405 Method Not Allowed"
        )
    }

    @Test
    func `metrics wait for figures, which then serve for a second`() throws {
        let server = try HTTPServer(Address(ipv4: 0x7f00_0001, port: 0))
        #expect(
            try Self.ask(server, "GET /metrics", publish: "first\n")
                == ("HTTP/1.1 200 OK", "first\n")
        )
        #expect(try Self.ask(server, "GET /metrics").body == "first\n")
    }

    @Test
    func `a port in use is refused with its key`() throws {
        let server = try HTTPServer(Address(ipv4: 0x7f00_0001, port: 0))
        let text = server.address.endpointText
        let expected = StartError.system("http", "\(text): Address already in use")
        #expect(throws: expected) { try HTTPServer(server.address) }
    }
}
