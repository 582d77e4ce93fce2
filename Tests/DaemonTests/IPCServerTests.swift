import CKernel
import Foundation
import RTP
import Testing

@testable import ControlPlane
@testable import Daemon
@testable import Sockets

/// The server on a real socket, in virtual time; clients write and read without waiting.
struct IPCServerTests {
    /// A signalling server at the socket level.
    struct Client {
        let descriptor: Int32

        init(_ path: String) { descriptor = unsafe kernel_unix_connect(path) }

        func send(_ text: String) {
            let count = kernel_write(descriptor, Array(text.utf8).span)
            #expect(count == Int64(text.utf8.count))
        }

        /// Reads what has arrived: lines, and whether the server has closed.
        func receive() -> (text: String, isClosed: Bool) {
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                var places = buffer.mutableSpan
                let count = kernel_read(descriptor, &places)
                guard count > 0 else {
                    return (String(decoding: text, as: UTF8.self), count != Int64(-EAGAIN))
                }
                text += buffer[..<Int(count)]
            }
        }

        func close() { kernel_close(descriptor) }
    }

    /// The server in a minimal event loop that echoes every line.
    struct Rig: ~Copyable {
        var server: IPCServer
        var poller: Poller
        var now = Instant(nanoseconds: 1_000_000_000)
        var lines: [String] = []
        var connected: Set<ConnectionID> = []
        var closed: Set<ConnectionID> = []

        init(_ server: IPCServer, _ poller: consuming Poller) {
            self.server = server
            self.poller = poller
        }

        /// Runs one round of the loop, without waiting.
        mutating func turn() {
            for index in 0..<poller.wait(until: now, at: now) {
                let found = poller[index]
                switch PollerToken(rawValue: found.token) {
                case .listener: server.accept(with: poller, at: now)
                case .connection(let id):
                    connected.insert(id)
                    guard found.readable else {
                        server.wake(id, hungUp: found.hungUp)
                        continue
                    }
                    for line in server.read(id, at: now) {
                        lines.append(String(decoding: line, as: UTF8.self))
                        server.reply(id, line)
                    }
                default: Issue.record("an unknown token")
                }
            }
            server.expire(at: now)
            server.flush(with: poller, at: now)
            closed.formUnion(server.takeClosed())
        }

        mutating func turns(_ count: Int = 4) { for _ in 0..<count { turn() } }

        mutating func pass(seconds: Int64) {
            for _ in 0..<seconds * 2 {
                now = now.advanced(milliseconds: 500)
                turn()
            }
        }
    }

    static func withRig(
        _ limits: IPCLimits = IPCLimits(),
        _ body: (inout Rig, String) throws -> Void
    ) throws {
        try withSocketPath { path in
            let quiet = Log(level: .error, descriptor: kernel_open_null())
            let socket = try IPCSocket.open(path, .none(quiet))
            let server = IPCServer(socket, limits: limits, log: quiet)
            let poller = try Poller()
            try server.watch(with: poller)
            var rig = Rig(server, poller)
            try body(&rig, path)
            rig.server.close()
        }
    }

    @Test
    func `lines in, lines out, in order`() throws {
        try Self.withRig { rig, path in
            let client = Client(path)
            client.send("one\r\n\ntwo\nthr")
            rig.turns()
            client.send("ee\n")
            rig.turns()
            #expect(client.receive().text == "one\ntwo\nthree\n")
            client.close()
            rig.turns()
            #expect(rig.closed == rig.connected && rig.server.count == 0)
        }
    }

    @Test
    func `a client that ends its input still gets its replies`() throws {
        try Self.withRig { rig, path in
            let client = Client(path)
            client.send("last\n")
            shutdown(client.descriptor, Int32(SHUT_WR))
            rig.turns()
            let answer = client.receive()
            #expect(answer.text == "last\n" && !answer.isClosed)
            rig.pass(seconds: 3)
            #expect(client.receive().isClosed)
        }
    }

    @Test
    func `a line without end is refused at the limit`() throws {
        try Self.withRig { rig, path in
            let client = Client(path)
            let other = Client(path)
            let part = String(repeating: "x", count: 1 << 16)
            for _ in 0..<16 {
                client.send(part)
                rig.turns()
            }
            #expect(client.receive().text.isEmpty)
            client.send("xx")
            rig.turns()
            let answer = client.receive()
            #expect(answer.text.contains("\"reason\":\"line-too-long\"") && answer.isClosed)
            other.send("unharmed\n")
            rig.turns()
            #expect(other.receive().text == "unharmed\n")
        }
    }

    @Test
    func `a line that takes too long ends the connection, silence does not`() throws {
        try Self.withRig { rig, path in
            let slow = Client(path)
            let silent = Client(path)
            rig.turns()
            for _ in 0..<40 {
                _ = kernel_write(slow.descriptor, [UInt8(ascii: "x")].span)
                rig.pass(seconds: 1)
            }
            #expect(slow.receive().isClosed)
            #expect(!silent.receive().isClosed)
            #expect(rig.server.count == 1)
        }
    }

    @Test
    func `a client that does not read is throttled, and closed at the limit`() throws {
        var limits = IPCLimits()
        limits.outputBytes = 1 << 20
        try Self.withRig(limits) { rig, path in
            let stuck = Client(path)
            let reader = Client(path)
            rig.turns()
            let id = ConnectionID(rawValue: 1)
            let line = [UInt8](repeating: UInt8(ascii: "e"), count: 10_000)
            let event = EventLine(name: "room.updated", line: line)
            rig.server.subscribe(id, EventInterest(), replay: [])
            let room = EventInterest(rooms: ["r"])
            rig.server.subscribe(ConnectionID(rawValue: 2), room, replay: [event])
            var received = 0
            var number = 0
            // The kernel takes some; half the limit later nothing more is read.
            while rig.closed.isEmpty, number < 1_000 {
                rig.server.event(event, in: "r")
                rig.server.event(event, in: "other")
                rig.now = rig.now.advanced(milliseconds: 10)
                rig.turn()
                received += reader.receive().text.utf8.count
                number += 1
                if number == 60 {
                    _ = kernel_write(stuck.descriptor, Array("held\n".utf8).span)
                }
            }
            #expect(rig.closed == [id])
            #expect(!rig.lines.contains("held"))
            #expect(received == (number + 1) * (line.count + 1))
        }
    }

    @Test
    func `a burst of answers beyond the limit waits for a client that reads`() throws {
        var limits = IPCLimits()
        limits.outputBytes = 1 << 20
        try Self.withRig(limits) { rig, path in
            let reader = Client(path)
            rig.turns()
            let answer = [UInt8](repeating: UInt8(ascii: "a"), count: 300_000)
            for _ in 0..<40 { rig.server.reply(ConnectionID(rawValue: 1), answer) }
            var received = 0
            for _ in 0..<2_000 where received < 40 * 300_001 {
                rig.now = rig.now.advanced(milliseconds: 10)
                rig.turn()
                received += reader.receive().text.utf8.count
            }
            #expect(received == 40 * 300_001)
            #expect(rig.closed.isEmpty)
            // Sixteen times the limit at once is too much for any connection.
            for _ in 0..<60 { rig.server.reply(ConnectionID(rawValue: 1), answer) }
            rig.turn()
            #expect(rig.closed.count == 1)
        }
    }

    @Test
    func `time that sfud took itself is not counted as its reader's`() throws {
        var limits = IPCLimits()
        limits.outputBytes = 1 << 20
        try Self.withRig(limits) { rig, path in
            let reader = Client(path)
            rig.turns()
            let answer = [UInt8](repeating: UInt8(ascii: "a"), count: 3 << 20)
            rig.server.reply(ConnectionID(rawValue: 1), answer)
            rig.turn()
            // The server was busy or stalled for five seconds, and reads its clock only now.
            rig.now = rig.now.advanced(milliseconds: 5_000)
            rig.turn()
            #expect(rig.closed.isEmpty)
            var received = 0
            for _ in 0..<2_000 where received <= answer.count {
                rig.now = rig.now.advanced(milliseconds: 10)
                rig.turn()
                received += reader.receive().text.utf8.count
            }
            #expect(received == answer.count + 1)
            // A client that reads nothing for that long is closed all the same.
            rig.server.reply(ConnectionID(rawValue: 1), answer)
            for _ in 0..<30 where rig.closed.isEmpty {
                rig.now = rig.now.advanced(milliseconds: 100)
                rig.turn()
            }
            #expect(rig.closed.count == 1)
        }
    }

    @Test
    func `a client that calls too often is delayed, and loses nothing`() throws {
        var limits = IPCLimits()
        limits.callsPerSecond = 100
        try Self.withRig(limits) { rig, path in
            let eager = Client(path)
            eager.send(String(repeating: "a\n", count: 350))
            rig.turns()
            #expect(rig.lines.count == 350)
            eager.send(String(repeating: "b\n", count: 50) + "par")
            let other = Client(path)
            other.send("c\n")
            rig.pass(seconds: 2)
            #expect(rig.lines.count == 351 && rig.lines.last == "c")
            #expect(rig.server.deadline != nil)
            rig.pass(seconds: 1)
            rig.turns()
            #expect(rig.lines.count == 401)
            eager.send("tial\n")
            rig.pass(seconds: 1)
            #expect(rig.lines.last == "partial" && rig.closed.isEmpty)
        }
    }

    @Test
    func `calls of a disconnected client are carried out all the same`() throws {
        var limits = IPCLimits()
        limits.callsPerSecond = 100
        try Self.withRig(limits) { rig, path in
            let client = Client(path)
            client.send(String(repeating: "a\n", count: 20_000))
            rig.turns(1)
            rig.turns(1)
            #expect(rig.lines.count == 16_384)
            client.close()
            rig.turns()
            #expect(rig.lines.count == 20_000)
            #expect(rig.closed.count == 1)
        }
    }

    @Test
    func `a connection may make a second's calls at once, and then so many a second`() {
        var budget = CallBudget(callsPerSecond: 1_000)
        let start = Instant(nanoseconds: 5_000_000_000)
        #expect(budget.take(1_000, at: start) == nil)
        let pause = budget.take(1, at: start)
        #expect(pause == start.advanced(milliseconds: 21))
        // Only the capacity that has been regained may be used.
        let later = start.advanced(milliseconds: 21)
        #expect(budget.take(20, at: later) == nil)
        #expect(budget.take(1, at: later) != nil)
        // Silence saves up no more than a second's worth.
        let end = start.advanced(milliseconds: 60_000)
        #expect(budget.take(1_000, at: end) == nil)
        #expect(budget.take(1, at: end) != nil)
    }

    @Test
    func `connections are bounded`() throws {
        var limits = IPCLimits()
        limits.connections = 2
        try Self.withRig(limits) { rig, path in
            let clients = (0..<3).map { _ in Client(path) }
            rig.turns()
            #expect(clients.map { $0.receive().isClosed } == [false, false, true])
            clients[0].close()
            rig.turns()
            let next = Client(path)
            next.send("in\n")
            rig.turns()
            #expect(next.receive().text == "in\n")
        }
    }

    @Test
    func `tokens come back as they went`() {
        let connection = ConnectionID(rawValue: 1 << 40)
        let tokens: [PollerToken] = [
            .listener, .signals, .http, .worker(0), .worker(63), .connection(connection),
        ]
        for token in tokens { #expect(PollerToken(rawValue: token.rawValue) == token) }
        #expect(PollerToken(rawValue: 255) == nil)
    }
}
