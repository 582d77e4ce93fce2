import RTP
import WorkerInterface

/// Forwarding decision for one packet at one slot.
enum ForwardDecision {
    case forward(RTPRewriter.SequenceSpan, index: Int64)
    /// The receiver already sees a gap at its number: an empty packet takes that number.
    case fill(RTPRewriter.SequenceSpan, index: Int64)
    case drop(DropReason)
}

extension Slot {
    /// Returns the packet index in the common case, or `nil` if `admit` has to decide.
    ///
    /// The common case is a packet of the current span and layers that directly follows the newest
    /// one.
    @inline(__always)
    func nextIndex(of info: borrowing PacketInfo) -> Int64? {
        guard case .flowing(info.encoding) = source,
            rewriter.current.point == point, info.points.contains(point)
        else { return nil }
        return rewriter.nextIndex(of: info)
    }

    /// Decides about one packet of the slot's publication.
    ///
    /// `wanted` is the encoding that a waiting video slot starts with, if any; `bridge` is the
    /// highest temporal layer of the old encoding that is forwarded during a switch.
    mutating func admit(
        _ info: borrowing PacketInfo,
        wanted: EncodingIndex?,
        bridge: UInt8,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        let encoding = info.encoding
        switch source {
        case .idle:
            return .drop(.noSubscriber)
        case .waiting:
            guard mayBegin(with: info, after: earlier), encoding == wanted || kind.isAudio
            else { return late(info, otherwise: .awaitingKeyframe, after: &earlier) }
            source = .flowing(encoding)
            return begin(info, at: point, after: &earlier)
        case .flowing(encoding):
            return follow(info, to: point, after: &earlier)
        case .switching(from: encoding, to: _):
            let sent = rewriter.current.point
            let kept = LayerPoint(spatial: sent.spatial, temporal: min(sent.temporal, bridge))
            return follow(info, to: kept, after: &earlier)
        case .switching(from: _, to: encoding) where mayBegin(with: info, after: earlier):
            source = .flowing(encoding)
            return begin(info, at: point, after: &earlier)
        case .flowing, .switching:
            return late(info, otherwise: .layerNotSelected, after: &earlier)
        }
    }

    /// Leaves a packet out of the stream without a gap in its sequence numbers.
    ///
    /// Returns `.fill` if a later number is in use already: an empty packet then takes the number.
    mutating func omit(
        _ info: borrowing PacketInfo,
        because reason: DropReason,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        guard rewriter.hasStarted, !rewriter.skip(info, after: &earlier) else {
            return .drop(reason)
        }
        switch source {
        case .idle, .waiting:
            return .drop(reason)
        case .flowing, .switching:
            guard let (span, index) = rewriter.place(info, after: earlier),
                rewriter.isUnsent(index, after: earlier)
            else { return .drop(reason) }
            return .fill(span, index: index)
        }
    }

    private mutating func follow(
        _ info: borrowing PacketInfo,
        to point: LayerPoint,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        guard rewriter.current.matches(info) else {
            // The sender restarted its numbering. Losses before that leave no gap to NACK, and
            // pictures that depend on them would be broken, so video waits for a keyframe.
            let flags = info.flags
            guard kind.isAudio || flags.contains(.keyframeStart) else {
                return .drop(.awaitingKeyframe)
            }
            return begin(info, at: point, after: &earlier)
        }
        if rewriter.leavesTooLargeGap(before: info, after: earlier) {
            // As after a restart, but no keyframe has been requested yet.
            if kind.isVideo, !info.flags.contains(.keyframeStart) {
                source = .waiting
                return .drop(.awaitingKeyframe)
            }
            return begin(info, at: point, after: &earlier)
        }
        if rewriter.current.point != point { turn(info, to: point, after: &earlier) }
        return place(info, otherwise: .tooOld, after: &earlier)
    }

    /// Switches to other layers of the same encoding, if this packet allows it.
    ///
    /// Switching down needs the packet right after the newest one, at the start of a picture:
    /// missing packets of the previous picture must still find the layers it was started with.
    /// Switching up needs the first frame of a picture: earlier packets have been left out, or
    /// would be if they came late.
    private mutating func turn(
        _ info: borrowing PacketInfo,
        to wanted: LayerPoint,
        after earlier: inout RTPRewriter.PreviousSpans
    ) {
        let span = rewriter.current
        let index = info.number + span.offset
        guard index > rewriter.highest, index >= span.first else { return }
        let isNext = index == rewriter.highest + 1
        // Of nested layers the lowest comes first.
        let isLowest = LayerPoint(index: Int(info.layer)).spatial == 0
        let isAlone = !info.flags.contains(.nestsLayers) && isNext
        let isOtherPicture = info.timestamp &+ span.timestampOffset != rewriter.lastTimestamp
        let next = span.point.next(
            towards: wanted,
            at: info,
            mayFall: isNext && isOtherPicture,
            mayRise: isLowest || isAlone
        )
        guard next != span.point else { return }
        if next.spatial != span.point.spatial { isLayerNoted = false }
        rewriter.turn(to: next, from: index, after: &earlier)
    }

    /// Gives a packet the number that its span assigns, unless that number is used.
    private mutating func place(
        _ info: borrowing PacketInfo,
        otherwise reason: DropReason,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        guard let (span, index) = rewriter.place(info, after: earlier) else {
            return .drop(reason)
        }
        guard rewriter.isUnsent(index, after: earlier) else { return .drop(.duplicate) }
        guard info.points.contains(span.point) else {
            return omit(info, because: .layerNotSelected, after: &earlier)
        }
        return .forward(span, index: index)
    }

    /// Whether a packet can be decoded on its own and starts a picture that was not sent yet.
    private func mayBegin(
        with info: borrowing PacketInfo,
        after earlier: borrowing RTPRewriter.PreviousSpans
    ) -> Bool {
        let flags = info.flags
        guard kind.isAudio || flags.contains(.keyframeStart) else { return false }
        return !isOver(info, after: earlier)
    }

    /// Whether a packet's index in a known span is at or below the newest one.
    private func isOver(
        _ info: borrowing PacketInfo,
        after earlier: borrowing RTPRewriter.PreviousSpans
    ) -> Bool {
        guard rewriter.hasStarted, let (_, index) = rewriter.place(info, after: earlier)
        else { return false }
        return index <= rewriter.highest
    }

    /// Places a late packet of an ended span, where it still fills a gap.
    private mutating func late(
        _ info: borrowing PacketInfo,
        otherwise reason: DropReason,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        guard isOver(info, after: earlier) else { return .drop(reason) }
        return place(info, otherwise: reason, after: &earlier)
    }

    private mutating func begin(
        _ info: borrowing PacketInfo,
        at point: LayerPoint,
        after earlier: inout RTPRewriter.PreviousSpans
    ) -> ForwardDecision {
        let current = rewriter.current
        let exact =
            current.matches(info) ? info.timestamp &+ current.timestampOffset : nil as UInt32?
        isLayerNoted = false
        rewriter.begin(
            with: info,
            clockRate: kind.isAudio ? 48_000 : 90_000,
            timestamp: exact,
            point: point,
            after: &earlier
        )
        return place(info, otherwise: .tooOld, after: &earlier)
    }
}

extension Forwarder {
    /// Decides about a packet that does not simply follow the newest one.
    mutating func decide(
        _ place: PacketPlace,
        at slotCursor: inout SlotCursor,
        _ receiver: borrowing Receiver
    ) -> ForwardDecision {
        let slot = slotCursor.index
        let wasWaiting = slotCursor.slot.isWaiting
        let decision = slotCursor.slot.admit(
            receiver.pool[place],
            wanted: slotRecords[slot].target?.encoding,
            bridge: slotRecords[slot].bridge,
            after: &slotRecords[slot].earlier
        )
        if slotCursor.slot.isWaiting, !wasWaiting { hasBroken = true }
        return decision
    }
}

extension LayerPoint {
    /// Returns the layers nearest to `wanted` that can be reached at this packet.
    ///
    /// Temporal layers go down at once. Spatial layers go down at once if they are nested, as the
    /// lower ones have been forwarded too. Temporal layers go up where the frame and all that
    /// follow can be decoded. Any other change of spatial layers needs a keyframe.
    func next(
        towards wanted: LayerPoint,
        at info: borrowing PacketInfo,
        mayFall: Bool,
        mayRise: Bool
    ) -> LayerPoint {
        let flags = info.flags
        if flags.contains(.keyframeStart) { return wanted }
        var point = self
        if mayFall {
            point = LayerPoint(spatial: spatial, temporal: min(temporal, wanted.temporal))
        }
        if mayFall, wanted.spatial < spatial, flags.contains(.nestsLayers) {
            point = LayerPoint(spatial: wanted.spatial, temporal: point.temporal)
        }
        guard mayRise, wanted.temporal > point.temporal, info.bases.contains(point) else {
            return point
        }
        var temporal = wanted.temporal
        while temporal > point.temporal {
            let higher = LayerPoint(spatial: point.spatial, temporal: temporal)
            if info.switches.contains(higher) { return higher }
            temporal -= 1
        }
        return point
    }
}
