public import Contract
import JSON

/// Events of rooms in order and without gaps, across reconnects.
///
/// After a lost connection the sequence retries without limit and resumes after the last event that
/// it delivered. If that is impossible it delivers a `resync` event; call `room.get` for the
/// current state. It reads from the socket only when the caller asks for the next event.
///
/// It subscribes when the first event is requested. Callers who must know from when on they miss
/// nothing call `Iterator.subscribe()` first.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = IPCEvent

    let dialer: Dialer
    let options: ClientOptions
    let rooms: [RoomID]?
    let since: [RoomID: Int64]
    var patterns: [EventPattern]?

    public func makeAsyncIterator() -> Iterator {
        Iterator(
            sequence: self,
            positions: EventPositions(seen: since, isFiltered: patterns != nil)
        )
    }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let sequence: EventSequence
        var positions: EventPositions
        var connection: LineConnection?
        var wasConnected = false
        /// `boot` of the last daemon that was connected.
        var boot: String?
        /// Connection attempts since the last event.
        var attempts = 0
        /// Events read while waiting for a reply.
        var bufferedEvents: [IPCEvent] = []
        /// Events created by the iterator, which no connection sends again.
        var lostRooms: [IPCEvent] = []

        init(sequence: EventSequence, positions: EventPositions) {
            self.sequence = sequence
            self.positions = positions
        }

        /// Subscribes now; every event from then on is returned by `next()`, in order.
        ///
        /// Read the state after it, and no change is missed. Without it, the first call of `next()`
        /// subscribes. After a lost connection it subscribes again, for the missed events first.
        ///
        /// - Throws: As `next()`, and `ClientError.cancelled`.
        public mutating func subscribe(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(ClientError) {
            while connection == nil {
                guard !Task.isCancelled else { throw .cancelled }
                try await reconnect()
            }
        }

        /// Returns the next event, or `nil` when the task is cancelled.
        ///
        /// - Throws: `ClientError.unreachable` or `ClientError.connectionLost` if the first
        ///   connection fails, `ClientError.refused` if sfud refuses the subscription,
        ///   `ClientError.protocolViolation` for a line that violates the contract.
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
    /// Returns an event, or `nil` after a step towards the next one.
    private mutating func step() async throws(ClientError) -> IPCEvent? {
        guard let connection else {
            try await reconnect()
            return nil
        }
        let event: IPCEvent
        if !lostRooms.isEmpty {
            event = lostRooms.removeFirst()
        } else if bufferedEvents.isEmpty {
            guard case .event(let read) = try await message(connection) else { return nil }
            event = read
        } else {
            event = bufferedEvents.removeFirst()
        }
        attempts = 0
        return positions.take(event)
    }

    /// Returns the next message, or `nil` if the connection has ended.
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

    /// Connects and subscribes.
    ///
    /// All but the first attempt come after a pause, which grows until events arrive.
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
        bufferedEvents = []
        guard let info = try await call(ServerInfo.self, Empty(), connection) else { return }
        if let boot, boot != info.boot {
            guard let saysWhatIsGone = try await isNode(connection) else { return }
            if !saysWhatIsGone { lostRooms += positions.restart(at: info.started) }
        }
        boot = info.boot
        if wasConnected {
            // Rooms made while disconnected are requested from their first event.
            if let rooms = sequence.rooms {
                for room in rooms { positions.register(room) }
            } else {
                var params = RoomList.Params()
                repeat {
                    guard let page = try await call(RoomList.self, params, connection) else {
                        return
                    }
                    for room in page.rooms { positions.register(room.room) }
                    params.after = page.next
                } while params.after != nil
            }
        }
        let params = EventsSubscribe.Params(
            rooms: sequence.rooms,
            since: positions.seen.isEmpty ? nil : positions.seen,
            events: sequence.patterns
        )
        positions.expectsEverything = wasConnected
        _ = try await call(EventsSubscribe.self, params, connection)
    }

    /// Returns whether the daemon is a node of a cluster, whose rooms may go on at other nodes;
    /// `nil` if the connection ended.
    private mutating func isNode(
        _ connection: LineConnection
    ) async throws(ClientError) -> Bool? {
        do throws(ClientError) {
            guard let list = try await call(NodeList.self, Empty(), connection) else { return nil }
            return list.registry != nil
        } catch .refused(_) {
            // Its version knows no clusters.
            return false
        }
    }

    /// Sends a call on the event connection; returns `nil` if the connection ended.
    private mutating func call<M: IPCMethod>(
        _ method: M.Type,
        _ params: M.Params,
        _ connection: LineConnection
    ) async throws(ClientError) -> M.Result? {
        let id = RequestID.string(M.name)
        let request = try IPCRequest(id: id, method: M.name, params: JSON(params: params))
        connection.send(request.encoded())
        while let message = try await message(connection) {
            switch message {
            case .event(let event): bufferedEvents.append(event)
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
