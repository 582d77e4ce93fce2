import CFloor
import CKernel
import Foundation
import Kernel
import RTP
import Sockets
import WorkerInterface

/// Process that receives like an SFU and forwards each datagram without any processing.
///
/// It prints `ready ADDR:PORT` and reads `add SSRC ADDRESS PORT` lines from standard input until
/// its end, with the address as a number. A packet is sent to all destinations added for its SSRC.
struct Floor: ~Copyable {
    private let socket: UDPSocket
    /// Whether runs of datagrams are sent in one call (GSO).
    private let segments: Bool
    private var wanted: [UInt32: [Address]] = [:]
    private var routes: [UInt32: FloorRoute] = [:]
    private var isChanged = false
    private var text: [UInt8] = []
    private var inbox = Inbox()

    static func run(segments: Bool) throws -> Never {
        let socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        _ = socket.setBuffers(.init())
        FileHandle.standardOutput.write(Data("ready \(socket.address.endpointText)\n".utf8))
        var poller = try Poller()
        try poller.add(socket.descriptor, for: .readable, token: 0)
        try poller.add(0, for: .readable, token: 1)
        var floor = Self(socket, segments: segments)
        while true {
            let count = poller.wait(until: nil, at: .monotonic())
            for index in 0..<count {
                if poller[index].token == 0 {
                    floor.forward()
                } else if !floor.readRoutes() {
                    exit(0)
                }
            }
        }
    }

    private init(_ socket: UDPSocket, segments: Bool) {
        self.socket = socket
        self.segments = segments
    }

    /// Reads route lines; returns `false` at the end of input.
    private mutating func readRoutes() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        var space = bytes.mutableSpan
        let count = kernel_read(0, &space)
        guard count > 0 else { return false }
        text += bytes[..<Int(count)]
        while let end = text.firstIndex(of: 10) {
            let line = String(decoding: text[..<end], as: UTF8.self)
            text.removeSubrange(...end)
            let fields = line.split(separator: " ")
            guard fields.count == 4, fields[0] == "add", let ssrc = UInt32(fields[1]),
                let number = UInt32(fields[2]), let port = UInt16(fields[3])
            else { continue }
            wanted[ssrc, default: []].append(Address(ipv4: number, port: port))
            isChanged = true
        }
        return true
    }

    /// Creates routes; SSRCs with equal destinations share one, and thus their runs.
    private mutating func makeRoutes() {
        var known: [[Address]: FloorRoute] = [:]
        routes = [:]
        for (ssrc, destinations) in wanted {
            let route = known[destinations] ?? FloorRoute(destinations)
            known[destinations] = route
            routes[ssrc] = route
        }
        isChanged = false
    }

    private mutating func forward() {
        guard inbox.receive(from: socket) == nil else { return }
        if isChanged { makeRoutes() }
        var grouped: [FloorRoute] = []
        for index in 0..<inbox.count {
            let bytes = inbox[index]
            guard bytes.count >= 12, let route = routes[bytes.u32(at: 8)] else { continue }
            guard segments else {
                route.sendEach(bytes, by: socket)
                continue
            }
            if route.waiting.isEmpty { grouped.append(route) }
            route.waiting.append(index)
        }
        for route in grouped { route.sendRuns(of: inbox, by: socket) }
    }
}

/// Destinations of datagrams in the kernel's format.
@safe
private final class FloorRoute {
    /// Inbox indexes of datagrams to send.
    var waiting: [Int] = []
    private let route: OpaquePointer

    /// Most segments and bytes that the kernel accepts in one call, less room for headers.
    private static let mostSegments = 64
    private static let mostBytes = 65_000

    init(_ destinations: [Address]) {
        let made = unsafe floor_route_create(
            destinations.map { $0.ipv4 ?? 0 },
            destinations.map(\.port),
            Int32(destinations.count)
        )
        guard let made = unsafe made else { preconditionFailure("no memory for a route") }
        unsafe route = made
    }

    deinit { unsafe floor_route_destroy(route) }

    func sendEach(_ bytes: Span<UInt8>, by socket: UDPSocket) {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            _ = unsafe floor_send_each(
                socket.descriptor,
                route,
                buffer.baseAddress,
                UInt32(buffer.count)
            )
        }
    }

    /// Sends the waiting datagrams in the longest possible runs.
    ///
    /// The datagrams of a run have equal lengths, but the last may be shorter.
    func sendRuns(of inbox: borrowing Inbox, by socket: UDPSocket) {
        var start = 0
        while start < waiting.count {
            let length = inbox[waiting[start]].count
            var end = start + 1
            var last = length
            while end < waiting.count, last == length, end - start < Self.mostSegments,
                (end - start + 1) * length <= Self.mostBytes,
                inbox[waiting[end]].count <= length
            {
                last = inbox[waiting[end]].count
                end += 1
            }
            // The datagrams stay in the inbox until its next receive call.
            var datagrams: [UnsafePointer<UInt8>?] = unsafe []
            for index in waiting[start..<end] {
                unsafe inbox[index].withUnsafeBufferPointer { bytes in
                    unsafe datagrams.append(bytes.baseAddress)
                }
            }
            _ = unsafe floor_send_run(
                socket.descriptor,
                route,
                datagrams,
                Int32(end - start),
                UInt32(length),
                UInt32(last)
            )
            start = end
        }
        waiting.removeAll(keepingCapacity: true)
    }
}
