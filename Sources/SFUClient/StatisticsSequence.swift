public import Contract
import JSON

/// Statistics of rooms at intervals (`stats.subscribe`), on a connection of its own.
///
/// Each element is a `stats` event, whose data is a `RoomStats`. The sequence ends with
/// `ClientError.connectionLost` when the connection does; statistics need no replay, so a new
/// sequence is as good.
public struct StatisticsSequence: AsyncSequence, Sendable {
    public typealias Element = IPCEvent

    let dialer: Dialer
    let params: StatsSubscribe.Params

    public func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        let sequence: StatisticsSequence
        private var connection: LineConnection?

        init(sequence: StatisticsSequence) { self.sequence = sequence }

        /// Returns the next event, or `nil` when the task is cancelled.
        ///
        /// - Throws: `ClientError.unreachable`, `ClientError.refused` if sfud refuses the
        ///   subscription, `ClientError.connectionLost`, `ClientError.protocolViolation` for a line
        ///   that violates the contract.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> IPCEvent? {
            let connection = try await open()
            while let line = try await connection.line() {
                switch try message(in: line) {
                case .event(let event): if event.event == RoomStats.event { return event }
                case .reply(let reply):
                    do throws(IPCError) {
                        _ = try reply.outcome.get()
                    } catch {
                        throw .refused(error)
                    }
                }
            }
            connection.close()
            guard Task.isCancelled else { throw .connectionLost }
            return nil
        }

        public mutating func next() async throws(ClientError) -> IPCEvent? {
            try await next(isolation: nil)
        }

        /// Connects and subscribes at the first call.
        private mutating func open() async throws(ClientError) -> LineConnection {
            if let connection { return connection }
            let opened = try await sequence.dialer.open()
            let request = try IPCRequest(
                id: .integer(1),
                method: StatsSubscribe.name,
                params: JSON(params: sequence.params)
            )
            opened.send(request.encoded())
            connection = opened
            return opened
        }

        private func message(in line: [UInt8]) throws(ClientError) -> IPCMessage {
            do throws(IPCError) {
                return try IPCMessage(line: line)
            } catch {
                throw .protocolViolation(error.message)
            }
        }
    }
}
