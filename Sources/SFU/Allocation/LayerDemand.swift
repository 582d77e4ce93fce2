import RTP
import WorkerInterface

/// Layer demand: the encodings that publishers are asked to send.
///
/// No more is requested than some subscriber on this worker watches or could watch.
extension LayerAllocator {
    /// Time for which an encoding must be unused before its publisher is told to pause it.
    ///
    /// A subscriber may return soon, and a paused encoding takes seconds to regain its quality.
    private static let unwantedMilliseconds: Int64 = 2_500
    /// Time for which all lower encodings are requested as a fallback for a new subscriber.
    private static let beginningMilliseconds: Int64 = 2_000
    /// Time without video from a publisher before its subscribers are told.
    private static let interruptionMilliseconds: Int64 = 3_000

    /// Reports a change of the requested encodings to the control plane.
    ///
    /// An addition is reported at once, as a subscriber waits; a removal only when it has lasted.
    /// Returns whether another review is needed.
    mutating func reviewDemand(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        guard receiver.publications[publication].kind == .video else { return false }
        let mask = demandedEncodings(of: publication, at: now, transports, receiver, forwarder)
        let told = receiver.publications[publication].wanted
        if mask == told {
            receiver.publications[publication].demandReducedSince = nil
            return false
        }
        if mask & ~told == 0 {
            let since = receiver.publications[publication].demandReducedSince ?? now
            receiver.publications[publication].demandReducedSince = since
            guard now.milliseconds(since: since) >= Self.unwantedMilliseconds else { return true }
        }
        receiver.publications[publication].demandReducedSince = nil
        noteRequests(mask & ~told, of: publication, at: now, &receiver)
        receiver.publications[publication].wanted = mask
        let id = receiver.publications.handle(at: publication)
        events.append(.layersWanted(id, home: receiver.publications[publication].home, mask))
        return false
    }

    private mutating func noteRequests(
        _ mask: UInt8,
        of publication: PublicationIndex,
        at now: Instant,
        _ receiver: inout Receiver
    ) {
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            guard mask & receiver.bit(of: encoding) != 0, !receiver.encodings[encoding].isLive
            else { continue }
            receiver.encodings[encoding].resumeRequestedAt = now
        }
    }

    /// Returns a bit for each encoding that a subscriber has, or could have if it were sent.
    private func demandedEncodings(
        of publication: PublicationIndex,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            guard forwarder.slots[slot].isOpen else { continue }
            // A layer cut by an overloaded worker is still in demand.
            if let whole = shares[slot].value.whole {
                mask |= receiver.bit(of: whole.target.encoding)
                let begun = shares[slot].value.begun
                if let begun, now.milliseconds(since: begun) < Self.beginningMilliseconds {
                    mask |= encodingsBelow(whole, of: publication, receiver)
                }
            }
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                let isTaken =
                    receiver.encodings[encoding].isOffered
                    ? isAwaited(encoding, of: publication, receiver)
                    : wouldTake(encoding, slot, at: now, transports, receiver, forwarder)
                if isTaken { mask |= receiver.bit(of: encoding) }
            }
        }
        return mask
    }

    /// Returns the encodings below an allotted layer.
    ///
    /// They are the fallback if the path does not carry the layer, and would take seconds to
    /// resume.
    private func encodingsBelow(
        _ given: LayerOption,
        of publication: PublicationIndex,
        _ receiver: borrowing Receiver
    ) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<receiver.publications[publication].options.count {
            let option = receiver.publications[publication].options[index]
            if LayerOption.isLower(option, than: given) {
                mask |= receiver.bit(of: option.target.encoding)
            }
        }
        return mask
    }

    /// Whether an encoding is above the cap of the publisher's role and yet in demand.
    ///
    /// If all are above it, only packets can show that the publisher has come within it.
    private func isAwaited(
        _ encoding: EncodingIndex,
        of publication: PublicationIndex,
        _ receiver: borrowing Receiver
    ) -> Bool {
        receiver.publications[publication].aboveCap == .all
            && receiver.isLowest(encoding, of: publication)
    }

    /// Whether a subscriber would switch to a paused encoding, if it were as it was last.
    ///
    /// An encoding that was never received is unknown, so it is worth a try.
    private func wouldTake(
        _ encoding: EncodingIndex,
        _ slot: SlotIndex,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        guard let last = receiver.encodings[encoding].lastOption else { return true }
        let publication = receiver.encodings[encoding].publication
        guard !receiver.isAboveCap(encoding, of: publication, at: now) else {
            return isAwaited(encoding, of: publication, receiver)
        }
        guard forwarder.slotRecords[slot].preference.admits(last),
            forwarder.slotRecords[slot].roleCap.admits(last)
        else {
            // It may be the lowest layer available.
            return shares[slot].value.whole == nil
        }
        guard LayerOption.isLower(shares[slot].value.whole, than: last) else {
            return false
        }
        let transport = forwarder.slots[slot].transport
        guard let estimate = transports[transport].allocatedEstimate else { return true }
        guard shares[slot].value.mayRise(to: last, within: estimate, at: now) else {
            return false
        }
        let present = shares[slot].value.whole?.likelyBitrate ?? 0
        let spare =
            Double(estimate) * Allocation.riseShare - Double(transports[transport].allocated)
        let more = Self.withOverhead(last.peakBitrate) - Self.withOverhead(present)
        return Double(more) <= spare
    }

    /// Updates subscribers when a publisher's video stops arriving, and when it returns.
    ///
    /// Returns whether another review is needed.
    mutating func reviewInterruption(
        of publication: PublicationIndex,
        isLive: Bool,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) -> Bool {
        let isWatched = receiver.publications[publication].wanted != 0
        // Video that is not requested does not count as interrupted.
        let isLast = isLive || !isWatched && receiver.publications[publication].lastLive != nil
        if isLast { receiver.publications[publication].lastLive = now }
        guard let last = receiver.publications[publication].lastLive else { return false }
        let silence = now.milliseconds(since: last)
        let isInterrupted =
            receiver.publications[publication].isOpen && isWatched
            && silence >= Self.interruptionMilliseconds
        if isInterrupted != receiver.publications[publication].isInterrupted {
            receiver.publications[publication].isInterrupted = isInterrupted
            for index in 0..<receiver.publications[publication].subscribers.count {
                let slot = receiver.publications[publication].subscribers[index]
                if forwarder.slots[slot].isOpen {
                    chooseLayer(of: slot, at: now, &transports, &receiver, &forwarder)
                }
            }
        }
        return !isLive && !isInterrupted && isWatched
    }
}
