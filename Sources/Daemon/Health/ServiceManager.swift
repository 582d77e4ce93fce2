import CKernel
import Kernel

/// Notifier of the service manager about the daemon's state, if there is one (sd_notify(3)).
struct ServiceManager {
    enum State: String {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
        /// Another program is about to take over; `ready` follows.
        case reloading = "RELOADING=1"
        /// Watchdog keep-alive; the manager ends the process if it is missing.
        case alive = "WATCHDOG=1"
    }

    private let descriptor: Int32?
    /// Whether the manager expects `alive`.
    let isWatching: Bool

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    init(environment: [String: String], processID: Int32) {
        descriptor = environment["NOTIFY_SOCKET"].flatMap { path in
            let descriptor = unsafe kernel_notify_connect(path)
            return descriptor >= 0 ? descriptor : nil
        }
        let isForUs = environment["WATCHDOG_PID"].map { $0 == "\(processID)" } ?? true
        isWatching = isForUs && environment["WATCHDOG_USEC"] != nil
    }

    /// Whether there is a manager.
    var isThere: Bool { descriptor != nil }

    /// Sends the state and ignores errors, so that a stuck manager never blocks the daemon.
    func notify(_ state: State) {
        guard let descriptor else { return }
        _ = kernel_write(descriptor, Array(state.rawValue.utf8).span)
    }

    /// Gives a descriptor to the manager, which hands it to the next process; returns the errno of
    /// a failure.
    ///
    /// If the manager's queue is full, it waits up to `patienceMilliseconds`.
    func store(_ stored: Int32, as name: String) -> Int32? {
        // Without FDPOLL=0 systemd drops a descriptor that reports an error, such as an
        // unreachable destination.
        send("FDSTORE=1\nFDPOLL=0\nFDNAME=\(name)", stored)
    }

    /// Makes the manager close the descriptors of a name; returns the errno of a failure.
    func remove(_ name: String) -> Int32? { send("FDSTOREREMOVE=1\nFDNAME=\(name)", -1) }

    private func send(_ text: String, _ attached: Int32) -> Int32? {
        guard let descriptor else { return nil }
        let status = kernel_notify_send(
            descriptor,
            Array(text.utf8).span,
            attached,
            Self.patienceMilliseconds
        )
        return status < 0 ? -status : nil
    }

    private static let patienceMilliseconds: Int32 = 200
}
