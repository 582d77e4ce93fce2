internal import Dispatch
import Kernel

/// A socket that carries lines.
///
/// Reading is on demand: while nobody asks for a line none is read, so that a slow reader costs
/// no memory here and the daemon sees that it is slow. Each direction blocks a thread of its own.
final class LineConnection: Sendable {
    private let socket: UnixSocket
    private let input = Locked(LineBuffer())
    private let reading = DispatchQueue(label: "sfu-client-read")
    private let writing = DispatchQueue(label: "sfu-client-write")

    init(_ socket: UnixSocket) { self.socket = socket }

    deinit { socket.shutdown() }

    /// The next line, or `nil` when the connection has ended or the task was cancelled.
    ///
    /// One caller at a time, or lines come to them in no particular order.
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

    /// Sends lines in the order of the calls; a failure shows as the end of what is read.
    func send(_ line: [UInt8]) {
        writing.async { [socket] in
            if !socket.send(line + [UInt8(ascii: "\n")]) { socket.shutdown() }
        }
    }

    /// Sends no more, after what `send` was given before.
    func finish() { writing.async { [socket] in socket.finish() } }

    /// Ends the connection.
    func close() { socket.shutdown() }
}
