package import RTP
package import SFU
package import Sockets
package import WorkerInterface

/// Connection of a `WorkerRound` to the outside: clocks, sockets, relay rings and mailboxes.
///
/// `SocketPort` is the one of the daemon; the simulator has a port of virtual time.
package protocol WorkerPort: ~Copyable {
    // Clocks.
    func monotonic() -> Instant
    /// Returns Unix time in nanoseconds, by the clock that stamps arrivals.
    func wallClock() -> Int64
    /// Returns Unix time minus monotonic time, in nanoseconds.
    func wallClockOffset() -> Int64
    /// Returns the thread's CPU time in nanoseconds.
    func cpuTime() -> Int64

    /// Gives the thread a larger share of a busy processor, or takes it back.
    mutating func hurry(_ isHurried: Bool)

    // Sleeping.
    /// Sleeps until `end`, whatever arrives meanwhile.
    mutating func rest(until end: Instant)
    /// Announces that the worker is about to sleep; returns `false` if relayed packets are waiting.
    mutating func prepareToSleep() -> Bool
    /// Sleeps until a source is ready, at most until `deadline`; returns the number of ready
    /// sources.
    mutating func sleep(until deadline: Instant, at now: Instant) -> Int
    /// Returns what the round has to read from a ready source.
    mutating func takeReady(_ index: Int, at now: Instant) -> ReadySource
    /// Time when the port next has something to do, if any.
    var deadline: Instant? { get }

    // Receiving datagrams.
    var socketCount: Int { get }
    /// Maximum number of datagrams of one receive call.
    func capacity(of inbox: WorkerInbox) -> Int
    /// Receives waiting datagrams of a socket in place of the previous ones; returns their number,
    /// or `nil` if there are none.
    mutating func receive(from socket: Int, into inbox: WorkerInbox) -> Int?
    /// Returns the origin of a received datagram; `nil` for one too long to be received whole,
    /// which the port counts.
    mutating func origin(
        of index: Int,
        in inbox: WorkerInbox,
        socket: Int
    ) -> DatagramOrigin?
    @_lifetime(borrow self)
    func datagram(_ index: Int, of inbox: WorkerInbox) -> Span<UInt8>
    /// Returns the arrival time of a received datagram, as Unix time in nanoseconds; 0 if unknown.
    func arrival(_ index: Int, of inbox: WorkerInbox) -> Int64
    /// Counts a datagram that is too long to be deferred.
    mutating func noteOversized(bytes: Int)

    // Sending.
    /// Sends, queues or drops all datagrams of a batch, and empties it.
    mutating func send(_ output: inout Batch, at now: Instant)
    /// Sends queued datagrams where that may be tried now.
    mutating func resumeSending(at now: Instant)
    /// Removes the queued media of streams that nobody may receive any more.
    mutating func withdraw(_ streams: [SSRC])
    /// Returns when the first media send since the last call returned.
    mutating func takeStamp() -> SendStamp
    /// Reports a send error that an operator should know.
    mutating func reportSendErrors()
    /// Makes the next sleep end when a socket that blocked is writable.
    mutating func watchBlockedSockets()
    /// Fill level of the fullest send queue, 0 to 1.
    var backlog: Double { get }

    // Relaying.
    /// Relays the batch to other workers, before it is sent to this worker's subscribers.
    mutating func relay(from core: inout Core, at now: Instant)
    /// Receives a batch of relayed packets; returns whether there was any.
    mutating func receiveRelayed(into core: inout Core, at now: Instant) -> Bool

    /// End of this node's lease on the rooms of another home.
    func leaseEnd(of home: Int) -> Instant

    // Mailboxes.
    /// Takes all commands; `closed` means that no more will follow.
    mutating func drainCommands() -> (messages: [WorkerCommand], closed: Bool)
    mutating func post(_ events: [WorkerEvent])
    /// Adds the port's counters to the core's statistics.
    mutating func complete(_ statistics: inout WorkerStatistics)

    // TCP connections; a port without any leaves these out.
    /// Reads once from a connection; returns its path, or `nil` if nothing came.
    mutating func read(connection number: UInt16) -> Path?
    /// Returns the position of the next frame of the last read.
    mutating func nextFrame(of number: UInt16, at now: Instant) -> Range<Int>?
    @_lifetime(borrow self)
    func frame(_ position: Range<Int>) -> Span<UInt8>
    /// Whether the last read filled the buffer, so that there may be more to read.
    var mayHaveMoreFrames: Bool { get }
    /// Whether no connectivity check has validated the connection yet.
    func isUnchecked(_ number: UInt16) -> Bool
    /// Records the result of a frame on a connection that was not validated before.
    mutating func noteValidation(_ number: UInt16, isValidated: Bool, isAnswered: Bool)
    /// Closes connections that were idle too long or whose peer has left; tells the core of lost
    /// paths.
    mutating func expireConnections(of core: inout Core, at now: Instant)
}

/// Buffers for received datagrams.
package enum WorkerInbox: Sendable {
    /// Datagrams of the next batch.
    case batch
    /// Datagrams that arrived while a batch is sent, and may preempt it.
    case preemption
}

/// Path of a received datagram, and its arrival as Unix time in nanoseconds, 0 if unknown.
package struct DatagramOrigin: BitwiseCopyable, Sendable {
    package var path: Path
    package var arrival: Int64

    package init(path: Path, arrival: Int64) {
        self.path = path
        self.arrival = arrival
    }
}

/// Source that has something for the round to read.
package enum ReadySource: Sendable {
    case commands
    case socket(Int)
    case connection(UInt16)
    /// Nothing is left to read: the port has served the source itself.
    case served
}

extension WorkerPort where Self: ~Copyable {
    package mutating func read(connection number: UInt16) -> Path? { nil }
    package mutating func nextFrame(of number: UInt16, at now: Instant) -> Range<Int>? { nil }
    @_lifetime(borrow self)
    package func frame(_ position: Range<Int>) -> Span<UInt8> { Span() }
    package var mayHaveMoreFrames: Bool { false }
    package func isUnchecked(_ number: UInt16) -> Bool { false }
    package mutating func noteValidation(_ number: UInt16, isValidated: Bool, isAnswered: Bool) {}
    package mutating func expireConnections(of core: inout Core, at now: Instant) {}
}
