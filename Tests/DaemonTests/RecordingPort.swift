import RTP

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Port of one socket in virtual time, which records the steps of each round.
struct RecordingPort: ~Copyable, WorkerPort {
    enum Step: Equatable {
        case hurry(Bool)
        case rest(until: Instant)
        case sleep(until: Instant)
        case read(Int)
        case readPreempting(Int)
        case resume
        case relay
        case send(Int)
        case receiveRelayed
        case drain
        case withdraw([SSRC])
        case expireConnections
        case watch
        case post([WorkerEvent])

        var isHurry: Bool { if case .hurry = self { true } else { false } }
    }

    static let path = Path(remote: Address(ipv4: 0x7f00_0001, port: 9_000), local: 0)

    var steps: [Step] = []
    var now = Instant(nanoseconds: 1_000_000_000)
    /// Time that the next sleep lasts.
    var sleepMilliseconds: Int64 = 1
    var arrived: [[UInt8]] = []
    /// Datagrams that arrive in each rest.
    var gathering: [[UInt8]] = []
    /// Datagrams that arrive while a batch is sent.
    var late: [[UInt8]] = []
    var capacity = 64
    /// Batches of relayed packets.
    var relayed = 0
    var mailbox: [WorkerCommand] = []
    var isClosed = false
    var sent: [[UInt8]] = []
    private var batch = DeferredDatagrams()
    private var preempting = DeferredDatagrams()

    func monotonic() -> Instant { now }
    func wallClock() -> Int64 { now.nanoseconds }
    func wallClockOffset() -> Int64 { 0 }
    func cpuTime() -> Int64 { now.nanoseconds }

    mutating func hurry(_ isHurried: Bool) { steps.append(.hurry(isHurried)) }

    mutating func rest(until end: Instant) {
        steps.append(.rest(until: end))
        now = end
        arrived += gathering
    }

    mutating func prepareToSleep() -> Bool { relayed == 0 }

    mutating func sleep(until deadline: Instant, at now: Instant) -> Int {
        steps.append(.sleep(until: deadline))
        self.now = now.advanced(milliseconds: sleepMilliseconds)
        return 2
    }

    mutating func takeReady(_ index: Int, at now: Instant) -> ReadySource {
        index == 0 ? .commands : .socket(0)
    }

    var deadline: Instant? { nil }
    var socketCount: Int { 1 }
    func capacity(of inbox: WorkerInbox) -> Int { capacity }

    mutating func receive(from socket: Int, into inbox: WorkerInbox) -> Int? {
        switch inbox {
        case .batch:
            guard !arrived.isEmpty else { return nil }
            Self.move(&arrived, to: &batch, limit: capacity, at: now)
            steps.append(.read(batch.count))
            return batch.count
        case .preemption:
            guard !late.isEmpty else { return nil }
            Self.move(&late, to: &preempting, limit: capacity, at: now)
            steps.append(.readPreempting(preempting.count))
            return preempting.count
        }
    }

    private static func move(
        _ arrived: inout [[UInt8]],
        to inbox: inout DeferredDatagrams,
        limit: Int,
        at now: Instant
    ) {
        inbox.removeAll()
        for datagram in arrived.prefix(limit) {
            _ = inbox.append(datagram.span, on: path, arrival: now.nanoseconds)
        }
        arrived.removeFirst(inbox.count)
    }

    mutating func origin(of index: Int, in inbox: WorkerInbox, socket: Int) -> DatagramOrigin? {
        DatagramOrigin(path: Self.path, arrival: now.nanoseconds)
    }

    @_lifetime(borrow self)
    func datagram(_ index: Int, of inbox: WorkerInbox) -> Span<UInt8> {
        switch inbox {
        case .batch: batch[index]
        case .preemption: preempting[index]
        }
    }

    func arrival(_ index: Int, of inbox: WorkerInbox) -> Int64 { now.nanoseconds }
    mutating func noteOversized(bytes: Int) {}

    mutating func send(_ output: inout Batch, at now: Instant) {
        steps.append(.send(output.count))
        for position in 0..<output.count {
            let datagram = output[position]
            sent.append(datagram.indices.map { datagram[$0] })
        }
        output.removeAll()
    }

    mutating func resumeSending(at now: Instant) { steps.append(.resume) }
    mutating func withdraw(_ streams: [SSRC]) { steps.append(.withdraw(streams)) }
    mutating func takeStamp() -> SendStamp { SendStamp() }
    mutating func reportSendErrors() {}
    mutating func watchBlockedSockets() { steps.append(.watch) }
    var backlog: Double { 0 }

    func leaseEnd(of home: Int) -> Instant { Instant(nanoseconds: .max) }

    mutating func relay(from core: inout Core, at now: Instant) { steps.append(.relay) }

    mutating func receiveRelayed(into core: inout Core, at now: Instant) -> Bool {
        guard relayed > 0 else { return false }
        relayed -= 1
        steps.append(.receiveRelayed)
        return true
    }

    mutating func drainCommands() -> (messages: [WorkerCommand], closed: Bool) {
        steps.append(.drain)
        defer { mailbox = [] }
        return (mailbox, isClosed)
    }

    mutating func post(_ events: [WorkerEvent]) { steps.append(.post(events)) }
    mutating func complete(_ statistics: inout WorkerStatistics) {}

    mutating func expireConnections(of core: inout Core, at now: Instant) {
        steps.append(.expireConnections)
    }

    /// Returns the steps since the last call.
    mutating func takeSteps() -> [Step] {
        defer { steps = [] }
        return steps
    }

    /// Returns the datagrams sent since the last call.
    mutating func takeSent() -> [[UInt8]] {
        defer { sent = [] }
        return sent
    }
}
