internal import Dispatch
import Kernel

/// A socket that carries lines.
///
/// Lines are read only on demand: a slow reader uses no memory here, and backpressure reaches the
/// daemon. Each direction blocks its own thread.
final class LineConnection: Sendable {
    private let socket: UnixSocket
    private let input = Locked(LineBuffer())
    private let reading = DispatchQueue(label: "sfu-client-read")
    private let writing = DispatchQueue(label: "sfu-client-write")

    init(_ socket: UnixSocket) { self.socket = socket }

    deinit { socket.shutdown() }

    /// Returns the next line, or `nil` if the connection has ended or the task was cancelled.
    ///
    /// Only one caller may wait at a time; the order of lines among concurrent callers is
    /// undefined.
    ///
    /// - Throws: `ClientError.protocolViolation` for a line beyond the limit.
    func line() async throws(ClientError) -> [UInt8]? {
        let result: Result<[UInt8]?, ClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                reading.async { continuation.resume(returning: self.readLine()) }
            }
        } onCancel: {
            socket.shutdown()
        }
        return try result.get()
    }

    private func readLine() -> Result<[UInt8]?, ClientError> {
        input.withLock { buffer in
            do throws(ClientError) {
                while true {
                    if let line = try buffer.next() { return .success(line) }
                    let isOpen = buffer.append { socket.receive(into: &$0, limit: 1 << 16) }
                    guard isOpen else { return .success(nil) }
                }
            } catch {
                return .failure(error)
            }
        }
    }

    /// Sends lines in call order; a failure ends the connection, which the reader notices.
    func send(_ line: [UInt8]) {
        writing.async { [socket] in
            if !socket.send(line + [UInt8(ascii: "\n")]) { socket.shutdown() }
        }
    }

    /// Closes the sending direction after all lines passed to `send`.
    func finish() { writing.async { [socket] in socket.finish() } }

    /// Closes the connection.
    func close() { socket.shutdown() }
}
