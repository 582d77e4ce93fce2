import CKernel

/// Tells the service manager how the daemon is, where there is one (sd_notify(3)).
struct ServiceManager {
    enum State: String {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
        /// All is well; if this stays away, the manager ends the process.
        case alive = "WATCHDOG=1"
    }

    private let descriptor: Int32?
    /// Whether it waits for `alive`.
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

    /// Sends and forgets: a manager that does not listen must not hold anything up.
    func tell(_ state: State) {
        guard let descriptor else { return }
        _ = kernel_write(descriptor, Array(state.rawValue.utf8).span)
    }
}
