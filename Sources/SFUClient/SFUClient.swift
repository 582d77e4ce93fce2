public import Contract
public import JSON

/// A signalling server's connection to sfud.
///
/// Any number of calls may be pending; replies are matched by id. The connection is made by the
/// first call, and by the next call after a disconnection. Pending calls then fail with
/// `connectionLost` and are not retried, because they may have been executed.
public actor SFUClient {
    private let dialer: Dialer
    private let options: ClientOptions
    private var connection: LineConnection?
    private var connecting: Task<LineConnection, any Error>?
    private var waiting: [Int64: CheckedContinuation<Result<JSON, ClientError>, Never>] = [:]
    private var timers: [Int64: Task<Void, Never>] = [:]
    private var lastID: Int64 = 0

    public init(path: String = IPCPath.standard, options: ClientOptions = ClientOptions()) {
        self.init(dialer: Dialer(path: path), options: options)
    }

    init(dialer: Dialer, options: ClientOptions) {
        self.dialer = dialer
        self.options = options
    }

    deinit { connection?.close() }

    /// Connects now instead of at the first call.
    ///
    /// - Throws: `ClientError.unreachable`.
    public func connect() async throws(ClientError) { _ = try await open() }

    /// Closes the connection; pending calls fail with `connectionLost`.
    public func close() {
        guard let connection else { return }
        connection.close()
        disconnected(connection, .connectionLost)
    }

    /// Returns a sequence of events on a connection of its own.
    ///
    /// It has the events of `rooms`, or of all rooms if `nil`. `since` gives the last `seq` seen of
    /// each room; later events come first. `events` restricts it to events by name or prefix. The
    /// sequence ends when its task is cancelled. It subscribes with the first call of `next()`, or
    /// earlier by `subscribe()` of its iterator:
    ///
    ///     var events = client.events().makeAsyncIterator()
    ///     try await events.subscribe()  // from now on no event is missed
    ///     let rooms = try await client.all(RoomList.self, RoomList.Params())
    ///     while let event = try await events.next() { … }
    public nonisolated func events(
        rooms: [RoomID]? = nil,
        since: [RoomID: Int64] = [:],
        events: [EventPattern]? = nil
    ) -> EventSequence {
        EventSequence(
            dialer: dialer,
            options: options,
            rooms: rooms,
            since: since,
            patterns: events
        )
    }

    /// Returns a sequence of statistics on a connection of its own.
    ///
    /// It has the statistics of `rooms`, or of all rooms if `nil`, once in so many seconds, 1 to
    /// 60. It ends when its task is cancelled.
    public nonisolated func statistics(
        rooms: [RoomID]? = nil,
        seconds: Int
    ) -> StatisticsSequence {
        StatisticsSequence(dialer: dialer, params: .init(rooms: rooms, seconds: seconds))
    }

    /// Calls a method.
    ///
    /// - Throws: `ClientError.refused` with sfud's error, or the reason why there is no reply;
    ///   `ClientError.limit` for params that are too long or nested too deep, which are not sent.
    public func call<M: IPCMethod>(
        _ method: M.Type,
        _ params: M.Params
    ) async throws(ClientError) -> M.Result {
        let json = try await call(M.name, JSON(params: params))
        do throws(IPCError) {
            return try json.decode(M.Result.self)
        } catch {
            throw .protocolViolation("\(M.name): \(error.message)")
        }
    }

    /// Returns a whole list, page by page.
    ///
    /// - Throws: The same errors as a single call.
    public func all<M: IPCMethod>(
        _ method: M.Type,
        _ params: M.Params
    ) async throws(ClientError) -> [M.Result.Element]
    where M.Params: PagedParams, M.Result: PagedResult {
        var params = params
        var elements: [M.Result.Element] = []
        repeat {
            let result = try await call(method, params)
            elements += result.page
            params.after = result.next
        } while params.after != nil
        return elements
    }

    /// Calls a method by its name.
    ///
    /// - Throws: The same errors as the typed call.
    public func call(_ method: String, _ params: JSON) async throws(ClientError) -> JSON {
        // sfud could not tell whose such a line is, and would answer nobody.
        guard !params.isNested(deeperThan: JSON.depthLimit - 1) else { throw .nestedTooDeep }
        let connection = try await open()
        guard waiting.count < options.callLimit else {
            throw .limit("\(options.callLimit) calls are under way")
        }
        lastID += 1
        let id = lastID
        let line = IPCRequest(id: .integer(id), method: method, params: params).encoded()
        guard line.count <= IPCRequest.lineLimit else { throw .limit("the params are too long") }

        let result: Result<JSON, ClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                guard !Task.isCancelled else {
                    return continuation.resume(returning: .failure(.cancelled))
                }
                waiting[id] = continuation
                timers[id] = timer(for: id)
                connection.send(line)
            }
        } onCancel: {
            Task { await self.complete(id, .failure(.cancelled)) }
        }
        return try result.get()
    }

    private func timer(for id: Int64) -> Task<Void, Never> {
        Task { [weak self, options] in
            do { try await options.sleep(options.timeout) } catch { return }
            await self?.complete(id, .failure(.timeout))
        }
    }

    private func complete(_ id: Int64, _ result: Result<JSON, ClientError>) {
        timers.removeValue(forKey: id)?.cancel()
        waiting.removeValue(forKey: id)?.resume(returning: result)
    }
}

// Connection management.
extension SFUClient {
    private func open() async throws(ClientError) -> LineConnection {
        if let connection { return connection }
        let task = connecting ?? dialing()
        connecting = task
        let result = await task.result
        if connecting == task { connecting = nil }
        do {
            return adopt(try result.get())
        } catch let error as ClientError {
            throw error
        } catch {
            throw .protocolViolation("\(error)")
        }
    }

    private nonisolated func dialing() -> Task<LineConnection, any Error> {
        Task.detached { [dialer] in try await dialer.open() }
    }

    /// Makes `opened` the current connection unless a concurrent caller has set one.
    private func adopt(_ opened: LineConnection) -> LineConnection {
        if let connection { return connection }
        connection = opened
        Task { [weak self] in
            var end = ClientError.connectionLost
            do throws(ClientError) {
                while let line = try await opened.line() {
                    guard let self else { return }
                    await self.received(line, on: opened)
                }
            } catch {
                end = error
            }
            await self?.disconnected(opened, end)
        }
        return opened
    }

    private func received(_ line: [UInt8], on connection: LineConnection) {
        do throws(IPCError) {
            guard case .reply(let reply) = try IPCMessage(line: line) else { return }
            guard case .integer(let id) = reply.id else {
                // A reply without one of our ids matches no call, so the connection cannot be
                // trusted.
                return disconnected(connection, .protocolViolation("a reply to nothing"))
            }
            complete(id, reply.outcome.mapError(ClientError.refused))
        } catch {
            disconnected(connection, .protocolViolation(error.message))
        }
    }

    private func disconnected(_ gone: LineConnection, _ error: ClientError) {
        guard let connection, connection === gone else { return }
        connection.close()
        self.connection = nil
        for id in waiting.keys.sorted() { complete(id, .failure(error)) }
    }
}
