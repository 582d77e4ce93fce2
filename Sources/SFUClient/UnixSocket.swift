internal import Glibc

/// A connected Unix-domain stream socket; closed when the last reference goes away.
///
/// Apart from `Locked` it contains all unsafe code of the module. Buffers are passed with their
/// lengths, and no pointer outlives the call that receives it.
@safe
final class UnixSocket: Sendable {
    private let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { _ = Glibc.close(descriptor) }

    /// Connects to the socket at `path`; blocks while the listener's backlog is full.
    ///
    /// - Throws: `ClientError.unreachable`.
    static func connect(to path: String) throws(ClientError) -> UnixSocket {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard !bytes.isEmpty, bytes.count < room, !bytes.contains(0) else {
            throw .unreachable(path: path, cause: "not a path of 1 to \(room - 1) bytes")
        }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }

        let descriptor = Glibc.socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { throw .unreachable(path: path, cause: lastError()) }
        let socket = UnixSocket(descriptor: descriptor)
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        var status: Int32
        repeat {
            status = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe Glibc.connect(descriptor, $0, length)
                }
            }
        } while status != 0 && errno == EINTR
        guard status == 0 else { throw .unreachable(path: path, cause: lastError()) }
        return socket
    }

    /// Creates two sockets that are connected to each other.
    static func pair() throws(ClientError) -> (UnixSocket, UnixSocket) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            throw .unreachable(path: "", cause: lastError())
        }
        return (UnixSocket(descriptor: ends[0]), UnixSocket(descriptor: ends[1]))
    }

    /// Appends at most `limit` bytes to `buffer`; blocks until at least one arrives.
    ///
    /// Returns `false` if the peer closed, `shutdown` was called, or an error occurred.
    func receive(into buffer: inout [UInt8], limit: Int) -> Bool {
        var chunk = [UInt8](repeating: 0, count: limit)
        var count: Int
        repeat {
            count = unsafe chunk.withUnsafeMutableBytes { bytes in
                unsafe recv(descriptor, bytes.baseAddress, bytes.count, 0)
            }
        } while count < 0 && errno == EINTR
        guard count > 0 else { return false }
        buffer.append(contentsOf: chunk[..<count])
        return true
    }

    /// Sends all bytes; blocks while the peer does not read.
    ///
    /// Returns `false` on error.
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes[sent...].withUnsafeBytes { rest in
                unsafe Glibc.send(
                    descriptor,
                    rest.baseAddress,
                    rest.count,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count > 0 {
                sent += count
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// Shuts down both directions; blocked calls of `receive` and `send` return.
    func shutdown() { _ = Glibc.shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Shuts down the sending direction: the peer reads the remaining bytes, then the end.
    func finish() { _ = Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

    private static func lastError() -> String {
        guard let text = unsafe strerror(errno) else { return "error \(errno)" }
        return unsafe String(cString: text)
    }
}

/// Path of sfud's socket, for callers that name none.
public enum IPCPath {
    /// `$SFUD_IPC`, else `$XDG_RUNTIME_DIR/sfud.sock`, else `/tmp/sfud-UID.sock`.
    ///
    /// The last two are where sfud listens if its configuration names no path.
    public static var standard: String {
        if let path = unsafe getenv("SFUD_IPC"), unsafe path.pointee != 0 {
            return unsafe String(cString: path)
        }
        if let directory = unsafe getenv("XDG_RUNTIME_DIR"), unsafe directory.pointee != 0 {
            return unsafe String(cString: directory) + "/sfud.sock"
        }
        return "/tmp/sfud-\(getuid()).sock"
    }
}
