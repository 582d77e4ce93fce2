import Daemon
import RTP
import SFU
import Sockets
import WorkerInterface

/// Port of a simulated worker for one round: a network in virtual time instead of sockets.
///
/// Time stands still during a round. Datagrams that are not early arrive while a batch is sent;
/// those that this round does not read are read by the next one.
struct SimulatedPort<Network: SimulatedNetwork>: ~Copyable, WorkerPort {
    private let worker: SimulatedWorker
    private let network: Network
    private let now: Instant
    /// Time of the worker's round before, when it began to sleep.
    private let lastRound: Instant
    private var isAwake = false
    /// Unread datagrams that had arrived when the round began.
    private var early: Int
    /// Whether a report was requested: then nothing more arrives, so that it is known what counts.
    private var isReported = false
    private var batch = SimulatedInbox()
    private var preempting = SimulatedInbox()

    init(
        of worker: SimulatedWorker,
        early: Int,
        since lastRound: Instant,
        at now: Instant,
        _ network: Network
    ) {
        self.worker = worker
        self.early = early
        self.network = network
        self.lastRound = lastRound
        self.now = now
    }
}

// Clocks and sleeping.
extension SimulatedPort {
    func monotonic() -> Instant { isAwake ? now : lastRound }
    func wallClock() -> Int64 { monotonic().nanoseconds }
    func wallClockOffset() -> Int64 { worker.wallClockOffset }
    /// Returns all time, as if the thread had never waited for a processor.
    func cpuTime() -> Int64 { monotonic().nanoseconds }

    mutating func hurry(_ isHurried: Bool) {}

    /// Does nothing: the first round at a time begins after the pause (`World.wake`), and those
    /// that follow at the same time read what arrived while the one before was sending.
    mutating func rest(until end: Instant) {}

    mutating func prepareToSleep() -> Bool { !worker.relays.hasMessages() }

    mutating func sleep(until deadline: Instant, at now: Instant) -> Int {
        isAwake = true
        return (early > 0 ? 1 : 0) + (worker.mailbox.isEmpty ? 0 : 1)
    }

    mutating func takeReady(_ index: Int, at now: Instant) -> ReadySource {
        index == 0 && early > 0 ? .socket(0) : .commands
    }

    var deadline: Instant? { nil }
}

// Receiving.
extension SimulatedPort {
    var socketCount: Int { 1 }

    func capacity(of inbox: WorkerInbox) -> Int {
        switch inbox {
        case .batch: 64
        case .preemption: 32
        }
    }

    mutating func receive(from socket: Int, into inbox: WorkerInbox) -> Int? {
        switch inbox {
        case .batch:
            batch = take(min(early, capacity(of: .batch)))
            early -= batch.count
            return batch.count > 0 ? batch.count : nil
        case .preemption:
            guard !isReported else { return nil }
            preempting = take(min(worker.arrived.count, capacity(of: .preemption)))
            early = min(early, worker.arrived.count)
            return preempting.count > 0 ? preempting.count : nil
        }
    }

    private func take(_ count: Int) -> SimulatedInbox {
        let inbox = SimulatedInbox(worker.arrived[..<count])
        worker.arrived.removeFirst(count)
        worker.taken += UInt64(count)
        return inbox
    }

    func origin(of index: Int, in inbox: WorkerInbox, socket: Int) -> DatagramOrigin? {
        switch inbox {
        case .batch: batch.origins[index]
        case .preemption: preempting.origins[index]
        }
    }

    @_lifetime(borrow self)
    func datagram(_ index: Int, of inbox: WorkerInbox) -> Span<UInt8> {
        switch inbox {
        case .batch: batch[index]
        case .preemption: preempting[index]
        }
    }

    func arrival(_ index: Int, of inbox: WorkerInbox) -> Int64 {
        switch inbox {
        case .batch: batch.origins[index].arrival
        case .preemption: preempting.origins[index].arrival
        }
    }

    mutating func noteOversized(bytes: Int) {}
}

// Sending.
extension SimulatedPort {
    mutating func send(_ output: inout Batch, at now: Instant) {
        for position in 0..<output.count {
            let path = output.path(at: position)
            let bytes = output.bytes(at: position)
            network.written(bytes, to: path, by: worker.index)
            let content = output.content(at: position)
            worker.unsent.append(.init(path: path, bytes: bytes, content: content))
        }
        output.removeAll()
        guard !worker.omissions.contains(.flush) else { return }
        let unsent = worker.unsent
        worker.unsent = []
        for datagram in unsent { send(datagram, at: now) }
    }

    private func send(_ datagram: SimulatedWorker.Unsent, at now: Instant) {
        if worker.queue.isEmpty, worker.refusesUntil <= now {
            network.leave(datagram.bytes, to: datagram.path, from: worker.index)
        } else {
            worker.queue.append(
                datagram.bytes.span,
                to: datagram.path,
                as: datagram.content,
                at: now
            )
        }
    }

    mutating func resumeSending(at now: Instant) {
        worker.queue.expire(at: now)
        while worker.refusesUntil <= now, !worker.queue.isEmpty {
            let limit = worker.staging.capacity
            let count = worker.queue.stage(into: &worker.staging, limit: limit)
            for position in 0..<worker.staging.count {
                let path = worker.staging.path(at: position)
                network.leave(worker.staging.bytes(at: position), to: path, from: worker.index)
            }
            worker.staging.removeAll()
            worker.queue.removeFirst(count)
        }
    }

    mutating func withdraw(_ streams: [SSRC]) {
        guard !worker.omissions.contains(.withdrawal) else { return }
        worker.queue.withdraw(streams)
    }

    mutating func takeStamp() -> SendStamp { SendStamp() }
    mutating func reportSendErrors() {}
    mutating func watchBlockedSockets() {}
    var backlog: Double { 0 }
}

// Relaying and mailboxes.
extension SimulatedPort {
    func leaseEnd(of home: Int) -> Instant { worker.leaseEnds[home] ?? Instant(nanoseconds: 0) }

    mutating func relay(from core: inout Core, at now: Instant) {
        core.relay(into: &worker.relays, at: now)
        guard !worker.omissions.contains(.publishing) else { return }
        for other in 0..<worker.relays.workers where other != worker.index {
            if worker.relays.publish(to: other) { worker.rung.insert(other) }
        }
    }

    mutating func receiveRelayed(into core: inout Core, at now: Instant) -> Bool {
        guard worker.relays.hasMessages() else { return false }
        _ = core.receive(from: &worker.relays, at: now)
        return true
    }

    mutating func drainCommands() -> (messages: [WorkerCommand], closed: Bool) {
        let messages = worker.mailbox
        worker.mailbox = []
        for case .report(let token) in messages {
            worker.requestedReports.append(token)
            isReported = true
        }
        return (messages, false)
    }

    mutating func post(_ events: [WorkerEvent]) { worker.events += events }

    mutating func complete(_ statistics: inout WorkerStatistics) {}
}

/// Datagrams of one receive call.
private struct SimulatedInbox {
    private var bytes: [UInt8] = []
    /// Position in `bytes` where each datagram ends.
    private var ends: [Int] = []
    private(set) var origins: [DatagramOrigin] = []

    init(_ arrivals: ArraySlice<SimulatedWorker.Arrival> = []) {
        for arrival in arrivals {
            bytes += arrival.bytes
            ends.append(bytes.count)
            origins.append(DatagramOrigin(path: arrival.path, arrival: arrival.at.nanoseconds))
        }
    }

    var count: Int { ends.count }

    subscript(index: Int) -> Span<UInt8> {
        @_lifetime(borrow self)
        get { bytes.span.extracting((index == 0 ? 0 : ends[index - 1])..<ends[index]) }
    }
}
