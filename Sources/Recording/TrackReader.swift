package import RTP
package import SFU
package import WorkerInterface

/// What a track's packets come to.
package enum TrackEvent {
    case sample(Sample)
    /// For a time there are no samples; told with the first one after it.
    case gap(from: Instant, to: Instant, reason: GapReason)

    /// One frame and when it was captured.
    package struct Sample {
        package var bytes: [UInt8]
        package var isKeyframe: Bool
        package var format: FrameFormat?
        package var instant: Instant
    }
}

package enum GapReason: String, Sendable { case muted, lost }

/// Reads one publication: packets in, samples and gaps out.
///
/// Of a simulcast it follows the encoding that the home holds for the best, and changes over at
/// a keyframe.
package struct TrackReader {
    private struct Encoding {
        var epoch: UInt32
        var buffer = ReorderBuffer()
        var assembler = FrameAssembler()
    }

    private let kind: MediaKind
    private var encodings: [Int: Encoding] = [:]
    private var best: Int?
    /// The encoding whose frames go out.
    private var current: Int?
    private var timeline = CaptureTimeline()
    private var lastSample: Instant?
    private var gap: (start: Instant, reason: GapReason)?
    private var frames: [Frame] = []

    package init(kind: MediaKind) { self.kind = kind }

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

    /// Gives up what has been waited for long enough.
    package mutating func expire(at now: Instant, into events: inout [TrackEvent]) {
        for position in encodings.keys.sorted() { drain(position, at: now, into: &events) }
    }

    /// The gate has closed: what was held back is not to go further.
    package mutating func mute(at now: Instant) {
        encodings = [:]
        // A sample may be ahead of now by what its clock is off.
        if let lastSample { gap = (max(now, lastSample), .muted) }
    }

    /// Goes on with the next keyframe: what follows a frame that could not be used cannot be
    /// decoded either.
    package mutating func restart() {
        guard let current else { return }
        encodings[current]?.assembler.forget()
    }

    /// The encoding of which a keyframe is needed.
    package var wish: Int? {
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
            // A first one, or a better one that can be changed over to here.
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
