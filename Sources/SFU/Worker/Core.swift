package import RTP
package import WorkerInterface

/// Media core of one worker: takes bytes and time, returns bytes and events.
///
/// It opens no socket, starts no thread and reads no clock, so a test can drive it through an hour
/// of packet loss in a millisecond and get the same hour every time. A caller receives a batch,
/// then calls `flush` until it returns `false`, sending the output each time.
///
/// The core consists of parts that own their state. It calls them in order, lends each the parts
/// below it, and routes what they find to those that it concerns.
///
/// Its longer methods that only read are `mutating` all the same: the compiler takes half a minute
/// to check that a borrowed value of this size is only read.
package struct Core: ~Copyable {
    /// Counters of the datagrams received; the worker's statistics contain them.
    struct Counters {
        var datagramsIn: UInt64 = 0
        var bytesIn: UInt64 = 0
    }

    var transports: Transports
    var receiver: Receiver
    var forwarder: Forwarder
    var allocator = LayerAllocator()
    var rtcp = RTCPEndpoint()
    var relays = Relays()
    var overload: Overload
    var counters = Counters()
    var events = EventQueue()
    var resumption: Resumption

    /// Packets in one batch; the caller flushes before receiving more.
    package static let batchCapacity = Receiver.batchCapacity
    /// Datagrams that one call of `receive`, `expire` or `apply` may append at most.
    package static let replyCapacity = Batch.replyCapacity
    /// Timers that one call of `expire` processes, so that media is delayed by no more than some
    /// tenths of a millisecond.
    package static let timersAtOnce = 32

    /// Creates a core without transports.
    ///
    /// - Parameters:
    ///   - limits: Bounds on resources and rates.
    ///   - seed: Seed for SSRCs and first sequence numbers.
    ///   - secret: 32 secret bytes; without them all values follow from the seed, as simulations
    ///     want it.
    ///   - identity: The DTLS certificate that peers are shown.
    ///   - engine: The SRTP implementation.
    ///   - memory: Memory that outlives the process, for what the next one needs to go on.
    ///   - previous: What an earlier process has left, for `WorkerCommand.resume`.
    package init(
        limits: CoreLimits,
        seed: UInt64,
        secret: [UInt8]? = nil,
        identity: DTLSIdentity,
        engine: SRTPEngine,
        memory: SavedMemory? = nil,
        previous: SavedState? = nil
    ) {
        resumption = Resumption(previous: previous)
        forwarder = Forwarder(in: memory)
        var random = SplitMix(seed: seed)
        let key = secret ?? Self.simulatedSecret(&random)
        transports = Transports(
            limits: limits,
            identity: identity,
            srtpContext: SRTPContext(engine: engine, refusesReuse: true),
            random: random,
            secrets: SecretNumbers(key: key),
            memory: memory
        )
        receiver = Receiver(limits: limits)
        overload = Overload(limits.pressure)
    }

    private static func simulatedSecret(_ random: inout SplitMix) -> [UInt8] {
        (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// Processes one received datagram.
    ///
    /// Bytes are borrowed; anything that must outlive the call is copied. `output` needs at least
    /// `Self.replyCapacity` free places. Media that `staleMedia` covers is authenticated and
    /// counted, but not forwarded.
    package mutating func receive(
        _ datagram: Span<UInt8>,
        on path: Path,
        at now: Instant,
        staleMedia: StaleMedia = .nothing,
        into output: inout Batch
    ) {
        counters.datagramsIn &+= 1
        counters.bytesIn &+= UInt64(datagram.count)
        guard datagram.count <= Batch.maximumLength else { return drop(.oversized) }
        switch Datagram(datagram) {
        case .stun(let bytes):
            drop(transports.receiveSTUN(bytes, on: path, at: now, into: &output))
            routeFindings(at: now)
        case .dtls(let bytes):
            drop(transports.receiveDTLS(bytes, on: path, at: now, into: &output))
            routeFindings(at: now)
        case .rtp(let bytes):
            receiver.staleMedia = staleMedia
            receiveRTP(bytes, on: path, at: now, into: &output)
        case .rtcp(let bytes):
            receiveRTCP(bytes, on: path, at: now, into: &output)
        case nil:
            drop(.unknownProtocol)
        }
    }

    private mutating func receiveRTCP(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        rtcp.receiveRTCP(
            bytes,
            on: path,
            at: now,
            &transports,
            &receiver,
            &forwarder,
            allocator,
            into: &output
        )
        routeFindings(at: now)
        // Encrypts the retransmissions of one NACK together.
        transports.srtpContext.finish()
    }

    private mutating func drop(_ reason: DropReason?) {
        if let reason { receiver.drops.count(reason) }
    }

    /// Processes due timers, as far as `output` has room.
    ///
    /// Returns `true` if more timers are due and `output` has room: call again. Otherwise
    /// `deadline` is the time of the next call.
    package mutating func expire(at now: Instant, into output: inout Batch) -> Bool {
        transports.excludeStall(at: now)
        receiver.measurePendingAudio(at: now, &transports)
        defer { transports.srtpContext.finish() }
        for _ in 0..<Self.timersAtOnce {
            guard output.free >= Self.replyCapacity, let entry = transports.timers.pop(dueAt: now)
            else {
                return false
            }
            guard let index = transports.claim(entry) else { continue }
            expire(transport: index, at: now, into: &output)
            transports.schedule(index, at: now)
        }
        return output.free >= Self.replyCapacity && transports.timers.first.isDue(at: now)
    }

    /// Time when `expire(at:)` or `relay(into:at:)` next has something to do; `nil` if never.
    package var deadline: Instant? {
        guard let mirrorsDue = receiver.mirrorsDue else { return transports.timers.first }
        return min(mirrorsDue, transports.timers.first ?? mirrorsDue)
    }

    /// Sets the offset from the monotonic clock to Unix time.
    package mutating func setWallClock(offsetNanoseconds: Int64) {
        transports.wallClockOffset = offsetNanoseconds
    }

    /// Whether a connectivity check has validated `path` and its transport still holds it.
    package func isValidated(_ path: Path) -> Bool { transports.isValidated(path) }

    /// Removes the path of a closed connection; nothing is sent on it any more.
    ///
    /// Media continues on another validated path, or waits for one. The peer counts as lost only
    /// when the usual liveness timeouts expire.
    package mutating func lose(_ path: Path, at now: Instant) {
        transports.lose(path, at: now)
        routeFindings(at: now)
    }

    /// Returns the outgoing SSRCs, RTX included, that have lost their right since the last call.
    ///
    /// Packets of theirs that are still queued for a socket must not be sent.
    package mutating func takeRevokedSSRCs() -> [SSRC] { forwarder.takeRevokedSSRCs() }
}
