package import RTP
package import WorkerInterface

/// One packet as a tap gets it: in clear, with what ingress found out about it.
package struct TapPacket: Sendable {
    /// The mirror's handle among the tap's.
    package var publication: PublicationID
    package var codec: Codec
    /// Which of the publication's encodings it is of, as the offer lists them.
    package var position: Int
    /// The encoding that the home holds for the best; `nil` before there is one.
    package var best: Int?
    /// Names a numbering of the encoding: another one says that the sender began anew.
    package var epoch: UInt32
    /// The sequence number with its wraps counted.
    package var number: Int64
    package var timestamp: UInt32
    /// When it came to its home, on our monotonic clock.
    package var arrival: Instant
    /// From the publisher's last sender report: when, on our clock, that was captured which has
    /// the timestamp beside it.
    package var captured: (instant: Instant, timestamp: UInt32)?
    package var isKeyframeStart: Bool
    package var isMarked: Bool
    /// It only fills the numbering and carries nothing.
    package var isPadding: Bool
    /// The ring was full before it: packets are missing that nobody sends again.
    package var followsGap: Bool
    /// Pixels of the encoding, 0 while unknown.
    package var width: Int
    package var height: Int
    /// With its payload descriptor; of a RED packet the primary block alone.
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

/// A place among the workers that only reads: publications' mirrors, without slots behind them.
///
/// What a home hands to a worker it hands here, so all that holds for mirrors holds: only what
/// has passed ingress and gate comes, and nobody waits for the reader. It is no part of the
/// packet path and allocates.
package struct TapPort: ~Copyable {
    /// As far as packets are judged by it.
    fileprivate struct State {
        var mirror: Mirror
        var openedAt = Instant(nanoseconds: 0)
    }

    private var port: RelayPort
    private var mirrors: [PublicationID: State] = [:]
    private var scratch = [UInt8](repeating: 0, count: Batch.maximumLength)

    package init(_ port: consuming RelayPort) { self.port = port }

    /// Makes a mirror, or brings it to what was agreed anew.
    package mutating func mirror(_ mirror: Mirror, at now: Instant) {
        let id = mirror.configuration.id
        guard let old = mirrors[id] else {
            mirrors[id] = State(mirror: mirror)
            return
        }
        mirrors[id]?.mirror = mirror
        mirrors[id]?.mirror.open = old.mirror.open
        gate(id, open: mirror.open, at: now)
    }

    package mutating func unmirror(_ id: PublicationID) { mirrors[id] = nil }

    /// Opens or closes a mirror's gate; what came to the home before it opened is of an older
    /// right, however long it lay in the ring.
    package mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard let state = mirrors[id], state.mirror.open != open else { return }
        mirrors[id]?.mirror.open = open
        mirrors[id]?.openedAt = now
    }

    /// Whether a mirror is there and its gate open.
    package func isOpen(_ id: PublicationID) -> Bool { mirrors[id]?.mirror.open == true }

    package var mirrorCount: Int { mirrors.count }

    /// Hands out what lies in the rings, at most as much as they hold.
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

    /// Returns `nil` for what is late: of a mirror that is gone, or of an older right.
    private mutating func read(_ message: RelayMessage, from other: Int) -> TapPacket? {
        let home = RelayTarget(worker: other, publication: message.source)
        guard let state = mirrors[message.target], state.mirror.home == home, state.mirror.open,
            message.info.arrival > state.openedAt,
            let codec = state.codec(of: message.info.payloadType)
        else { return nil }
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
            payload: Array(scratch[start..<length])
        )
        packet.position = Int(message.position)
        packet.best = message.best == RelayMessage.noPosition ? nil : Int(message.best)
        packet.epoch = message.info.epoch
        packet.captured = message.captured.map { ($0.instant, $0.timestamp) }
        packet.isKeyframeStart = message.info.flags.contains(.keyframeStart)
        packet.isMarked = message.info.flags.contains(.marker)
        packet.isPadding = message.info.flags.contains(.skipped)
        packet.followsGap = message.followsGap
        packet.width = Int(message.width)
        packet.height = Int(message.height)
        return packet
    }

    /// Asks a publication's home for a keyframe of one of its encodings.
    ///
    /// A wish that finds the ring full is lost: it is to be said again while it stands.
    ///
    /// - Returns: the worker that has to be woken, if any.
    package mutating func wantKeyframe(of id: PublicationID, position: Int) -> Int? {
        guard let state = mirrors[id], state.mirror.open, port.reaches(state.mirror.home.worker)
        else { return nil }
        let worker = state.mirror.home.worker
        let wish = RelayMessage(
            .keyframeWanted,
            to: state.mirror.home.publication,
            from: id,
            position: position
        )
        _ = port.write(wish, Span(), to: worker)
        return port.publish(to: worker) ? worker : nil
    }
}

extension TapPort.State {
    /// RED counts as what it carries.
    fileprivate func codec(of payloadType: UInt8) -> Codec? {
        let format = mirror.configuration.formats.first { $0.payloadType == payloadType }
        return format.map { $0.format.codec == .red ? .opus : $0.format.codec }
    }
}
