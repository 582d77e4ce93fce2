import Contract
import ControlPlane
import JSON
import RTP
import TestSupport

/// The signalling servers: connections that stall and die, pending calls, and each room's last
/// received event.
struct Callers {
    /// A call, from request to reply.
    struct Call {
        var method: String
        var connection: ConnectionID
        /// Called when the reply has left the daemon; never on a connection that dies.
        var emitted: (Outcome) -> Void
        var then: (Outcome) -> Void
        var isEmitted = false
        /// Time of the request.
        var time: Int64
    }

    /// Outcome of a call; `lost`: the connection died before the reply arrived.
    enum Outcome {
        case done(JSON)
        case refused(IPCError)
        case lost

        var result: JSON? { if case .done(let result) = self { result } else { nil } }
    }

    struct Line {
        var rooms: Set<String>?
        var hears = false
        /// Whether it receives events, or will; a connection that replaces it does too.
        var isForEvents = false
        /// Time until which it reads nothing, in nanoseconds.
        var stalledUntil: Int64 = 0
        /// Arrival of the last line that it reads: lines keep their order.
        var lastArrival: Int64 = 0
        var isOpen = true
    }

    var connections: [ConnectionID: Line] = [:]
    var calls: [Int64: Call] = [:]
    /// Calls whose reply has left the daemon, or never will.
    var settled: Set<Int64> = []
    /// Number of the last received event of each room.
    var heard: [String: Int64] = [:]
    var lastCall: Int64 = 0
    private var lastConnection: UInt64 = 0

    mutating func open() -> ConnectionID {
        lastConnection += 1
        let id = ConnectionID(rawValue: lastConnection)
        connections[id] = Line()
        return id
    }

    func isOpen(_ id: ConnectionID) -> Bool { connections[id]?.isOpen == true }

    var openConnections: [ConnectionID] {
        connections.filter(\.value.isOpen).keys.sorted { $0.rawValue < $1.rawValue }
    }

    mutating func subscribe(_ id: ConnectionID, rooms: Set<String>?) {
        connections[id]?.hears = true
        connections[id]?.rooms = rooms
    }

    func hears(_ id: ConnectionID, of room: String) -> Bool {
        guard let line = connections[id], line.isOpen, line.hears else { return false }
        return line.rooms?.contains(room) ?? true
    }
}

extension World {
    /// Longest time of a call while nothing is stalled, in nanoseconds.
    private static let longestCall: Int64 = 10_000_000_000

    /// Opens a connection, which receives events if no other does.
    func openConnection(hearing: Bool) {
        let id = callers.open()
        callers.connections[id]?.isForEvents = hearing
        guard hearing else { return }
        var params: [String: JSON] = [:]
        if !callers.heard.isEmpty {
            params["since"] = .object(callers.heard.mapValues { .integer($0) })
        }
        call("events.subscribe", params, on: id)
    }

    /// Makes a call on one of the connections.
    ///
    /// `emitted` is called when the reply leaves the daemon, `then` when it has arrived.
    func call(
        _ method: String,
        _ params: [String: JSON],
        on connection: ConnectionID? = nil,
        emitted: @escaping (Callers.Outcome) -> Void = { _ in },
        then: @escaping (Callers.Outcome) -> Void = { _ in }
    ) {
        guard let id = connection ?? random.pick(callers.openConnections) else {
            return then(.lost)
        }
        tally.calls += 1
        callers.lastCall += 1
        let number = callers.lastCall
        trace.note(method)
        tell("call \(number) \(method) \(params.filter { $0.key != "sdp" })")
        callers.calls[number] = Callers.Call(
            method: method,
            connection: id,
            emitted: emitted,
            then: then,
            time: now.nanoseconds
        )
        let request = IPCRequest(id: .integer(number), method: method, params: .object(params))
        schedule.add(
            .line(id, request.encoded()),
            at: now.advanced(nanoseconds: random.pick(20_000...2_000_000))
        )
    }

    /// Takes a reply that the daemon has written.
    func emit(reply line: [UInt8], on connection: ConnectionID) {
        if strikes(.lostReply, oneIn: 50) { return }
        let isStray = strikes(.strayReply, oneIn: 50)
        let open = callers.openConnections
        let to = isStray ? open.first { $0 != connection } ?? connection : connection
        settle(line, on: to)
        if strikes(.doubleReply, oneIn: 50) { settle(line, on: to) }
    }

    private func settle(_ line: [UInt8], on connection: ConnectionID) {
        guard case .reply(let reply)? = try? IPCMessage(line: line),
            case .integer(let id)? = reply.id
        else { return violate(.replies, "no reply: \(String(decoding: line, as: UTF8.self))") }
        trace.note(id)
        guard callers.isOpen(connection) else { return }
        guard !callers.settled.contains(id), let call = callers.calls[id] else {
            return violate(.replies, "call \(id) is answered twice")
        }
        guard call.connection == connection else {
            return violate(.replies, "call \(id) is answered on another connection")
        }
        callers.settled.insert(id)
        callers.calls[id]?.isEmitted = true
        tell("reply \(id) to \(call.method)")
        switch reply.outcome {
        case .success(let result): call.emitted(.done(result))
        case .failure(let error):
            trace.note(error.code)
            if error.code == -32_603 || error.code == -32_600 || error.code == -32_602 {
                violate(.answers, "\(call.method): \(error)")
            }
            call.emitted(.refused(error))
        }
        schedule.add(.reply(id, reply.outcome), at: arrival(on: connection))
    }

    /// Returns the time at which a line written now is read.
    private func arrival(on connection: ConnectionID) -> Instant {
        guard var line = callers.connections[connection] else { return now }
        var time = now.nanoseconds + random.pick(20_000...2_000_000)
        time = max(time, line.stalledUntil, line.lastArrival)
        line.lastArrival = time
        callers.connections[connection] = line
        return Instant(nanoseconds: time)
    }

    func answered(_ id: Int64, _ outcome: Result<JSON, IPCError>) {
        guard let call = callers.calls.removeValue(forKey: id) else { return }
        switch outcome {
        case .success(let result): call.then(.done(result))
        case .failure(let error): call.then(.refused(error))
        }
    }

    func emit(event line: [UInt8], of room: String) {
        for connection in callers.openConnections where callers.hears(connection, of: room) {
            if strikes(.eventGap, oneIn: 100) { continue }
            deliver(event: line, on: connection)
            if strikes(.eventRepeated, oneIn: 100) { deliver(event: line, on: connection) }
        }
    }

    func deliver(event line: [UInt8], on connection: ConnectionID) {
        schedule.add(.event(connection, line), at: arrival(on: connection))
    }

    /// Takes an event that has arrived.
    func heard(_ line: [UInt8], on connection: ConnectionID) {
        guard callers.isOpen(connection) else { return }
        tally.events += 1
        guard case .event(let event)? = try? IPCMessage(line: line), let room = event.room else {
            return violate(.events, "no event: \(String(decoding: line, as: UTF8.self))")
        }
        trace.note(event.event)
        if event.event == "resync" {
            callers.heard[room.rawValue] = event.seq
            return
        }
        if let last = callers.heard[room.rawValue], event.seq != last + 1 {
            violate(.events, "\(room) goes from \(last) to \(event.seq) (\(event.event))")
        }
        callers.heard[room.rawValue] = event.seq
        take(event)
    }

    /// Ends a connection, with everything in flight in either direction.
    func kill(_ connection: ConnectionID) {
        guard let line = callers.connections[connection], line.isOpen else { return }
        callers.connections[connection]?.isOpen = false
        tell("connection \(connection) dies")
        plane.connectionClosed(connection)
        let lost = callers.calls.filter { $0.value.connection == connection }.keys.sorted()
        for id in lost {
            guard let call = callers.calls.removeValue(forKey: id) else { continue }
            callers.settled.insert(id)
            call.then(.lost)
        }
        openConnection(hearing: line.isForEvents)
    }

    /// Checks for calls that were never answered; returns `true` where none is open.
    @discardableResult
    func checkCalls() -> Bool {
        for (id, call) in callers.calls.sorted(by: { $0.key < $1.key })
        where !call.isEmitted {
            let start = max(call.time, lastStall.nanoseconds)
            guard now.nanoseconds - start > Self.longestCall else { continue }
            violate(.replies, "call \(id), \(call.method), is not answered")
        }
        return callers.calls.isEmpty
    }
}
