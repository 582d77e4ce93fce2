public import Contract
import JSON

/// The events of rooms, in order and without gaps, over as many connections as it takes.
///
/// When the connection is lost the sequence reconnects, for as long as it takes, and goes on after
/// the last event that it gave. Where that is no longer possible it gives a `resync` event: look
/// with `room.get` how things are. While nobody asks for the next event none is read.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = IPCEvent

    let dialer: Dialer
    let options: ClientOptions
    let rooms: [RoomID]?
    let since: [RoomID: Int64]

    public func makeAsyncIterator() -> Iterator {
        Iterator(sequence: self, positions: Positions(seen: since))
    }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let sequence: EventSequence
        var positions: Positions
        var connection: LineConnection?
        var wasConnected = false
        /// Of the daemon that was last connected.
        var boot: String?
        /// Connections tried since the last event.
        var attempts = 0
        /// Read while a reply was waited for, or made here.
        var early: [IPCEvent] = []

        init(sequence: EventSequence, positions: Positions) {
            self.sequence = sequence
            self.positions = positions
        }

        /// The next event; `nil` when the task is cancelled.
        ///
        /// - Throws: `ClientError.unreachable` where the first connection fails,
        ///   `ClientError.refused` where sfud refuses the subscription.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> IPCEvent? {
            while !Task.isCancelled {
                if let event = try await step() { return event }
            }
            connection?.close()
            return nil
        }

        public mutating func next() async throws(ClientError) -> IPCEvent? {
            try await next(isolation: nil)
        }
    }
}

extension EventSequence.Iterator {
    /// One event, or one step towards it.
    private mutating func step() async throws(ClientError) -> IPCEvent? {
        guard let connection else {
            try await reconnect()
            return nil
        }
        let event: IPCEvent
        if early.isEmpty {
            guard case .event(let read) = try await message(connection) else { return nil }
            event = read
        } else {
            event = early.removeFirst()
        }
        attempts = 0
        return positions.take(event)
    }

    /// The next message; `nil` where there is none and the connection is no more.
    private mutating func message(
        _ connection: LineConnection
    ) async throws(ClientError) -> IPCMessage? {
        guard let line = try await connection.line() else {
            self.connection = nil
            return nil
        }
        do throws(IPCError) {
            return try IPCMessage(line: line)
        } catch {
            throw .protocolViolation(error.message)
        }
    }

    /// Connects and subscribes; after the first time with pauses that grow until events come.
    private mutating func reconnect() async throws(ClientError) {
        if wasConnected {
            let pause = sequence.options.pause(attempts)
            attempts += 1
            do { try await sequence.options.sleep(pause) } catch { return }
        }
        do throws(ClientError) {
            let opened = try await sequence.dialer.open()
            connection = opened
            try await subscribe(opened)
        } catch .unreachable(let path, let cause) {
            guard wasConnected else { throw .unreachable(path: path, cause: cause) }
        }
        guard connection != nil || wasConnected || Task.isCancelled else { throw .connectionLost }
        wasConnected = true
    }

    private mutating func subscribe(_ connection: LineConnection) async throws(ClientError) {
        early = []
        guard let info = try await call(ServerInfo.self, Empty(), connection) else { return }
        if let boot, boot != info.boot { early = positions.restart(at: info.started) }
        boot = info.boot
        if wasConnected {
            // Of what was made meanwhile all events are wanted, from the first.
            if let rooms = sequence.rooms {
                for room in rooms { positions.meet(room) }
            } else {
                guard let list = try await call(RoomList.self, Empty(), connection) else { return }
                for room in list.rooms { positions.meet(room.room) }
            }
        }
        let params = EventsSubscribe.Params(
            rooms: sequence.rooms,
            since: positions.seen.isEmpty ? nil : positions.seen
        )
        positions.expectsEverything = wasConnected
        _ = try await call(EventsSubscribe.self, params, connection)
    }

    /// Calls on the events' own connection; `nil` where it ended.
    private mutating func call<M: IPCMethod>(
        _ method: M.Type,
        _ params: M.Params,
        _ connection: LineConnection
    ) async throws(ClientError) -> M.Result? {
        let id = RequestID.string(M.name)
        let request = IPCRequest(id: id, method: M.name, params: JSON(encoding: params))
        connection.send(request.encoded())
        while let message = try await message(connection) {
            switch message {
            case .event(let event): early.append(event)
            case .reply(let reply) where reply.id == id:
                return try result(of: method, reply)
            case .reply: throw .protocolViolation("a reply to nothing")
            }
        }
        return nil
    }

    private func result<M: IPCMethod>(
        of method: M.Type,
        _ reply: IPCReply
    ) throws(ClientError) -> M.Result {
        let json: JSON
        do throws(IPCError) {
            json = try reply.outcome.get()
        } catch {
            throw .refused(error)
        }
        do throws(IPCError) {
            return try json.decode(M.Result.self)
        } catch {
            throw .protocolViolation("\(M.name): \(error.message)")
        }
    }
}
