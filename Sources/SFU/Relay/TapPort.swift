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
        /// Spatial layers that the cap of the publisher's role forbids, or did after the last
        /// keyframe.
        struct LeftOut {
            var lowest: UInt8
            /// Whether a keyframe has come since they were forbidden.
            var mayEnd = false
        }

        var mirror: Mirror
        var openedAt = Instant(nanoseconds: 0)
        /// Layers that are left out, by the encoding's position.
        var leftOut: [UInt8: LeftOut] = [:]
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
        if old.mirror.configuration.cap != mirror.configuration.cap {
            // A reader that gets nothing at all would not ask for a keyframe.
            mirrors[id]?.leftOut = old.leftOut.filter { $0.value.lowest > 0 }
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
        let leftOut = lowestLeftOut(message, codec)
        // The numbers tell that a picture is missing.
        guard leftOut != 0 else { return nil }
        let isLeftOut =
            leftOut.map { LayerPoint(index: Int(message.info.layer)).spatial >= $0 } ?? false
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
            payload: isLeftOut ? [] : Array(scratch[start..<length])
        )
        packet.position = Int(message.position)
        packet.best = message.best == RelayMessage.noPosition ? nil : Int(message.best)
        packet.epoch = message.info.epoch
        packet.captured = message.captured.map { ($0.instant, $0.timestamp) }
        packet.isKeyframeStart = message.info.flags.contains(.keyframeStart) && !isLeftOut
        packet.isMarked = message.info.flags.contains(.marker)
        if let leftOut {
            let highest = LayerPoint(spatial: leftOut - 1, temporal: 3)
            packet.isMarked = message.info.marks.contains(highest)
        }
        packet.isPadding = message.info.flags.contains(.skipped) || isLeftOut
        packet.followsGap = message.followsGap
        packet.width = Int(leftOut == nil ? message.width : message.size.width)
        packet.height = Int(leftOut == nil ? message.height : message.size.height)
        return packet
    }

    /// Returns the lowest spatial layer of a packet's encoding that is left out, if any is; 0 if
    /// all are.
    ///
    /// Later pictures refer to what was left out, so a layer that is permitted again comes from a
    /// keyframe on.
    private mutating func lowestLeftOut(_ message: RelayMessage, _ codec: Codec) -> UInt8? {
        guard codec.kind == .video, let state = mirrors[message.target] else { return nil }
        let spatial = LayerPoint(index: Int(message.info.layer)).spatial
        var known = state.leftOut[message.position]
        if spatial == 0, message.info.flags.contains(.keyframeStart) { known?.mayEnd = true }
        if !state.mirror.configuration.cap.admits(message.size) {
            known = State.LeftOut(lowest: min(known?.lowest ?? spatial, spatial))
        } else if let layers = known, layers.mayEnd, spatial >= layers.lowest {
            known = nil
        }
        mirrors[message.target]?.leftOut[message.position] = known
        return known?.lowest
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
