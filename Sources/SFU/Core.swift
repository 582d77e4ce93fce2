package import RTP
package import WorkerInterface

/// One worker's share of the SFU: bytes and time in, bytes and events out.
///
/// It opens no socket, starts no thread and reads no clock, so a test can drive it through an
/// hour of packet loss in a millisecond and get the same hour every time. A caller receives a
/// batch, then calls `flush` until it returns `false`, sending the output each time.
package struct Core: ~Copyable {
    let limits: CoreLimits
    let identity: DTLSIdentity
    let srtpContext: SRTPContext
    /// For numbers that others see.
    var random: SplitMix
    /// For numbers that others must not guess.
    var secrets: SecretNumbers

    var transports = Slab<Transport, HandleKind.Transport>()
    var publications = Slab<Publication, HandleKind.Publication>()
    /// Where transports' media goes: with the slots, what a packet touches of its viewers.
    var destinations = Slab<Destination, HandleKind.Transport>()
    var slots = Slab<Slot, HandleKind.Slot>()
    var slotRecords = Slab<SlotRecord, HandleKind.Slot>()
    var encodings = Slab<Encoding, HandleKind.Encoding>()
    var encodingIDs = HandleAllocator<HandleKind.Encoding>(capacity: .max)

    private var lastEpoch: UInt32 = 0

    /// Validated addresses.
    var paths: PathTable
    /// Local ICE fragments, by a keyed hash.
    var fragments: [UInt64: TransportID] = [:]
    let fragmentSeed: UInt64
    /// Checks from addresses that none has validated.
    var strangers: SourceLimiter
    var timers = TimerQueue()
    /// When `expire` was last called.
    var lastExpiry: Instant?
    var pool: PacketPool
    /// Where RTCP is decrypted: reports and requests come through even if the pool is full.
    let rtcpPlace: Int32

    /// Publications with packets in the batch under way, those with many viewers that wait until
    /// the others are out, and how far `flush` has come.
    var queued = List<Int32>(capacity: batchCapacity)
    var crowded = List<Int32>(capacity: batchCapacity)
    var cursor = FlushCursor()
    var departures = Departures()
    var arrivalCount = 0
    var aside = BatchAside()

    /// Loudness that no header tells, and what finds it out.
    var soundings = Soundings()
    var opusLevels = OpusLevels(limit: Soundings.decoders)

    /// What is to go out before the next batch, of what was held back of who came to be heard.
    var replays = List<Replay>()
    var nextReplay = 0

    /// Publications that another worker feeds.
    var mirrors = List<Int32>(capacity: 4)
    /// When mirrors next have something to do.
    var mirrorsDue: Instant?
    /// Publications with a mirror that waits for its beginning.
    var held = List<Int32>()
    /// Publications that are handed on to other workers.
    var relayedCount = 0

    /// The sharing out under way: what is claimed, by which slots, and what could be given.
    var allocation = Allocation()
    var ladder = Ladder()
    var claimants = List<Claimant>(capacity: 16)
    var offers = List<LayerOption>(capacity: 32)

    /// Packets that wait for their viewers' paths, and the first place that is free.
    var waiting = List<WaitingPacket>(capacity: 16)
    var firstFreeWaiting: Int32 = -1
    /// Whether what is being sent is one of them.
    var isReleasing = false

    /// How hard pressed the thread is, and what it has given up for that.
    var gauge: PressureGauge
    var reducedSlots = 0
    var stoppedSlots = 0
    var reliefDue: Instant?
    /// What the control plane knows of it.
    var pressureTold = WorkerPressure()

    /// The time of the call under way.
    var now = Instant(nanoseconds: 0)
    /// What is left out of what is being received.
    var leaving = Leaving.nothing

    var statistics = WorkerStatistics()
    var drops = DropCounters()
    /// What went no further in a mirror; its home has counted it as forwarded.
    var relayDrops = DropCounters()
    var events: [WorkerEvent] = []
    var nextEvent = 0
    /// Copies that went out under the rights that commands took away since the last fence.
    var packetsUnderLostRights: UInt64 = 0
    /// SSRCs that viewers know of what those rights had let through.
    var lostStreams: [SSRC] = []
    /// Unix time minus the monotonic clock, in nanoseconds, for sender reports.
    var wallClockOffset: Int64 = 0

    /// Packets of one batch: the caller flushes before it has received more.
    package static let batchCapacity = 128

    /// Makes a core that knows nobody.
    ///
    /// - Parameters:
    ///   - limits: What it may use.
    ///   - seed: Where SSRCs and first numbers come from.
    ///   - secret: 32 bytes that nobody else knows; without them all follows from the seed, as
    ///     simulations want it.
    ///   - identity: The certificate that peers are shown.
    ///   - engine: What encrypts media.
    package init(
        limits: CoreLimits,
        seed: UInt64,
        secret: [UInt8]? = nil,
        identity: DTLSIdentity,
        engine: SRTPEngine
    ) {
        self.limits = limits
        self.identity = identity
        gauge = PressureGauge(limits.pressure)
        srtpContext = SRTPContext(engine: engine, refusesReuse: true)
        var random = SplitMix(seed: seed)
        secrets = SecretNumbers(key: secret ?? Self.simulatedSecret(&random))
        paths = PathTable(seed: secrets.next())
        fragmentSeed = secrets.next()
        strangers = SourceLimiter(seed: secrets.next())
        pool = PacketPool(capacity: limits.packetPool + 1)
        rtcpPlace = pool.allocate()
        self.random = random
    }

    private static func simulatedSecret(_ random: inout SplitMix) -> [UInt8] {
        (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    /// Takes one received datagram.
    ///
    /// Bytes are borrowed: what must outlive the call is copied. `output` needs at least
    /// `Self.replyCapacity` free places. Media that is left out is taken note of, and goes to
    /// nobody.
    package mutating func receive(
        _ datagram: Span<UInt8>,
        on path: Path,
        at now: Instant,
        leaving: Leaving = .nothing,
        into output: inout Batch
    ) {
        self.now = now
        self.leaving = leaving
        statistics.datagramsIn &+= 1
        statistics.bytesIn &+= UInt64(datagram.count)
        guard datagram.count <= Batch.maximumLength else { return drops.count(.oversized) }
        switch Datagram(datagram) {
        case .stun(let bytes):
            receiveSTUN(bytes, on: path, at: now, into: &output)
        case .dtls(let bytes):
            receiveDTLS(bytes, on: path, at: now, into: &output)
        case .rtp(let bytes):
            receiveRTP(bytes, on: path, at: now, into: &output)
        case .rtcp(let bytes):
            receiveRTCP(bytes, on: path, at: now, into: &output)
            // Retransmissions, all those of one NACK together.
            srtpContext.finish()
        case nil:
            drops.count(.unknownProtocol)
        }
    }

    /// Datagrams that one call of `receive`, `expire` or `apply` may add at most.
    package static let replyCapacity = 16

    /// Timers that one call of `expire` looks at, so that media need not wait long: some tenths
    /// of a millisecond.
    package static let timersAtOnce = 32

    /// Does some of what is due, as far as `output` has room.
    ///
    /// Returns `true` where more is due that there is room for: call again. `deadline` tells when
    /// to come otherwise.
    package mutating func expire(at now: Instant, into output: inout Batch) -> Bool {
        self.now = now
        forgiveStall(at: now)
        measureSoundings(at: now)
        defer { srtpContext.finish() }
        for _ in 0..<Self.timersAtOnce {
            guard output.free >= Self.replyCapacity, let entry = timers.pop(dueAt: now) else {
                return false
            }
            guard transports.contains(entry.transport) else { continue }
            let index = Int(entry.transport.index)
            guard transports[index].scheduled == entry.deadline else { continue }
            transports[index].scheduled = nil
            expire(transport: index, at: now, into: &output)
            schedule(index)
        }
        return output.free >= Self.replyCapacity && timers.first.isDue(at: now)
    }

    /// When `expire(at:)` or `relay(into:at:)` next has something to do, if ever.
    package var deadline: Instant? {
        guard let mirrorsDue else { return timers.first }
        return min(mirrorsDue, timers.first ?? mirrorsDue)
    }

    /// The next thing that the control plane should know.
    package mutating func takeEvent() -> WorkerEvent? {
        guard nextEvent < events.count else { return nil }
        let event = events[nextEvent]
        nextEvent += 1
        if nextEvent == events.count {
            events.removeAll(keepingCapacity: true)
            nextEvent = 0
        }
        return event
    }

    /// The outgoing streams, retransmissions among them, that rights have been taken from since
    /// the last call: what still waits of them must not leave.
    package mutating func takeLostStreams() -> [SSRC] {
        guard !lostStreams.isEmpty else { return [] }
        defer { lostStreams.removeAll() }
        return lostStreams
    }

    /// Says what Unix time is at a point of the monotonic clock.
    package mutating func setWallClock(offsetNanoseconds: Int64) {
        wallClockOffset = offsetNanoseconds
    }

    /// A name for a numbering of an incoming stream that none had before.
    ///
    /// Were one used twice, packets of two streams could get one packet index.
    mutating func takeEpoch() -> UInt32 {
        lastEpoch &+= 1
        return lastEpoch
    }

    func ntp(at now: Instant) -> NTPTime {
        NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset)
    }

    mutating func emit(_ event: WorkerEvent) { events.append(event) }
}

extension HandleKind {
    package enum Encoding {}
}

/// A small seeded generator (SplitMix64): for SSRCs and first sequence numbers, never for keys.
package struct SplitMix: RandomNumberGenerator, BitwiseCopyable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }
}
