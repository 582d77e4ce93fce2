import Contract
import WorkerInterface

/// What `sfuctl doctor` has found out about a daemon and its machine.
struct DoctorFacts {
    /// A bound UDP socket, or a TCP socket that listens.
    struct Socket: Hashable {
        var address: Address
        var isTCP = false
        /// Bytes of the buffers, without the kernel's doubling.
        var receiveBuffer = 0
        var sendBuffer = 0
        /// Datagrams dropped since it was opened.
        var drops = 0
    }

    struct Interface: Hashable {
        var address: Address
        var isLoopback = false
    }

    /// Answers of the daemon.
    struct Daemon {
        var info: ServerInfo.Result
        var stats: ServerStats.Result
    }

    /// The daemon's process.
    struct Program {
        var id: Int
        /// Settings, each with its values; `nil` if the command line cannot be read.
        var settings: DaemonSettings?
        /// Open descriptors; `nil` without permission to look.
        var openFiles: Int?
        var fileLimit: Int?
        /// Whether it is in this network namespace; `nil` without permission to look.
        var sharesNetwork: Bool?
    }

    struct Clock: Hashable {
        var unixTime: Double
        /// Change of the time of day beyond that of the monotonic clock while both were watched, in
        /// seconds.
        var drift: Double
        /// Whether something keeps it synchronized; `nil` if the kernel does not say.
        var isSynchronized: Bool?
        /// Largest possible error, in seconds.
        var error: Double
    }

    /// Features of the kernel; `nil`: not known.
    struct Kernel: Hashable {
        var release: String
        var segments: Bool?
        var memory: Bool?
        var timestamps: Bool?
        var landlock: Bool?
        var seccomp: Bool?
        /// Largest buffers that sockets may ask for, in bytes.
        var receiveBufferLimit: Int?
        var sendBufferLimit: Int?
    }

    struct Disk: Hashable {
        var directory: String
        var exists: Bool
        /// Bytes of its file system.
        var free: Int
        var size: Int
    }

    struct Library: Hashable {
        /// Name of its file.
        var name: String
        /// Version of the package that it is from.
        var version: String?
        /// Whether the file has been replaced since the daemon was started.
        var isReplaced = false
        /// Whether the program needs it and there is none.
        var isMissing = false
    }

    /// Path of the IPC socket.
    var ipc: String
    /// Version of this program.
    var version: String
    var daemon: Daemon?
    /// Why there is no answer of a daemon.
    var failure: String?
    var program: Program?
    /// `nil` if the kernel does not tell.
    var sockets: [Socket]?
    var interfaces: [Interface] = []
    var clock: Clock
    var kernel: Kernel
    var disk: Disk?
    /// Libraries of the daemon, or of the `sfud` that would be started; empty: not known.
    var libraries: [Library] = []
}
