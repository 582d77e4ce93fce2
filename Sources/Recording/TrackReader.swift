package import RTP
package import SFU
package import WorkerInterface

/// Output of a track reader.
package enum TrackEvent {
    case sample(Sample)
    /// Period without samples; reported before the first sample after it.
    case gap(from: Instant, to: Instant, reason: GapReason)

    /// Frame with its capture time.
    package struct Sample {
        package var bytes: [UInt8]
        package var isKeyframe: Bool
        package var format: FrameFormat?
        package var instant: Instant
    }
}

/// Reason for a period without samples.
package enum GapReason: String, Sendable { case muted, lost }

/// Reader of one publication: converts packets into samples and gaps.
///
/// Of a simulcast it follows the encoding that the publisher's worker considers the best, and
/// switches at a keyframe.
package struct TrackReader {
    private struct Encoding {
        var epoch: UInt32
        var buffer = ReorderBuffer()
        var assembler = FrameAssembler()
    }

    private let kind: MediaKind
    private var encodings: [Int: Encoding] = [:]
    private var best: Int?
    /// Encoding whose frames are output.
    private var current: Int?
    private var timeline = CaptureTimeline()
    private var lastSample: Instant?
    private var gap: (start: Instant, reason: GapReason)?
    private var frames: [Frame] = []

    package init(kind: MediaKind) { self.kind = kind }

    /// Adds a packet; appends the samples and gaps that follow from it.
    ///
    /// Packets of encodings other than the current and the best one are ignored.
    package mutating func receive(
        _ packet: TapPacket,
        at now: Instant,
        into events: inout [TrackEvent]
    ) {
        best = packet.best ?? best
        guard packet.position == current || packet.position == best ?? packet.position else {
            encodings[packet.position] = nil
            return
        }
        if encodings[packet.position]?.epoch != packet.epoch {
            encodings[packet.position] = Encoding(epoch: packet.epoch)
        }
        encodings[packet.position]?.buffer.insert(packet)
        drain(packet.position, at: now, into: &events)
    }

    /// Abandons gaps that have been waited for long enough.
    package mutating func expire(at now: Instant, into events: inout [TrackEvent]) {
        for position in encodings.keys.sorted() { drain(position, at: now, into: &events) }
    }

    /// Handles a closed gate: discards buffered packets, so that no muted media is output.
    package mutating func mute(at now: Instant) {
        encodings = [:]
        // A sample's time may be ahead of now by the error of its clock.
        if let lastSample { gap = (max(now, lastSample), .muted) }
    }

    /// Resumes with the next keyframe, as frames after an unusable one cannot be decoded.
    package mutating func restart() {
        guard let current else { return }
        encodings[current]?.assembler.forget()
    }

    /// Encoding that needs a keyframe; `nil` if none.
    package var neededKeyframe: Int? {
        guard kind == .video, !encodings.isEmpty else { return nil }
        let wanted = best ?? 0
        guard current == wanted, let encoding = encodings[wanted] else { return wanted }
        return encoding.assembler.awaitsKeyframe ? wanted : nil
    }

    private mutating func drain(
        _ position: Int,
        at now: Instant,
        into events: inout [TrackEvent]
    ) {
        while let output = encodings[position]?.buffer.next(at: now) {
            if output.followsLoss, position == current { noteLoss() }
            encodings[position]?.assembler.take(output, into: &frames)
            for frame in frames { take(frame, of: position, into: &events) }
            frames.removeAll(keepingCapacity: true)
        }
    }

    private mutating func noteLoss() {
        guard gap == nil, let lastSample else { return }
        gap = (lastSample, .lost)
    }

    private mutating func take(
        _ frame: Frame,
        of position: Int,
        into events: inout [TrackEvent]
    ) {
        if position != current {
            // The first encoding, or a better one, begins at a keyframe.
            guard frame.isKeyframe, position == best ?? position else { return }
            if let current { encodings[current] = nil }
            current = position
        }
        guard let instant = timeline.instant(of: frame.packet) else { return restart() }
        if let gap {
            events.append(.gap(from: min(gap.start, instant), to: instant, reason: gap.reason))
            self.gap = nil
        }
        lastSample = instant
        events.append(
            .sample(
                TrackEvent.Sample(
                    bytes: frame.bytes,
                    isKeyframe: frame.isKeyframe,
                    format: frame.format,
                    instant: instant
                )
            )
        )
    }
}
