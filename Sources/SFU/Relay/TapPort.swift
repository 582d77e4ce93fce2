package import RTP
package import WorkerInterface

/// Decrypted packet as a tap reads it, with the findings of ingress.
package struct TapPacket: Sendable {
    /// Handle of the mirror, among those of the tap.
    package var publication: PublicationID
    package var codec: Codec
    /// Position of the encoding within its publication, in the order of the offer.
    package var position: Int
    /// Position of the best live encoding at the home; `nil` before there is one.
    package var best: Int?
    /// Sequence number epoch of the encoding; a new one means that the sender restarted.
    package var epoch: UInt32
    /// Sequence number with its wraps counted.
    package var number: Int64
    package var timestamp: UInt32
    /// Time of arrival at its home, on our monotonic clock.
    package var arrival: Instant
    /// Capture time of an RTP timestamp, on our clock, from the publisher's last sender report.
    package var captured: (instant: Instant, timestamp: UInt32)?
    package var isKeyframeStart: Bool
    package var isMarked: Bool
    /// Whether it only fills the numbering and carries no media.
    package var isPadding: Bool
    /// Whether the ring was full before it: packets are missing and are not sent again.
    package var followsGap: Bool
    /// Pixels of the encoding, 0 while unknown.
    package var width: Int
    package var height: Int
    /// Payload with its descriptor; only the primary block of a RED packet.
    package var payload: [UInt8]

    package init(
        publication: PublicationID,
        codec: Codec,
        number: Int64,
        timestamp: UInt32,
        arrival: Instant,
        payload: [UInt8]
    ) {
        self.publication = publication
        self.codec = codec
        self.number = number
        self.timestamp = timestamp
        self.arrival = arrival
        self.payload = payload
        position = 0
        best = 0
        epoch = 1
        isKeyframeStart = false
        isMarked = false
        isPadding = false
        followsGap = false
        width = 0
        height = 0
    }
}

/// Read-only endpoint of the relay: mirrors of publications, without slots.
///
/// Homes relay to it as to a worker, so the rules for mirrors apply: only packets that passed
/// ingress and gate arrive, and no writer waits for the reader. It is no part of the packet path
/// and allocates.
package struct TapPort: ~Copyable {
    /// Mirror state that decides whether packets are read.
    fileprivate struct State {
        var mirror: Mirror
        var openedAt = Instant(nanoseconds: 0)
        /// Whether pictures were left out since the last packet that was read, which those after
        /// them may need.
        var hasGap = false
        /// Whether higher layers of the same pictures were left out, which later ones may need.
        var isReduced = false
    }

    private var port: RelayPort
    private var mirrors: [PublicationID: State] = [:]
    private var scratch = [UInt8](repeating: 0, count: Batch.maximumLength)

    package init(_ port: consuming RelayPort) { self.port = port }

    /// Creates a mirror, or updates it after a new negotiation.
    package mutating func mirror(_ mirror: Mirror, at now: Instant) {
        let id = mirror.configuration.id
        guard let old = mirrors[id] else {
            mirrors[id] = State(mirror: mirror)
            return
        }
        mirrors[id]?.mirror = mirror
        mirrors[id]?.mirror.open = old.mirror.open
        if old.isReduced, old.mirror.configuration.cap != mirror.configuration.cap {
            mirrors[id]?.hasGap = true
            mirrors[id]?.isReduced = false
        }
        gate(id, open: mirror.open, at: now)
    }

    package mutating func unmirror(_ id: PublicationID) { mirrors[id] = nil }

    /// Opens or closes a mirror's gate.
    ///
    /// Packets that arrived at the home before it opened belong to an earlier permission, however
    /// long they lay in the ring, and are dropped.
    package mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard let state = mirrors[id], state.mirror.open != open else { return }
        mirrors[id]?.mirror.open = open
        mirrors[id]?.openedAt = now
    }

    /// Whether the mirror exists and its gate is open.
    package func isOpen(_ id: PublicationID) -> Bool { mirrors[id]?.mirror.open == true }

    package var mirrorCount: Int { mirrors.count }

    /// Passes the packets in the rings to `body`, at most as many as the rings hold.
    package mutating func receive(_ body: (TapPacket) -> Void) {
        for other in 0..<port.workers where port.reaches(other) {
            for _ in 0..<RelayRing.capacity {
                guard !port[reader: other].isEmpty() else { break }
                let message = port[reader: other].message
                if case .packet = message.kind, let packet = read(message, from: other) {
                    body(packet)
                }
                port[reader: other].advance()
            }
            port[reader: other].release()
        }
    }

    private mutating func copy(_ length: Int, from other: Int) {
        var bytes: [UInt8] = []
        swap(&bytes, &scratch)
        var places = bytes.mutableSpan
        port[reader: other].copyPacket(length: length, into: &places)
        swap(&bytes, &scratch)
    }

    /// Reads a packet; returns `nil` if its mirror is gone, it belongs to an earlier permission, or
    /// its picture is larger than the cap of the publisher's role.
    ///
    /// Higher spatial layers above the cap are read as padding, as the lower ones are complete
    /// without them.
    private mutating func read(_ message: RelayMessage, from other: Int) -> TapPacket? {
        let home = RelayTarget(worker: other, publication: message.source)
        guard let state = mirrors[message.target], state.mirror.home == home, state.mirror.open,
            message.info.arrival > state.openedAt,
            let codec = state.codec(of: message.info.payloadType)
        else { return nil }
        let spatial = LayerPoint(index: Int(message.info.layer)).spatial
        let cap = state.mirror.configuration.cap
        let isAboveCap = codec.kind == .video && !cap.admits(message.size)
        if isAboveCap, spatial == 0 {
            mirrors[message.target]?.hasGap = true
            return nil
        }
        let length = min(Int(message.length), scratch.count)
        copy(length, from: other)
        let start = Int(message.info.payloadOffset) + Int(message.info.primaryOffset)
        guard start <= length else { return nil }
        var packet = TapPacket(
            publication: message.target,
            codec: codec,
            number: message.info.number,
            timestamp: message.info.timestamp,
            arrival: message.info.arrival,
            payload: isAboveCap ? [] : Array(scratch[start..<length])
        )
        packet.position = Int(message.position)
        packet.best = message.best == RelayMessage.noPosition ? nil : Int(message.best)
        packet.epoch = message.info.epoch
        packet.captured = message.captured.map { ($0.instant, $0.timestamp) }
        packet.isKeyframeStart = message.info.flags.contains(.keyframeStart) && !isAboveCap
        packet.isMarked = message.info.flags.contains(.marker)
        packet.isPadding = message.info.flags.contains(.skipped) || isAboveCap
        packet.followsGap = message.followsGap || state.hasGap
        mirrors[message.target]?.hasGap = false
        if isAboveCap { mirrors[message.target]?.isReduced = true }
        packet.width = Int(message.width)
        packet.height = Int(message.height)
        if cap.width ?? cap.height != nil {
            packet.width = Int(message.size.width)
            packet.height = Int(message.size.height)
        }
        return packet
    }

    /// Asks a publication's home for a keyframe of one of its encodings.
    ///
    /// A request that finds the ring full is lost: repeat it while the keyframe is needed.
    ///
    /// - Returns: the worker that has to be woken, if any.
    package mutating func requestKeyframe(of id: PublicationID, position: Int) -> Int? {
        guard let state = mirrors[id], state.mirror.open, port.reaches(state.mirror.home.worker)
        else { return nil }
        let worker = state.mirror.home.worker
        let request = RelayMessage(
            .keyframeRequested,
            to: state.mirror.home.publication,
            from: id,
            position: position
        )
        _ = port.write(request, Span(), to: worker)
        return port.publish(to: worker) ? worker : nil
    }
}

extension TapPort.State {
    /// Returns the codec of a payload type; RED counts as Opus, which it carries.
    fileprivate func codec(of payloadType: UInt8) -> Codec? {
        let format = mirror.configuration.formats.first { $0.payloadType == payloadType }
        return format.map { $0.format.codec == .red ? .opus : $0.format.codec }
    }
}
