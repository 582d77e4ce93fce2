public import Contract
public import JSON

/// A signalling server's line to sfud.
///
/// Any number of calls may be under way; replies are matched by id. The connection is made at the
/// first call, and made anew by the next call after it was lost. Calls that wait for a reply when
/// it is lost fail with `connectionLost` and are not sent again: they may have been done.
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

    /// Connects now; without it, the first call does.
    ///
    /// - Throws: `ClientError.unreachable`.
    public func connect() async throws(ClientError) { _ = try await open() }

    /// Ends the connection; calls under way fail with `connectionLost`.
    public func close() {
        guard let connection else { return }
        connection.close()
        lost(connection, .connectionLost)
    }

    /// Events as they come, on a connection of their own.
    ///
    /// They are those of `rooms`, or of all where it is `nil`; `since` has the last `seq` that was
    /// seen of each room, and the events after it come first. A sequence ends when its task is
    /// cancelled.
    public nonisolated func events(
        rooms: [RoomID]? = nil,
        since: [RoomID: Int64] = [:]
    ) -> EventSequence {
        EventSequence(dialer: dialer, options: options, rooms: rooms, since: since)
    }

    /// Calls a method.
    ///
    /// - Throws: `ClientError.refused` with sfud's error, or what kept the reply away.
    public func call<M: IPCMethod>(
        _ method: M.Type,
        _ params: M.Params
    ) async throws(ClientError) -> M.Result {
        let json = try await call(M.name, JSON(encoding: params))
        do throws(IPCError) {
            return try json.decode(M.Result.self)
        } catch {
            throw .protocolViolation("\(M.name): \(error.message)")
        }
    }

    /// Calls a method by its name.
    ///
    /// - Throws: As the typed call.
    public func call(_ method: String, _ params: JSON) async throws(ClientError) -> JSON {
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
            Task { await self.settle(id, .failure(.cancelled)) }
        }
        return try result.get()
    }

    private func timer(for id: Int64) -> Task<Void, Never> {
        Task { [weak self, options] in
            do { try await options.sleep(options.timeout) } catch { return }
            await self?.settle(id, .failure(.timeout))
        }
    }

    private func settle(_ id: Int64, _ result: Result<JSON, ClientError>) {
        timers.removeValue(forKey: id)?.cancel()
        waiting.removeValue(forKey: id)?.resume(returning: result)
    }
}

// The connection.
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

    /// Takes a new connection into use, unless somebody who waited for it too was faster.
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
            await self?.lost(opened, end)
        }
        return opened
    }

    private func received(_ line: [UInt8], on connection: LineConnection) {
        do throws(IPCError) {
            guard case .reply(let reply) = try IPCMessage(line: line) else { return }
            guard case .integer(let id) = reply.id else {
                // A reply without our id belongs to no call; nor can what follows be trusted.
                return lost(connection, .protocolViolation("a reply to nothing"))
            }
            settle(id, reply.outcome.mapError(ClientError.refused))
        } catch {
            lost(connection, .protocolViolation(error.message))
        }
    }

    private func lost(_ gone: LineConnection, _ error: ClientError) {
        guard let connection, connection === gone else { return }
        connection.close()
        self.connection = nil
        for id in waiting.keys.sorted() { settle(id, .failure(error)) }
    }
}
