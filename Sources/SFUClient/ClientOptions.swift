internal import Dispatch

/// Options of a client.
public struct ClientOptions: Sendable {
    /// Longest wait for the reply to a call.
    public var timeout: Duration = .seconds(10)
    /// Most pending calls; further calls fail in the client.
    public var callLimit = 10_000
    /// First pause before reconnecting; it doubles with each attempt up to `longestPause`.
    public var firstPause: Duration = .milliseconds(50)
    public var longestPause: Duration = .seconds(5)

    /// Sleeps for a duration; tests replace it.
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    public init() {}

    /// Returns the pause before attempt `attempt` (from 0), shortened by up to a quarter at random.
    func pause(_ attempt: Int) -> Duration {
        let doubled = firstPause * (1 << min(attempt, 16))
        return min(doubled, longestPause) * Double.random(in: 0.75...1)
    }
}

/// Opens connections to the daemon's socket, or to a test's.
struct Dialer: Sendable {
    let dial: @Sendable () throws(ClientError) -> UnixSocket

    init(path: String) {
        dial = { () throws(ClientError) -> UnixSocket in try UnixSocket.connect(to: path) }
    }

    /// Connects on a thread that may block.
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
