import CKernel
import Glibc
import Kernel
import RTP

/// The keeper's loop: one child at a time, its notifications, and signals.
struct Supervisor {
    /// A child from its start to its death.
    private struct Life {
        var processID: Int32
        var isReady = false
        /// Whether it ends on purpose.
        var isStopping = false
        var watchdogMicroseconds: Int64
        var watchdog: Instant?
        /// Whether the watchdog's time has passed once, which may be due to a stall of the machine.
        var isLate = false
    }

    private enum State {
        case running(Life)
        case waiting(until: Instant)
    }

    private let command: String
    private let arguments: [String]
    private let signals: Int32
    private let epoll: Int32
    private let manager: UpperManager
    private let socket: NotificationSocket
    private var stored = StoredDescriptors()
    private var policy = RestartPolicy()
    private var state: State
    /// Whether a child has ever been ready; until then a death is final.
    private var wasReady = false
    /// Time at which a child that was told to end is killed.
    private var stopDeadline: Instant?

    init(command: String, arguments: [String]) throws(SystemError) {
        self.command = command
        self.arguments = arguments
        signals = try SystemError.check(kernel_signals_open_parent(), "signals")
        epoll = try SystemError.check(kernel_epoll_create(), "epoll")
        socket = try NotificationSocket()
        manager = UpperManager(processID: getpid())
        state = .waiting(until: .monotonic())
        for descriptor in [signals, socket.descriptor] {
            let status = kernel_epoll_add(epoll, descriptor, UInt32(KERNEL_READABLE), 0)
            _ = try SystemError.check(status, "epoll")
        }
    }

    /// Runs until the child has ended for good; returns the keeper's exit status.
    mutating func run() -> Int32 {
        while true {
            let now = Instant.monotonic()
            if let status = expire(at: now) { return end(status) }
            wait(at: now)
            // Before the deaths, so that a child is judged by all that it has said.
            takeNotifications()
            if let status = takeSignals() { return end(status) }
        }
    }

    private func end(_ status: Int32) -> Int32 {
        KeeperLog.write(.info, "keeper ends", [("status", "\(status)")])
        return status
    }

    private mutating func wait(at now: Instant) {
        let deadline: Instant? =
            switch state {
            case .waiting(let until): until
            case .running(let life): [life.watchdog, stopDeadline].compactMap(\.self).min()
            }
        let left = deadline.map { max(0, $0.nanoseconds(since: now)) } ?? -1
        var ready = [kernel_readiness](repeating: kernel_readiness(), count: 2)
        var places = ready.mutableSpan
        _ = kernel_epoll_wait(epoll, &places, left)
    }

    /// Starts the child, or kills one that stands still, if that is due.
    private mutating func expire(at now: Instant) -> Int32? {
        switch state {
        case .waiting(let until):
            return until <= now ? start(at: now) : nil
        case .running(var life):
            if let stopDeadline, stopDeadline <= now {
                self.stopDeadline = nil
                kill(life, "child does not end")
            }
            guard let watchdog = life.watchdog, watchdog <= now else { return nil }
            if life.isLate {
                life.watchdog = nil
                kill(life, "child stands still")
            } else {
                life.isLate = true
                life.watchdog = now.advanced(milliseconds: Self.lateMilliseconds)
            }
            state = .running(life)
            return nil
        }
    }

    private func kill(_ life: Life, _ reason: String) {
        KeeperLog.write(.error, reason, [("pid", "\(life.processID)")])
        _ = kernel_send_signal(life.processID, SIGKILL)
    }
}

// Starts and deaths.
extension Supervisor {
    private mutating func start(at now: Instant) -> Int32? {
        let watchdog = manager.watchdogMicroseconds.map { $0 / 2 } ?? Self.watchdogMicroseconds
        let added = [
            "NOTIFY_SOCKET=\(socket.address)", "WATCHDOG_USEC=\(watchdog)", "WATCHDOG_PID=",
        ]
        let replaced =
            HandoverProgram.variables + ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]
        // Searched for at each start, so that a new version in the same place is used.
        let program = HandoverProgram(
            arguments: [ProgramPath.own(command) ?? command] + arguments,
            environment: ProcessEnvironment.entries(without: replaced)
                + added.map { Array($0.utf8) },
            descriptors: stored.all
        )
        do throws(SystemError) {
            let pid = try program.start(deathSignal: SIGTERM)
            let fields = [("pid", "\(pid)"), ("descriptors", "\(stored.all.count)")]
            KeeperLog.write(.info, "child started", fields)
            var life = Life(processID: pid, watchdogMicroseconds: watchdog)
            life.watchdog = now.advanced(milliseconds: Self.startMilliseconds)
            state = .running(life)
            return nil
        } catch {
            KeeperLog.write(.error, "child cannot be started", [("reason", "\(error)")])
            guard wasReady else { return Keeper.systemStatus }
            restart(afterReady: false)
            return nil
        }
    }

    private mutating func restart(afterReady: Bool) {
        let now = Instant.monotonic()
        let delay = policy.delay(afterReady: afterReady, at: now)
        if delay > 0 { KeeperLog.write(.warning, "restart delayed", [("ms", "\(delay)")]) }
        state = .waiting(until: now.advanced(milliseconds: delay))
    }

    /// Judges the end of a child; returns the keeper's exit status if it is final.
    private mutating func take(_ ended: kernel_ended) -> Int32? {
        guard case .running(let life) = state, life.processID == ended.pid else { return nil }
        let cause =
            ended.signal != 0 ? ("signal", "\(ended.signal)") : ("status", "\(ended.status)")
        let isAskedFor = stopDeadline != nil
        let isFinal =
            isAskedFor || life.isStopping || !wasReady
            || (ended.signal == 0 && (ended.status == 0 || ended.status == Keeper.usageStatus))
        KeeperLog.write(
            isAskedFor || (isFinal && ended.status == 0 && ended.signal == 0) ? .info : .error,
            life.isReady ? "child ended" : "child ended before it was ready",
            [("pid", "\(ended.pid)"), cause]
        )
        guard isFinal else {
            restart(afterReady: life.isReady)
            return nil
        }
        // A child that has not set up its signals yet is ended by the one that was passed on.
        if isAskedFor, ended.signal == SIGTERM || ended.signal == SIGINT { return 0 }
        return ended.signal != 0 ? 128 &+ ended.signal : ended.status
    }
}

// Signals and notifications.
extension Supervisor {
    private mutating func takeSignals() -> Int32? {
        while true {
            let signal = kernel_signals_next(signals)
            guard signal != 0 else { return nil }
            let status = signal == SIGCHLD ? reap() : pass(signal)
            if let status { return status }
        }
    }

    /// Reaps children: as the first process of a container the keeper also gets those of others.
    private mutating func reap() -> Int32? {
        while true {
            let ended = kernel_reap()
            guard ended.pid != 0 else { return nil }
            takeNotifications()
            if let status = take(ended) { return status }
        }
    }

    /// Passes a signal on to the child.
    private mutating func pass(_ signal: Int32) -> Int32? {
        let ends = signal == SIGTERM || signal == SIGINT
        guard case .running(let life) = state else {
            if ends { manager.notify(["STOPPING=1"]) }
            return ends ? 0 : nil
        }
        if ends, stopDeadline == nil {
            stopDeadline = Instant.monotonic().advanced(milliseconds: Self.stopMilliseconds)
        }
        _ = kernel_send_signal(life.processID, signal)
        return nil
    }

    private mutating func takeNotifications() {
        for _ in 0..<Self.notificationsATurn {
            guard let datagram = socket.receive() else { return }
            var descriptors = datagram.descriptors
            // The socket's name is no secret, so others may send too.
            if case .running(var life) = state, life.processID == datagram.sender {
                if datagram.isTruncated {
                    KeeperLog.write(.warning, "notification truncated: out of descriptors?")
                } else {
                    let notification = Notification(datagram.text)
                    if notification.stores { store(&descriptors, notification.name) }
                    take(notification, &life)
                    state = .running(life)
                }
            }
            // BARRIER=1 means no more than this: its sender waits until the descriptor is closed.
            for descriptor in descriptors { kernel_close(descriptor) }
        }
    }

    /// Takes descriptors over into the store.
    private mutating func store(_ descriptors: inout [Int32], _ name: String?) {
        for descriptor in descriptors where stored.add(descriptor, as: name ?? "stored") == .full {
            let fields = [("limit", "\(HandoverProgram.descriptorLimit)")]
            KeeperLog.write(.warning, "descriptor not stored: too many", fields)
        }
        descriptors = []
    }

    private mutating func take(_ notification: Notification, _ life: inout Life) {
        if notification.removes, let name = notification.name { stored.remove(name) }
        if notification.isStopping { life.isStopping = true }
        if let time = notification.watchdogMicroseconds { life.watchdogMicroseconds = time }
        if notification.isReady {
            life.isReady = true
            wasReady = true
        }
        let isFed = notification.watchdog == .alive || notification.watchdogMicroseconds != nil
        if life.isReady, notification.isReady || isFed {
            life.isLate = false
            life.watchdog = Instant.monotonic().advanced(
                milliseconds: life.watchdogMicroseconds / 1_000
            )
        }
        if notification.watchdog == .trigger { kill(life, "child asks to be killed") }
        manager.notify(notification.forwarded)
    }

    private static let notificationsATurn = 256
    /// Time of the watchdog, unless a service manager above has a shorter one.
    private static let watchdogMicroseconds: Int64 = 20_000_000
    /// Time to get ready.
    private static let startMilliseconds: Int64 = 90_000
    /// Time that a late child gets, so that a stall of the whole machine kills none.
    private static let lateMilliseconds: Int64 = 1_000
    /// Time to end after SIGTERM.
    private static let stopMilliseconds: Int64 = 10_000
}
