internal import CKernel
internal import Glibc
package import Kernel
package import RTP
import SFU
package import WorkerInterface

/// TCP connections of a worker (RFC 6544, passive): accepting, framing (RFC 4571), sending, ending.
///
/// A connection is a path of the core, and its number is in `Path.local`. The caller asks the core
/// whether a connectivity check has validated it, and tells the core which have ended.
package struct TCPConnections: ~Copyable {
    /// Listener or connection that a poller's readiness belongs to.
    package enum Subject: Equatable {
        case listener(Int)
        case connection(UInt16)

        /// Decodes a poller token; returns `nil` for tokens of other owners.
        package init?(token: UInt64) {
            switch token >> 16 {
            case Self.listeners >> 16: self = .listener(Int(token & 0xffff))
            case Self.connections >> 16: self = .connection(UInt16(token & 0xffff))
            default: return nil
            }
        }

        var token: UInt64 {
            switch self {
            case .listener(let index): Self.listeners | UInt64(index)
            case .connection(let number): Self.connections | UInt64(number)
            }
        }

        private static let listeners: UInt64 = 1 << 32
        private static let connections: UInt64 = 2 << 32
    }

    let listeners: [TCPListener]
    let limits: TCPConnectionLimits
    var table: TCPConnectionTable
    var sources = TCPSourceCounts()
    var output = FramedOutput()
    var staging = Batch(capacity: 1)
    /// Connections with queued data.
    var waiting: [UInt16] = []
    /// Ended paths that the core has not been told of.
    private var ended: [Path] = []
    var counters = TCPConnectionStatistics()
    /// Drops of connections that have ended.
    private var formerDrops = SendDrops()
    /// Datagrams to connections that no longer exist.
    package internal(set) var errors: UInt64 = 0
    var stamp = SendStamp()
    var nextSweep: Instant?
    /// Spare descriptor, closed to accept and refuse a connection when no descriptors are left.
    var spareDescriptor: Int32?

    package init(_ listeners: [TCPListener], limits: TCPConnectionLimits = TCPConnectionLimits()) {
        self.listeners = listeners
        self.limits = limits
        table = TCPConnectionTable(capacity: listeners.isEmpty ? 1 : limits.connections)
        spareDescriptor = listeners.isEmpty ? nil : Self.openSpare()
    }

    deinit {
        for place in 0..<table.capacity {
            if let number = table.number(at: place) { kernel_close(table[number].descriptor) }
        }
        if let spareDescriptor { kernel_close(spareDescriptor) }
    }

    package var isEmpty: Bool { table.count == 0 }

    /// Adds listening sockets to a poller.
    package static func watch(
        _ listeners: [TCPListener],
        with poller: borrowing Poller
    ) throws(SystemError) {
        for (index, listener) in listeners.enumerated() {
            let token = Subject.listener(index).token
            try poller.add(listener.descriptor, for: .readable, token: token)
        }
    }
}

// Receiving.
extension TCPConnections {
    /// Reads once from a connection; returns its path, or `nil` if nothing came.
    ///
    /// Call `nextFrame` afterwards until it returns `nil`.
    package mutating func read(_ number: UInt16, into frames: inout RFC4571Deframer) -> Path? {
        guard table.contains(number) else { return nil }
        frames.begin(with: table[number].rest)
        let count = frames.read(from: table[number].descriptor)
        guard count > 0 else {
            if count == 0 {
                end(number, .closed)
            } else if count != Int64(-EAGAIN) {
                end(number, .failed)
            }
            return nil
        }
        return table[number].path
    }

    /// Returns the position of the next frame of the last read.
    package mutating func nextFrame(
        of number: UInt16,
        in frames: inout RFC4571Deframer,
        at now: Instant
    ) -> Range<Int>? {
        guard table.contains(number) else { return nil }
        switch frames.next() {
        case .frame(let range):
            table[number].lastReceived = now
            return range
        case .oversized: end(number, .oversized)
        case .rest: frames.leave(in: &table[number].rest)
        }
        return nil
    }

    /// Whether no connectivity check has validated the connection yet.
    package func isUnchecked(_ number: UInt16) -> Bool {
        table.contains(number) && !table[number].isValidated
    }

    /// Records the result of a frame on a connection that was not validated before.
    ///
    /// A connection whose frame earned no answer ends: its peer knows none of our passwords.
    package mutating func noteValidation(_ number: UInt16, isValidated: Bool, isAnswered: Bool) {
        guard isUnchecked(number) else { return }
        if isValidated {
            table[number].isValidated = true
            counters.unchecked -= 1
        } else if !isAnswered {
            end(number, .unauthenticated)
        }
    }
}

// Ending.
extension TCPConnections {
    /// Ends a connection; `takeEnded` reports it if it was validated.
    package mutating func end(_ number: UInt16, _ cause: TCPConnectionStatistics.Cause) {
        guard table.contains(number) else { return }
        table[number].sender.abandon()
        formerDrops += table[number].sender.drops
        let connection = table.remove(number)
        // The poller forgets a closed descriptor by itself.
        kernel_close(connection.descriptor)
        sources[TCPSource(connection.path.remote)] -= 1
        if connection.isValidated {
            ended.append(connection.path)
        } else {
            counters.unchecked -= 1
        }
        counters[cause] &+= 1
        waiting.removeAll { $0 == number }
    }

    /// Returns a path that has ended and was not reported yet.
    package mutating func takeEnded() -> Path? { ended.popLast() }

    /// Whether `expire` is due.
    package func isDue(at now: Instant) -> Bool { nextSweep.map { $0 <= now } ?? false }

    /// Ends connections silent for too long; call it after all received data was read.
    package mutating func expire(at now: Instant) {
        guard let due = nextSweep, due <= now else { return }
        nextSweep =
            table.count == 0 ? nil : now.advanced(milliseconds: Self.sweepMilliseconds)
        // After a stall of the process silence proves nothing: sent data may not all have been
        // read.
        let stall = now.milliseconds(since: due)
        let isStalled = stall > Self.sweepMilliseconds
        for place in 0..<table.capacity {
            guard let number = table.number(at: place) else { continue }
            if isStalled {
                let lastReceived = table[number].lastReceived.advanced(milliseconds: stall)
                table[number].lastReceived = min(lastReceived, now)
            }
            table[number].sender.release(at: now)
            let silence = now.milliseconds(since: table[number].lastReceived)
            if !table[number].isValidated, silence >= Self.checkMilliseconds {
                end(number, .silent)
            } else if silence >= Self.idleMilliseconds {
                end(number, .idle)
            }
        }
    }

    /// Number of places of `validatedPath(at:)`.
    package var places: Int { table.count == 0 ? 0 : table.capacity }

    /// Returns the path of the validated connection at a place, if there is one.
    package func validatedPath(at place: Int) -> Path? {
        guard let number = table.number(at: place), table[number].isValidated else { return nil }
        return table[number].path
    }

    static let sweepMilliseconds: Int64 = 500
    /// Time from the accept to the first connectivity check.
    private static let checkMilliseconds: Int64 = 5_000
    /// Longest silence of a validated connection; a standby path is checked about every 25 s.
    private static let idleMilliseconds: Int64 = 60_000
}

// Figures for the worker and its metrics.
extension TCPConnections {
    /// Time at which `expire` or `expireQueues` next has something to do, if any.
    package var deadline: Instant? {
        var earliest = nextSweep
        for number in waiting where table.contains(number) {
            guard let own = table[number].sender.deadline else { continue }
            earliest = earliest.map { min($0, own) } ?? own
        }
        return earliest
    }

    package var statistics: TCPConnectionStatistics {
        var statistics = counters
        statistics.open = table.count
        return statistics
    }

    /// Datagrams dropped by the connections.
    package var drops: SendDrops {
        var sum = formerDrops
        for place in 0..<places {
            if let number = table.number(at: place) { sum += table[number].sender.drops }
        }
        return sum
    }

    /// Number of queued datagrams.
    package var waitingCount: Int {
        waiting.reduce(0) { $0 + (table.contains($1) ? table[$1].sender.count : 0) }
    }

    /// Returns the time of the first send call with media since the previous `takeStamp`.
    package mutating func takeStamp() -> SendStamp {
        defer { stamp = SendStamp() }
        return stamp
    }
}

/// Limits of a worker's TCP connections; `docs/limits.md` says what happens at each.
package struct TCPConnectionLimits: Hashable, Sendable {
    /// Maximum number of connections at one time.
    package var connections = 1_024
    /// Maximum number of connections from one IPv4 address, or one IPv6 /64.
    package var connectionsPerAddress = 128
    /// Maximum number of bytes queued for one connection.
    package var queueBytes = 512 << 10

    package init() {}

    /// Maximum number of connections that can be numbered.
    package static let maximumConnections = TCPConnectionTable.maximumCapacity

    /// Maximum number of connections without a connectivity check; one more ends the oldest.
    package var unchecked: Int { max(1, connections / 4) }

    /// Queue limits, with two datagrams a kilobyte, as audio packets are small.
    var queue: SendQueueLimits {
        SendQueueLimits(datagrams: max(1, queueBytes / 512), bytes: queueBytes)
    }
}

/// Source of connections: an IPv4 address, or an IPv6 /64, which belongs to one customer.
struct TCPSource: Hashable {
    private let high: UInt64
    private let low: UInt64

    init(_ address: Address) {
        high = address.high
        low = address.ipv4 == nil ? 0 : address.low
    }
}

/// Number of connections by source.
struct TCPSourceCounts {
    private var counts: [TCPSource: Int] = [:]

    subscript(source: TCPSource) -> Int {
        get { counts[source] ?? 0 }
        set { counts[source] = newValue == 0 ? nil : newValue }
    }
}
