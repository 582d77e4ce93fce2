package import RTP
package import WorkerInterface

/// Media core of one worker: takes bytes and time, returns bytes and events.
///
/// It opens no socket, starts no thread and reads no clock, so a test can drive it through an hour
/// of packet loss in a millisecond and get the same hour every time. A caller receives a batch,
/// then calls `flush` until it returns `false`, sending the output each time.
package struct Core: ~Copyable {
    let limits: CoreLimits
    let srtpContext: SRTPContext
    var transports: Transports
    var publications = Slab<Publication, HandleKind.Publication>()
    var slots = Slab<Slot, HandleKind.Slot>()
    var slotRecords = Slab<SlotRecord, HandleKind.Slot>()
    var encodings = Slab<Encoding, HandleKind.Encoding>()
    var encodingIDs = HandleAllocator<HandleKind.Encoding>(capacity: .max)

    private var lastEpoch: UInt32 = 0

    var pool: PacketPool
    /// Pool place reserved for decrypting RTCP, so that reports and requests are read even if the
    /// pool is full.
    let rtcpPlace: Int32

    /// Publications with packets in the current batch, those with many subscribers that are sent
    /// after the others, and the progress of `flush`.
    var queued = UncountedArray<Int32>(capacity: batchCapacity)
    var largeAudiences = UncountedArray<Int32>(capacity: batchCapacity)
    var cursor = FlushCursor()
    var egressOrder = EgressOrder()
    var arrivalCount = 0
    var aside = PreemptedBatch()

    /// Audio whose packets carry no level extension, and the decoders that measure it.
    var pendingAudioDecodes = PendingAudioDecodes()
    var opusLevelMeter = OpusLevelMeter(limit: PendingAudioDecodes.decoders)

    /// Held audio to replay before the next batch, for newly selected speakers.
    var replays = UncountedArray<Replay>()
    var nextReplay = 0

    /// Publications that are fed by another worker.
    var mirrors = UncountedArray<Int32>(capacity: 4)
    /// Next deadline of the mirrors.
    var mirrorsDue: Instant?
    /// Publications with a mirror whose relaying is on hold until it has asked for held audio.
    var held = UncountedArray<Int32>()
    /// Number of publications that are relayed to other workers.
    var relayedCount = 0

    /// Working memory of the bandwidth allocation in progress: demands, their slots and the layers
    /// on offer.
    var allocation = Allocation()
    var ladder = Ladder()
    var claimants = UncountedArray<Claimant>(capacity: 16)
    var offers = UncountedArray<LayerOption>(capacity: 32)

    /// Packets queued by the pacers, and the first free place among them.
    var pacedPackets = UncountedArray<PacedPacket>(capacity: 16)
    var firstFreePaced: Int32 = -1
    /// Whether the packet being sent comes from a pacer's queue.
    var isReleasing = false

    /// Overload state of the worker, and the slots whose video is reduced or stopped because of it.
    var gauge: OverloadController
    var reducedSlots = 0
    var stoppedSlots = 0
    var sheddingDue: Instant?
    /// Overload state last reported to the control plane.
    var reportedOverload = WorkerOverload()

    /// Time of the call in progress.
    var now = Instant(nanoseconds: 0)
    /// Stale media to discard from the datagram being received.
    var staleMedia = StaleMedia.nothing

    var statistics = WorkerStatistics()
    var drops = DropCounters()
    /// Drops of relayed packets in a mirror; the home has counted those packets as forwarded.
    var relayDrops = DropCounters()
    var events: [WorkerEvent] = []
    var nextEvent = 0
    /// Copies that were forwarded under rights that commands have revoked since the last fence.
    var packetsUnderRevokedRights: UInt64 = 0
    /// Outgoing SSRCs of the slots that have lost their right since `takeRevokedSSRCs` was last
    /// called.
    var revokedSSRCs: [SSRC] = []
    /// Unix time minus the monotonic clock, in nanoseconds, for sender reports.
    var wallClockOffset: Int64 = 0

    /// Packets in one batch; the caller flushes before receiving more.
    package static let batchCapacity = 128

    /// Creates a core without transports.
    ///
    /// - Parameters:
    ///   - limits: Bounds on resources and rates.
    ///   - seed: Seed for SSRCs and first sequence numbers.
    ///   - secret: 32 secret bytes; without them all values follow from the seed, as simulations
    ///     want it.
    ///   - identity: The DTLS certificate that peers are shown.
    ///   - engine: The SRTP implementation.
    package init(
        limits: CoreLimits,
        seed: UInt64,
        secret: [UInt8]? = nil,
        identity: DTLSIdentity,
        engine: SRTPEngine
    ) {
        self.limits = limits
        gauge = OverloadController(limits.pressure)
        srtpContext = SRTPContext(engine: engine, refusesReuse: true)
        var random = SplitMix(seed: seed)
        let key = secret ?? Self.simulatedSecret(&random)
        transports = Transports(
            limits: limits,
            identity: identity,
            srtpContext: srtpContext,
            random: random,
            secrets: SecretNumbers(key: key)
        )
        pool = PacketPool(capacity: limits.packetPool + 1)
        rtcpPlace = pool.allocate()
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
        self.now = now
        self.staleMedia = staleMedia
        statistics.datagramsIn &+= 1
        statistics.bytesIn &+= UInt64(datagram.count)
        guard datagram.count <= Batch.maximumLength else { return drops.count(.oversized) }
        switch Datagram(datagram) {
        case .stun(let bytes):
            drop(transports.receiveSTUN(bytes, on: path, at: now, into: &output))
            routeFindings(at: now)
        case .dtls(let bytes):
            drop(transports.receiveDTLS(bytes, on: path, at: now, into: &output))
            routeFindings(at: now)
        case .rtp(let bytes):
            receiveRTP(bytes, on: path, at: now, into: &output)
        case .rtcp(let bytes):
            receiveRTCP(bytes, on: path, at: now, into: &output)
            // Encrypts the retransmissions of one NACK together.
            srtpContext.finish()
        case nil:
            drops.count(.unknownProtocol)
        }
    }

    /// Datagrams that one call of `receive`, `expire` or `apply` may append at most.
    package static let replyCapacity = 16

    /// Timers that one call of `expire` processes, so that media is delayed by no more than some
    /// tenths of a millisecond.
    package static let timersAtOnce = 32

    /// Processes due timers, as far as `output` has room.
    ///
    /// Returns `true` if more timers are due and `output` has room: call again. Otherwise
    /// `deadline` is the time of the next call.
    package mutating func expire(at now: Instant, into output: inout Batch) -> Bool {
        self.now = now
        transports.excludeStall(at: now)
        measurePendingAudio(at: now)
        defer { srtpContext.finish() }
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
        guard let mirrorsDue else { return transports.timers.first }
        return min(mirrorsDue, transports.timers.first ?? mirrorsDue)
    }

    /// Removes and returns the next event for the control plane.
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

    /// Returns the outgoing SSRCs, RTX included, that have lost their right since the last call.
    ///
    /// Packets of theirs that are still queued for a socket must not be sent.
    package mutating func takeRevokedSSRCs() -> [SSRC] {
        guard !revokedSSRCs.isEmpty else { return [] }
        defer { revokedSSRCs.removeAll() }
        return revokedSSRCs
    }

    /// Sets the offset from the monotonic clock to Unix time.
    package mutating func setWallClock(offsetNanoseconds: Int64) {
        wallClockOffset = offsetNanoseconds
    }

    /// Returns a new identifier for the sequence numbering of an incoming stream.
    ///
    /// It must be unique: with a repeated one, packets of two streams could get the same SRTP
    /// packet index.
    mutating func takeEpoch() -> UInt32 {
        lastEpoch &+= 1
        return lastEpoch
    }

    func ntp(at now: Instant) -> NTPTime {
        NTPTime(unixNanoseconds: now.nanoseconds &+ wallClockOffset)
    }

    private mutating func drop(_ reason: DropReason?) {
        if let reason { drops.count(reason) }
    }

    /// Routes what the transports have found to the parts that it concerns.
    mutating func routeFindings(at now: Instant) {
        guard !transports.findings.isEmpty else { return }
        for finding in transports.takeFindings() {
            switch finding {
            case .changed(let id, let change):
                emit(.transport(id, change))
                if change == .connected { requestKeyframes(forSlotsOf: Int(id.index), at: now) }
            case .pathChanged(let transport): forgetFailures(of: transport)
            }
        }
    }

    /// Requests keyframes for the slots of a transport that can be sent media now.
    private mutating func requestKeyframes(forSlotsOf transport: Int, at now: Instant) {
        for index in 0..<transports[transport].slots.count {
            requestKeyframe(forSlot: Int(transports[transport].slots[index]), at: now)
        }
    }

    /// Forgets which layers a path could not carry: it is another path now.
    private mutating func forgetFailures(of transport: Int) {
        for position in 0..<transports[transport].slots.count {
            let slot = Int(transports[transport].slots[position])
            if slotRecords[slot].share.isMade { slotRecords[slot].share.value.forgetFailures() }
        }
    }

    /// Whether a connectivity check has validated `path` and its transport still holds it.
    package func isValidated(_ path: Path) -> Bool { transports.isValidated(path) }

    /// Removes the path of a closed connection; nothing is sent on it any more.
    ///
    /// Media continues on another validated path, or waits for one. The peer counts as lost only
    /// when the usual liveness timeouts expire.
    package mutating func lose(_ path: Path) {
        transports.lose(path, at: now)
        routeFindings(at: now)
    }

    mutating func emit(_ event: WorkerEvent) { events.append(event) }
}

extension HandleKind {
    package enum Encoding {}
}
