import RTP
import WorkerInterface

/// Layer demand: the encodings that publishers are asked to send.
///
/// No more is requested than some subscriber on this worker watches or could watch.
extension Core {
    /// Time for which an encoding must be unused before its publisher is told to pause it.
    ///
    /// A subscriber may return soon, and a paused encoding takes seconds to regain its quality.
    private static let unwantedMilliseconds: Int64 = 2_500
    /// Time for which all lower encodings are requested as a fallback for a new subscriber.
    private static let beginningMilliseconds: Int64 = 2_000
    /// Time for which the lowest encoding may pause and still be on offer.
    ///
    /// Without it, nothing could be sent where bandwidth is too low for more.
    private static let pauseMilliseconds: Int64 = 1_500
    /// Time that a publisher may take to resume a requested encoding.
    private static let wakingMilliseconds: Int64 = 3_000
    /// Time without video from a publisher before its subscribers are told.
    private static let interruptionMilliseconds: Int64 = 3_000

    /// Reports a change of the requested encodings to the control plane.
    ///
    /// An addition is reported at once, as a subscriber waits; a removal only when it has lasted.
    /// Returns whether another review is needed.
    mutating func reviewDemand(of publication: Int, at now: Instant) -> Bool {
        guard publications[publication].kind == .video else { return false }
        let mask = demandedEncodings(of: publication, at: now)
        let told = publications[publication].wanted
        if mask == told {
            publications[publication].demandReducedSince = nil
            return false
        }
        if mask & ~told == 0 {
            let since = publications[publication].demandReducedSince ?? now
            publications[publication].demandReducedSince = since
            guard now.milliseconds(since: since) >= Self.unwantedMilliseconds else { return true }
        }
        publications[publication].demandReducedSince = nil
        noteRequests(mask & ~told, of: publication, at: now)
        publications[publication].wanted = mask
        let id = publications.handle(at: publication)
        emit(.layersWanted(id, home: publications[publication].home, mask))
        return false
    }

    private mutating func noteRequests(_ mask: UInt8, of publication: Int, at now: Instant) {
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            guard mask & bit(of: encoding) != 0, !encodings[Int(encoding)].isLive else { continue }
            encodings[Int(encoding)].resumeRequestedAt = now
        }
    }

    /// Returns a bit for each encoding that a subscriber has, or could have if it were sent.
    private func demandedEncodings(of publication: Int, at now: Instant) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            guard slots[slot].isOpen else { continue }
            // A layer cut by an overloaded worker is still in demand.
            if let whole = slotRecords[slot].share.value.whole {
                mask |= bit(of: whole.target.encoding)
                let begun = slotRecords[slot].share.value.begun
                if let begun, now.milliseconds(since: begun) < Self.beginningMilliseconds {
                    mask |= encodingsBelow(whole, of: publication)
                }
            }
            for position in 0..<publications[publication].encodings.count {
                let encoding = publications[publication].encodings[position]
                if !encodings[Int(encoding)].isOffered, wouldTake(encoding, slot, at: now) {
                    mask |= bit(of: encoding)
                }
            }
        }
        return mask
    }

    /// Returns the encodings below an allotted layer.
    ///
    /// They are the fallback if the path does not carry the layer, and would take seconds to
    /// resume.
    private func encodingsBelow(_ given: LayerOption, of publication: Int) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<publications[publication].options.count {
            let option = publications[publication].options[index]
            if LayerOption.isLower(option, than: given) { mask |= bit(of: option.target.encoding) }
        }
        return mask
    }

    private func bit(of encoding: Int32) -> UInt8 {
        1 << UInt8(encodings[Int(encoding)].position & 7)
    }

    /// Whether a subscriber would switch to a paused encoding, if it were as it was last.
    ///
    /// An encoding that was never received is unknown, so it is worth a try.
    private func wouldTake(_ encoding: Int32, _ slot: Int, at now: Instant) -> Bool {
        guard let last = encodings[Int(encoding)].lastOption else { return true }
        guard slotRecords[slot].preference.admits(last), slotRecords[slot].roleCap.admits(last)
        else {
            // It may be the lowest layer available.
            return slotRecords[slot].share.value.whole == nil
        }
        guard LayerOption.isLower(slotRecords[slot].share.value.whole, than: last) else {
            return false
        }
        let transport = slots[slot].transport
        guard let estimate = transports[transport].allocatedEstimate else { return true }
        guard slotRecords[slot].share.value.mayRise(to: last, within: estimate, at: now) else {
            return false
        }
        let present = slotRecords[slot].share.value.whole?.likelyBitrate ?? 0
        let spare =
            Double(estimate) * Allocation.riseShare - Double(transports[transport].allocated)
        let more = Self.withOverhead(last.peakBitrate) - Self.withOverhead(present)
        return Double(more) <= spare
    }

    private func isLowest(_ encoding: Int32, of publication: Int) -> Bool {
        for position in 0..<publications[publication].encodings.count {
            let other = publications[publication].encodings[position]
            guard let last = encodings[Int(other)].lastOption else { continue }
            if LayerOption.isLower(last, than: encodings[Int(encoding)].lastOption) { return false }
        }
        return true
    }

    /// Whether an inactive encoding is on offer as it was last, as it can resume.
    ///
    /// It can if it is not requested, was requested a short while ago, or is the lowest one and has
    /// paused only briefly. An encoding that does not resume when requested counts as given up by
    /// its publisher.
    func isResumable(_ position: Int, of publication: Int, at now: Instant) -> Bool {
        let encoding = publications[publication].encodings[position]
        guard encodings[Int(encoding)].lastOption != nil else { return false }
        guard publications[publication].wanted & bit(of: encoding) != 0 else { return true }
        if isLowest(encoding, of: publication),
            encodings[Int(encoding)].rate.isActive(within: Self.pauseMilliseconds, at: now)
        {
            return true
        }
        guard let asked = encodings[Int(encoding)].resumeRequestedAt else { return false }
        return now.milliseconds(since: asked) < Self.wakingMilliseconds
    }

    /// Updates subscribers when a publisher's video stops arriving, and when it returns.
    ///
    /// Returns whether another review is needed.
    mutating func reviewInterruption(of publication: Int, isLive: Bool, at now: Instant) -> Bool {
        let isWatched = publications[publication].wanted != 0
        // Video that is not requested does not count as interrupted.
        let isLast = isLive || !isWatched && publications[publication].lastLive != nil
        if isLast { publications[publication].lastLive = now }
        guard let last = publications[publication].lastLive else { return false }
        let silence = now.milliseconds(since: last)
        let isInterrupted =
            publications[publication].isOpen && isWatched
            && silence >= Self.interruptionMilliseconds
        if isInterrupted != publications[publication].isInterrupted {
            publications[publication].isInterrupted = isInterrupted
            for index in 0..<publications[publication].subscribers.count {
                let slot = Int(publications[publication].subscribers[index])
                if slots[slot].isOpen { chooseLayer(of: slot, at: now) }
            }
        }
        return !isLive && !isInterrupted && isWatched
    }
}
