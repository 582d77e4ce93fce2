import CKernel

/// Notifier of the service manager about the daemon's state, if there is one (sd_notify(3)).
struct ServiceManager {
    enum State: String {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
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

    /// Sends the state and ignores errors, so that a stuck manager never blocks the daemon.
    func notify(_ state: State) {
        guard let descriptor else { return }
        _ = kernel_write(descriptor, Array(state.rawValue.utf8).span)
    }
}
