import CKernel
import ControlPlane
import Foundation
import Kernel
import TestSupport
import Testing
import WorkerInterface

@testable import Daemon
@testable import Sockets

/// Descriptors that go from life to life; one test at a time, as some need certain numbers.
@Suite(.serialized) struct HandoverTests {
    static let quiet = Log(level: .error, descriptor: kernel_open_null())
    static let loopback = Address(ipv4: 0x7f00_0001, port: 0)

    /// A service manager, and a handover that notifies it.
    static func manager() throws -> (socket: NotificationSocket, ServiceManager) {
        let socket = try NotificationSocket()
        let environment = ["NOTIFY_SOCKET": socket.address]
        return (socket, ServiceManager(environment: environment, processID: 1))
    }

    static func heard(_ socket: NotificationSocket) -> [String] {
        var all: [String] = []
        while let datagram = socket.receive() {
            for descriptor in datagram.descriptors { kernel_close(descriptor) }
            let text = String(decoding: datagram.text, as: UTF8.self)
            all.append("\(text.replacing("\n", with: " ")) \(datagram.descriptors.count)")
        }
        return all
    }

    // The variables of sd_listen_fds(3).
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var processID: String? = "7"
        var count: String? = "2"
        var names: String? = "a:b"
        var expected: [String]
    }

    static let rows = [
        Row(testDescription: "two with names", expected: ["a", "b"]),
        Row(testDescription: "no names", names: nil, expected: ["", ""]),
        Row(testDescription: "too few names", names: "a", expected: ["a", ""]),
        Row(testDescription: "for another process", processID: "8", expected: []),
        Row(testDescription: "for nobody", processID: nil, expected: []),
        Row(testDescription: "no number", count: "many", expected: []),
        Row(testDescription: "none", count: "0", expected: []),
        Row(testDescription: "a negative number", count: "-1", expected: []),
        Row(testDescription: "too many", count: "5000", expected: []),
        Row(testDescription: "more than are open", count: "3", expected: ["a", "b"]),
    ]

    @Test(arguments: rows)
    func `the environment is read with care`(_ row: Row) throws {
        // Far above the numbers that other tests use.
        let first = kernel_move_descriptor(kernel_open_null(), 700)
        let second = kernel_move_descriptor(kernel_open_null(), first + 1)
        try #require(second == first + 1)
        let inherited = InheritedDescriptors(
            processID: row.processID,
            count: row.count,
            names: row.names,
            first: first,
            ownProcessID: 7
        )
        #expect(inherited.names == row.expected)
        for descriptor in [first, second] { kernel_close(descriptor) }
    }

    @Test func `of two descriptors with one name the newer is taken`() {
        let (old, new) = (WatchedDescriptor(), WatchedDescriptor())
        var inherited = InheritedDescriptors([
            NamedDescriptor(name: "state", descriptor: old.descriptor),
            NamedDescriptor(name: "state", descriptor: new.descriptor),
        ])
        #expect(inherited.take("state") == new.descriptor)
        #expect(inherited.take("state") == nil)
        #expect(!old.isOpen && new.isOpen)
        kernel_close(new.descriptor)
        for descriptor in [old, new] { descriptor.finish() }
    }

    @Test func `a UDP socket is adopted at its address alone`() throws {
        let socket = try UDPSocket.open(Self.loopback)
        defer { socket.close() }
        let tcp = try TCPListener.open(Self.loopback)
        defer { tcp.close() }
        let other = socket.address.with(port: socket.address.port ^ 1)
        let elsewhere = Address(ipv4: 0x7f00_0002, port: socket.address.port)
        #expect(UDPSocket.adopt(socket.descriptor, at: socket.address)?.address == socket.address)
        #expect(UDPSocket.adopt(socket.descriptor, at: Self.loopback)?.address == socket.address)
        #expect(UDPSocket.adopt(socket.descriptor, at: other) == nil)
        #expect(UDPSocket.adopt(socket.descriptor, at: elsewhere) == nil)
        #expect(UDPSocket.adopt(tcp.descriptor, at: tcp.address) == nil)
        #expect(TCPListener.adopt(tcp.descriptor, at: tcp.address)?.address == tcp.address)
        #expect(TCPListener.adopt(tcp.descriptor, at: other) == nil)
        #expect(TCPListener.adopt(socket.descriptor, at: socket.address) == nil)
        let file = kernel_open_null()
        defer { kernel_close(file) }
        #expect(UDPSocket.adopt(file, at: Self.loopback) == nil)
        #expect(TCPListener.adopt(file, at: Self.loopback) == nil)
    }

    /// Opens the sockets of a configuration with those of the life before.
    private static func open(
        _ flags: [String],
        _ inherited: [NamedDescriptor],
        _ manager: ServiceManager
    ) throws -> (ListeningSockets, Handover) {
        let defaults = Configuration(environment: [:], userID: 1, cores: 1)
        guard
            case .run(let configuration) = try CommandLineOptions.invocation(
                flags,
                defaults: defaults
            )
        else { throw StartError.configuration("flags", "start nothing") }
        let handover = Handover(InheritedDescriptors(inherited), manager, quiet)
        return (try ListeningSockets(configuration, handover, quiet), handover)
    }

    @Test func `sockets stay over lives, and those of other settings are replaced`() throws {
        let (socket, manager) = try Self.manager()
        let flags = [
            "--udp", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers",
            "2",
        ]
        let (first, handover) = try Self.open(flags, [], manager)
        let names = ["udp.0.0", "tcp.0.0", "udp.1.0", "tcp.1.0", "http"]
        #expect(handover.kept.map(\.name) == names)
        #expect(Self.heard(socket) == names.map { "FDSTORE=1 FDPOLL=0 FDNAME=\($0) 1" })

        let (second, next) = try Self.open(flags, handover.kept, manager)
        #expect(second.udp.joined().map(\.address) == first.udp.joined().map(\.address))
        #expect(second.tcp.joined().map(\.address) == first.tcp.joined().map(\.address))
        #expect(second.http?.address == first.http?.address)
        #expect(Set(next.kept.map(\.name)) == Set(names))
        #expect(Self.heard(socket) == [], "the manager has them already")

        // The second worker goes, and the first has the port that was the second's.
        let port = first.udp[1][0].address.port
        let changed = ["--udp", "127.0.0.1:\(port)", "--workers", "1"]
        let (third, last) = try Self.open(changed, next.kept, manager)
        #expect(third.udp.joined().map(\.address.port) == [port])
        #expect(last.kept.map(\.name) == ["udp.0.0"])
        let removed = Set(names).map { "FDSTOREREMOVE=1 FDNAME=\($0) 0" }
        let said = Self.heard(socket)
        #expect(Set(said) == Set(removed + ["FDSTORE=1 FDPOLL=0 FDNAME=udp.0.0 1"]))
        #expect(said.last == "FDSTORE=1 FDPOLL=0 FDNAME=udp.0.0 1")
        third.udp[0][0].close()
        kernel_close(socket.descriptor)
    }

    @Test func `a descriptor that nobody knows is closed`() throws {
        let (socket, manager) = try Self.manager()
        let (strange, state) = (WatchedDescriptor(), WatchedDescriptor())
        let saved = NamedDescriptor(name: "state", descriptor: state.descriptor)
        let inherited = InheritedDescriptors([
            NamedDescriptor(name: "strange", descriptor: strange.descriptor), saved,
        ])
        let handover = Handover(inherited, manager, Self.quiet)
        #expect(handover.adopt("state") { $0 } == state.descriptor)
        handover.closeRest()
        #expect(!strange.isOpen && state.isOpen)
        #expect(handover.kept == [saved])
        #expect(Self.heard(socket) == ["FDSTOREREMOVE=1 FDNAME=strange 0"])
        kernel_close(state.descriptor)
        for descriptor in [strange, state] { descriptor.finish() }
        kernel_close(socket.descriptor)
    }
}
