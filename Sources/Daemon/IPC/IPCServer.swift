import CKernel
import ControlPlane
import Glibc
import Kernel
import RTP
import Sockets

/// Server of the IPC socket: carries lines between signalling servers and the control plane.
///
/// It never blocks on a connection. Output that the peer does not read yet is queued. A connection
/// is closed when more than the limit is queued and the peer reads nothing for a second. Media and
/// other connections are not affected.
struct IPCServer {
    private let socket: IPCSocket
    private let limits: IPCLimits
    private let log: Log
    private var connections: [ConnectionID: Connection] = [:]
    private var nextID: UInt64 = 1
    /// Connections to handle in the next `flush`, because of new output or another phase.
    private var touched: Set<ConnectionID> = []
    private var closed: [ConnectionID] = []
    private var buffer = [UInt8](repeating: 0, count: Self.readBytes)
    /// Spare descriptor; closed when no descriptors are left, to accept and close waiting
    /// connections.
    private var reserve: Int32?
    private var nextSweep: Instant?
    /// Time of the last sweep.
    private var lastSweep = Instant(nanoseconds: 0)

    init(_ socket: IPCSocket, limits: IPCLimits, log: Log) {
        self.socket = socket
        self.limits = limits
        self.log = log
        reserve = Self.openReserve()
    }

    var count: Int { connections.count }

    /// Next time that `expire(at:)` has something to do; `nil` if there is none.
    var deadline: Instant? { nextSweep }

    /// Registers the listening socket with the poller.
    func watch(with poller: borrowing Poller) throws(SystemError) {
        try poller.add(socket.descriptor, for: .readable, token: PollerToken.listener.rawValue)
    }

    /// Accepts waiting connections, a bounded number per call.
    mutating func accept(with poller: borrowing Poller, at now: Instant) {
        for _ in 0..<Self.acceptsPerTurn {
            let descriptor = kernel_accept(socket.descriptor)
            guard descriptor >= 0 else {
                guard descriptor == -EMFILE || descriptor == -ENFILE else { return }
                return acceptAndClose()
            }
            guard connections.count < limits.connections else {
                log.warning("ipc connection refused", [("reason", "limit ipcConnections")])
                kernel_close(descriptor)
                continue
            }
            add(descriptor, poller)
        }
    }

    private mutating func add(_ descriptor: Int32, _ poller: borrowing Poller) {
        let id = ConnectionID(rawValue: nextID)
        nextID += 1
        var peer = kernel_credentials()
        let known = unsafe kernel_peer_credentials(descriptor, &peer) == 0
        do throws(SystemError) {
            try poller.add(descriptor, for: .readable, token: PollerToken.connection(id).rawValue)
        } catch {
            log.warning("ipc connection refused", [("reason", "\(error)")])
            return kernel_close(descriptor)
        }
        let budget = CallBudget(callsPerSecond: limits.callsPerSecond)
        connections[id] = Connection(descriptor: descriptor, budget: budget)
        let who = known ? "pid=\(peer.pid) uid=\(peer.uid) gid=\(peer.gid)" : "unknown"
        let fields =
            known
            ? [("pid", "\(peer.pid)"), ("uid", "\(peer.uid)"), ("gid", "\(peer.gid)")] : []
        log.log(.info, "ipc connected", cause: who, [("connection", "\(id.rawValue)")] + fields)
    }

    /// Accepts and closes one connection with the spare descriptor.
    ///
    /// Otherwise the listener would stay readable, and the loop would spin, until a descriptor is
    /// free.
    private mutating func acceptAndClose() {
        log.warning("ipc connection refused", [("reason", "no file descriptors left")])
        guard let spare = reserve else { return }
        kernel_close(spare)
        let descriptor = kernel_accept(socket.descriptor)
        if descriptor >= 0 { kernel_close(descriptor) }
        reserve = Self.openReserve()
    }

    /// Opens a descriptor to keep in reserve; returns `nil` if none is left.
    private static func openReserve() -> Int32? {
        let descriptor = kernel_open_null()
        return descriptor < 0 ? nil : descriptor
    }

    /// Reads once; returns the complete lines.
    mutating func read(_ id: ConnectionID, at now: Instant) -> [[UInt8]] {
        guard let connection = connections[id], connection.phase == .open,
            connection.pausedUntil == nil
        else { return [] }
        let count = fill(from: connection.descriptor)
        guard count > 0 else {
            if count == 0 {
                end(id, at: now) { .lingering(until: $0) }
            } else if count != Int64(-EAGAIN) {
                drop(id, reason: SystemError.text(Int32(truncatingIfNeeded: -count)))
            }
            return []
        }
        let wasPartial = connections[id]?.reader.isPartial ?? false
        guard let result = connections[id]?.reader.receive(buffer[..<Int(count)]) else { return [] }
        if result.isTooLong {
            reply(id, Self.tooLong)
            log.warning("ipc line too long", [("connection", "\(id.rawValue)")])
            close(id, at: now)
        } else if connections[id]?.reader.isPartial == true {
            if !wasPartial || !result.lines.isEmpty { connections[id]?.lineStart = now }
            if nextSweep == nil { nextSweep = now.advanced(milliseconds: Self.sweepMilliseconds) }
        } else {
            connections[id]?.lineStart = nil
        }
        if let pause = connections[id]?.budget.take(result.lines.count, at: now) {
            // Further input stays in the socket's buffer, which blocks the peer when full.
            connections[id]?.pausedUntil = pause
            nextSweep = min(nextSweep ?? pause, pause)
            touched.insert(id)
        }
        return result.lines
    }

    private mutating func fill(from descriptor: Int32) -> Int64 {
        var places = buffer.mutableSpan
        return kernel_read(descriptor, &places)
    }

    /// Queues one line for a connection; does nothing if it has closed.
    mutating func reply(_ id: ConnectionID, _ line: [UInt8]) {
        guard let waiting = connections[id]?.output.count else { return }
        guard waiting + line.count < limits.outputBytes * Self.burst else {
            return drop(id, reason: "it does not read: limit ipcOutputBytes")
        }
        connections[id]?.output.append(line: line)
        touched.insert(id)
    }

    /// Queues an event for all connections subscribed to it; `room` is `nil` for a server event.
    mutating func event(_ event: EventLine, in room: String?) {
        // Collect the ids first: mutating a dictionary while iterating it would copy it.
        var hearing: [ConnectionID] = []
        for (id, connection) in connections
        where connection.events?.includes(event.name, in: room) == true {
            hearing.append(id)
        }
        for id in hearing { reply(id, event.line) }
    }

    /// Sets the events that a connection receives, and queues those that it missed.
    mutating func subscribe(_ id: ConnectionID, _ events: EventInterest, replay: [EventLine]) {
        connections[id]?.events = events
        for event in replay { reply(id, event.line) }
    }

    /// Writes queued output, and updates the poller's interest.
    mutating func flush(with poller: borrowing Poller, at now: Instant) {
        for id in touched {
            guard var connection = connections[id] else { continue }
            connections[id] = nil
            let failure = connection.output.write(to: connection.descriptor)
            if connection.updateStall(limits.outputBytes), nextSweep == nil {
                nextSweep = now.advanced(milliseconds: Self.sweepMilliseconds)
            }
            let wanted = connection.wantedInterest(outputLimit: limits.outputBytes)
            if wanted != connection.interest {
                connection.interest = wanted
                let token = PollerToken.connection(id).rawValue
                poller.change(connection.descriptor, to: wanted, token: token)
            }
            connections[id] = connection
            if let failure, failure != EAGAIN {
                drop(id, reason: SystemError.text(failure))
            } else if case .closing = connection.phase, connection.output.count == 0 {
                drop(id, reason: "closed by sfud")
            }
        }
        touched.removeAll(keepingCapacity: true)
    }

    /// Whether any connection has output that it has not taken yet.
    var hasOutput: Bool { connections.values.contains { $0.output.count > 0 } }

    /// Handles a connection that is writable again, or whose peer has closed.
    mutating func wake(_ id: ConnectionID, hungUp: Bool) {
        if hungUp, connections[id]?.phase != .open { return drop(id, reason: "hung up") }
        // No more input can come, and the poller would report the hang-up again and again: end the
        // pause and read the rest.
        if hungUp { connections[id]?.pausedUntil = nil }
        touched.insert(id)
    }

    /// Closes a connection once its queue has been written.
    mutating func close(_ id: ConnectionID, at now: Instant) {
        end(id, at: now) { .closing(until: $0) }
    }

    /// Stops reading from a connection and starts its shutdown timer.
    private mutating func end(
        _ id: ConnectionID,
        at now: Instant,
        _ phase: (Instant) -> Connection.Phase
    ) {
        guard connections[id]?.phase == .open else { return }
        connections[id]?.phase = phase(now.advanced(milliseconds: Self.lingerMilliseconds))
        connections[id]?.lineStart = nil
        touched.insert(id)
        if nextSweep == nil { nextSweep = now.advanced(milliseconds: Self.sweepMilliseconds) }
    }

    /// Closes connections that exceed the time for lingering, for a line, or for a stall.
    mutating func expire(at now: Instant) {
        guard let due = nextSweep, due <= now else { return }
        nextSweep = nil
        let passed = min(now.milliseconds(since: lastSweep), Self.sweepMilliseconds)
        lastSweep = now
        // Iterate over a copy of the keys: mutating the dictionary while iterating it would copy
        // it.
        for id in Array(connections.keys) {
            resume(id, at: now)
            if let reason = reasonToClose(id, after: passed, at: now) {
                drop(id, reason: reason)
            } else if connections[id]?.needsSweep == true {
                let next = now.advanced(milliseconds: Self.sweepMilliseconds)
                nextSweep = min(nextSweep ?? next, next)
            }
        }
    }

    /// Returns the reason to close a connection; `nil` if it may stay.
    ///
    /// `passed` is the time since the last sweep, in milliseconds.
    private mutating func reasonToClose(
        _ id: ConnectionID,
        after passed: Int64,
        at now: Instant
    ) -> String? {
        guard let connection = connections[id] else { return nil }
        if connection.isOver(at: now) { return "end of input" }
        let oldest = now.advanced(milliseconds: -Int64(limits.lineSeconds) * 1_000)
        if connection.pausedUntil == nil, let start = connection.lineStart, start <= oldest {
            return "limit ipcLineSeconds"
        }
        guard let stall = connections[id]?.addStall(milliseconds: passed),
            stall >= Self.stallMilliseconds
        else { return nil }
        return "it does not read: limit ipcOutputBytes"
    }

    /// Resumes reading from a connection whose pause is over; otherwise schedules the pause's end.
    private mutating func resume(_ id: ConnectionID, at now: Instant) {
        guard let pause = connections[id]?.pausedUntil else { return }
        if pause <= now {
            connections[id]?.pausedUntil = nil
            if connections[id]?.lineStart != nil { connections[id]?.lineStart = now }
            touched.insert(id)
        } else {
            nextSweep = min(nextSweep ?? pause, pause)
        }
    }

    private mutating func drop(_ id: ConnectionID, reason: String) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        // Closing the descriptor also removes it from the poller.
        kernel_close(connection.descriptor)
        closed.append(id)
        let fields = [("connection", "\(id.rawValue)"), ("reason", reason)]
        log.log(.info, "ipc disconnected", cause: reason, fields)
    }

    /// Returns the connections that have closed since the last call.
    mutating func takeClosed() -> [ConnectionID] {
        defer { closed.removeAll(keepingCapacity: true) }
        return closed
    }

    /// Writes as much as the connections take, closes them, and removes the socket.
    mutating func close() {
        for id in Array(connections.keys) {
            guard let descriptor = connections[id]?.descriptor else { continue }
            _ = connections[id]?.output.write(to: descriptor)
            drop(id, reason: "shutdown")
        }
        socket.close()
    }

    private static let readBytes = 1 << 15
    private static let acceptsPerTurn = 64
    private static let lingerMilliseconds: Int64 = 2_000
    private static let sweepMilliseconds: Int64 = 500
    /// Milliseconds for which a connection may read nothing while more than the limit is queued.
    private static let stallMilliseconds: Int64 = 1_000
    /// Hard limit of a connection's queue, as a multiple of `outputBytes`.
    ///
    /// It leaves room for the replies to all calls of one read: 300 joins of a room of 2,000, each
    /// of which returns the room.
    private static let burst = 16
    private static let tooLong = Array(
        """
        {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"line longer than \
        \(IPCLimits.lineBytes) bytes","data":{"reason":"line-too-long"}}}
        """.utf8
    )
}
