internal import RTP

/// What publishers are asked to send: no more than anybody here watches, or could.
extension Core {
    /// How long nobody must have watched an encoding before its publisher is told.
    private static let unwantedMilliseconds: Int64 = 2_000
    /// How long a publisher's video may stay away before its viewers are told.
    private static let interruptionMilliseconds: Int64 = 3_000

    /// Tells the control plane when other encodings are wanted than it knows of.
    ///
    /// More at once, for a viewer waits; fewer only when that has lasted. Returns whether it is
    /// to be looked at again.
    mutating func reviewWanted(of publication: Int, at now: Instant) -> Bool {
        guard publications[publication].kind == .video else { return false }
        let mask = wantedEncodings(of: publication)
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
        publications[publication].wanted = mask
        let id = publications.handle(at: publication)
        emit(.layersWanted(id, home: publications[publication].home, mask))
        return false
    }

    /// A bit for each encoding that a viewer has or could have if it were sent.
    private func wantedEncodings(of publication: Int) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            guard slots[slot].isOpen else { continue }
            // What a pressed worker leaves out for a while is no less wanted.
            if let whole = slotRecords[slot].share.value.whole {
                mask |= bit(of: whole.target.encoding)
            }
            for position in 0..<publications[publication].encodings.count {
                let encoding = publications[publication].encodings[position]
                if !encodings[Int(encoding)].isLive, wouldTake(encoding, slot) {
                    mask |= bit(of: encoding)
                }
            }
        }
        return mask
    }

    private func bit(of encoding: Int32) -> UInt8 {
        1 << UInt8(encodings[Int(encoding)].position & 7)
    }

    /// Whether a viewer would turn to an encoding that is not sent, if it were as it was last.
    ///
    /// Of what was never seen nobody knows, so it is worth a try.
    private func wouldTake(_ encoding: Int32, _ slot: Int) -> Bool {
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
        let present = slotRecords[slot].share.value.whole?.bitrate ?? 0
        let spare =
            Double(estimate) * Allocation.riseShare - Double(transports[transport].allocated)
        return Double(last.bitrate - present) <= spare
    }

    /// Tells viewers when a publisher's video stays away, and when it is back.
    ///
    /// Returns whether it is to be looked at again.
    mutating func reviewInterruption(of publication: Int, isLive: Bool, at now: Instant) -> Bool {
        if isLive { publications[publication].lastLive = now }
        guard let last = publications[publication].lastLive else { return false }
        let isWatched = publications[publication].wanted != 0
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
