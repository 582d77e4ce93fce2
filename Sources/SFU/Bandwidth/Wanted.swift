import RTP
import WorkerInterface

/// What publishers are asked to send: no more than anybody here watches, or could.
extension Core {
    /// How long nobody must have watched an encoding before its publisher is told: who left it
    /// may be back soon, and what was switched off takes seconds to be what it was.
    private static let unwantedMilliseconds: Int64 = 2_500
    /// How long all are wanted that a new viewer might have to fall back to.
    private static let beginningMilliseconds: Int64 = 2_000
    /// How long the lowest encoding may pause: nothing else could take its place where there is no
    /// room for more.
    private static let pauseMilliseconds: Int64 = 1_500
    /// How long a publisher may take to bring back what is asked for.
    private static let wakingMilliseconds: Int64 = 3_000
    /// How long a publisher's video may stay away before its viewers are told.
    private static let interruptionMilliseconds: Int64 = 3_000

    /// Tells the control plane when other encodings are wanted than it knows of.
    ///
    /// More at once, for a viewer waits; fewer only when that has lasted. Returns whether it is
    /// to be looked at again.
    mutating func reviewWanted(of publication: Int, at now: Instant) -> Bool {
        guard publications[publication].kind == .video else { return false }
        let mask = wantedEncodings(of: publication, at: now)
        let told = publications[publication].wanted
        if mask == told {
            publications[publication].unwantedSince = nil
            return false
        }
        if mask & ~told == 0 {
            let since = publications[publication].unwantedSince ?? now
            publications[publication].unwantedSince = since
            guard now.milliseconds(since: since) >= Self.unwantedMilliseconds else { return true }
        }
        publications[publication].unwantedSince = nil
        noteAsked(mask & ~told, of: publication, at: now)
        publications[publication].wanted = mask
        let id = publications.handle(at: publication)
        emit(.layersWanted(id, home: publications[publication].home, mask))
        return false
    }

    private mutating func noteAsked(_ mask: UInt8, of publication: Int, at now: Instant) {
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            guard mask & bit(of: encoding) != 0, !encodings[Int(encoding)].isLive else { continue }
            encodings[Int(encoding)].askedFor = now
        }
    }

    /// A bit for each encoding that a viewer has or could have if it were sent.
    private func wantedEncodings(of publication: Int, at now: Instant) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            guard slots[slot].isOpen else { continue }
            // What a pressed worker leaves out for a while is no less wanted.
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

    /// Where it turns out that a path does not carry what a viewer was sent at once, seconds
    /// would pass until what is lower has come.
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

    /// Whether a viewer would turn to an encoding that is not sent, if it were as it was last.
    ///
    /// Of what was never seen nobody knows, so it is worth a try.
    private func wouldTake(_ encoding: Int32, _ slot: Int, at now: Instant) -> Bool {
        guard let last = encodings[Int(encoding)].lastOption else { return true }
        guard slotRecords[slot].preference.admits(last), slotRecords[slot].roleCap.admits(last)
        else {
            // It may be the least that there is.
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
        let more = Self.onThePath(last.risingBitrate) - Self.onThePath(present)
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

    /// Whether an encoding that is not live is so because nobody wanted it.
    ///
    /// It is offered as it was. Where it does not come when asked for, its publisher has given it
    /// up.
    func rests(_ position: Int, of publication: Int, at now: Instant) -> Bool {
        let encoding = publications[publication].encodings[position]
        guard encodings[Int(encoding)].lastOption != nil else { return false }
        guard publications[publication].wanted & bit(of: encoding) != 0 else { return true }
        if isLowest(encoding, of: publication),
            encodings[Int(encoding)].rate.isActive(within: Self.pauseMilliseconds, at: now)
        {
            return true
        }
        guard let asked = encodings[Int(encoding)].askedFor else { return false }
        return now.milliseconds(since: asked) < Self.wakingMilliseconds
    }

    /// Tells viewers when a publisher's video stays away, and when it is back.
    ///
    /// Returns whether it is to be looked at again.
    mutating func reviewInterruption(of publication: Int, isLive: Bool, at now: Instant) -> Bool {
        let isWatched = publications[publication].wanted != 0
        // What nobody asks for does not stay away.
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
