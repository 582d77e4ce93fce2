internal import Dispatch

/// How a client behaves.
public struct ClientOptions: Sendable {
    /// How long a call may wait for its reply.
    public var timeout: Duration = .seconds(10)
    /// Calls under way at one time; one more is refused here.
    public var callLimit = 10_000
    /// Pauses between tries to reconnect: the first, doubled each time up to the last.
    public var firstPause: Duration = .milliseconds(50)
    public var longestPause: Duration = .seconds(5)

    /// Waits; a test puts its own clock here.
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    public init() {}

    /// The pause before try `attempt` (from 0), with a quarter of it left to chance.
    func pause(_ attempt: Int) -> Duration {
        let doubled = firstPause * (1 << min(attempt, 16))
        return min(doubled, longestPause) * Double.random(in: 0.75...1)
    }
}

/// Makes a connection: the path's socket, or what a test has instead.
struct Dialer: Sendable {
    let dial: @Sendable () throws(ClientError) -> UnixSocket

    init(path: String) {
        dial = { () throws(ClientError) -> UnixSocket in try UnixSocket.connect(to: path) }
    }

    /// Dials where blocking harms nobody.
    func open() async throws(ClientError) -> LineConnection {
        let result: Result<LineConnection, ClientError> = await withCheckedContinuation { waiter in
            DispatchQueue.global().async {
                do throws(ClientError) {
                    waiter.resume(returning: .success(LineConnection(try dial())))
                } catch {
                    waiter.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    init(_ dial: @escaping @Sendable () throws(ClientError) -> UnixSocket) { self.dial = dial }
}
