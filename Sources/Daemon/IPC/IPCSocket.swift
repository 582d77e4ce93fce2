import CKernel
import Glibc
import Kernel

/// Listening Unix socket with a lock file, so that it never takes over a running daemon's socket.
struct IPCSocket {
    let path: String
    let descriptor: Int32
    private let lock: Int32

    private var lockPath: String { Self.lockPath(path) }

    private static func lockPath(_ path: String) -> String { path + ".lock" }

    /// Listens at `path`, with the socket of the life before or a new one; removes the stale socket
    /// of a daemon that is gone.
    ///
    /// The lock prevents a race between finding a socket stale and binding again. It is kept with
    /// the socket, so that no other daemon takes the path between two lives.
    static func open(_ path: String, _ handover: Handover) throws(StartError) -> IPCSocket {
        let inherited = adopt(path, handover)
        let lock = inherited.lock ?? kernel_lock(lockPath(path))
        guard lock >= 0 else {
            throw lock == -EWOULDBLOCK ? inUse(path) : refused(lockPath(path), -lock)
        }
        if inherited.lock == nil { handover.keep(lock, as: lockName) }
        if let descriptor = inherited.socket {
            return IPCSocket(path: path, descriptor: descriptor, lock: lock)
        }
        do throws(StartError) {
            try clear(path)
            let descriptor = unsafe kernel_unix_listen(path, mode, backlog)
            guard descriptor >= 0 else { throw refused(path, -descriptor) }
            handover.keep(descriptor, as: socketName)
            return IPCSocket(path: path, descriptor: descriptor, lock: lock)
        } catch {
            handover.forget(lockName)
            _ = unsafe unlink(lockPath(path))
            kernel_close(lock)
            throw error
        }
    }

    /// Returns the socket and the lock of the life before that belong to `path`.
    ///
    /// If the setting has changed, the files at the old path are removed.
    private static func adopt(
        _ path: String,
        _ handover: Handover
    ) -> (socket: Int32?, lock: Int32?) {
        var old: String?
        let socket = handover.adopt(socketName) { descriptor -> Int32? in
            let kind = kernel_socket_kind(descriptor)
            guard kind == Int32(KERNEL_SOCKET_UNIX_LISTENER) else { return nil }
            old = boundPath(descriptor)
            guard old == path, unsafe Int(kernel_file_kind(path)) == KERNEL_FILE_SOCKET,
                kernel_listen_again(descriptor, backlog) == 0
            else { return nil }
            return descriptor
        }
        let lock = handover.adopt(lockName) { descriptor -> Int32? in
            if let old, old != path, unsafe kernel_is_file(descriptor, lockPath(old)) {
                _ = unsafe unlink(old)
                _ = unsafe unlink(lockPath(old))
            }
            let isOurs = unsafe kernel_is_file(descriptor, lockPath(path))
            return isOurs && kernel_lock_again(descriptor) == 0 ? descriptor : nil
        }
        if let socket, lock == nil {
            // Without the lock, another daemon may have taken the path meanwhile.
            handover.forget(socketName)
            kernel_close(socket)
            return (nil, nil)
        }
        return (socket, lock)
    }

    private static func boundPath(_ descriptor: Int32) -> String? {
        var path = [UInt8](repeating: 0, count: 128)
        var places = path.mutableSpan
        let count = kernel_unix_path(descriptor, &places)
        return count > 0 ? String(decoding: path.prefix(Int(count)), as: UTF8.self) : nil
    }

    private static func kernel_lock(_ path: String) -> Int32 {
        unsafe kernel_lock_file(path, lockMode)
    }

    /// Removes a stale socket; any other file of that name is left alone and is an error.
    private static func clear(_ path: String) throws(StartError) {
        switch unsafe Int(kernel_file_kind(path)) {
        case KERNEL_FILE_NONE: return
        case KERNEL_FILE_SOCKET: break
        case KERNEL_FILE_LINK:
            throw .configuration("ipc", "\"\(path)\" is a symbolic link")
        case KERNEL_FILE_OTHER:
            throw .configuration("ipc", "\"\(path)\" is there and is not a socket")
        case let failure: throw refused(path, Int32(truncatingIfNeeded: -failure))
        }
        let probe = unsafe kernel_unix_connect(path)
        guard probe == -ECONNREFUSED else {
            if probe >= 0 { kernel_close(probe) }
            throw probe >= 0 || probe == -EAGAIN ? inUse(path) : refused(path, -probe)
        }
        guard unsafe unlink(path) == 0 else { throw refused(path, errno) }
    }

    /// Removes the socket and the lock file.
    func close() {
        _ = unsafe unlink(path)
        _ = unsafe unlink(lockPath)
        kernel_close(descriptor)
        kernel_close(lock)
    }

    private static func inUse(_ path: String) -> StartError {
        .system("ipc", "\"\(path)\": a daemon is already running here")
    }

    private static func refused(_ path: String, _ number: Int32) -> StartError {
        .system("ipc", "\"\(path)\": \(SystemError.text(number))")
    }

    /// Names under which the next life gets the socket and the lock.
    private static let socketName = "ipc"
    private static let lockName = "ipc-lock"
    private static let mode: UInt32 = 0o660
    private static let lockMode: UInt32 = 0o600
    private static let backlog: Int32 = 128
}

/// Startup failure: one line that begins with the setting's key, and the exit status.
enum StartError: Error, Equatable, CustomStringConvertible {
    /// Invalid setting; exits with EX_CONFIG.
    case configuration(String, String)
    /// Resource that the system refuses; exits with EX_OSERR.
    case system(String, String)

    var description: String {
        switch self {
        case .configuration(let key, let reason), .system(let key, let reason):
            "\(key): \(reason)"
        }
    }

    var status: Int32 {
        switch self {
        case .configuration: 78
        case .system: 71
        }
    }
}
