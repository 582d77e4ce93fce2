import RTP
import WorkerInterface

/// Liveness of transports, and their timers.
extension Transports {
    /// Records that an authenticated packet arrived, so the peer is alive.
    mutating func heard(from transport: TransportIndex, at now: Instant) {
        transports[transport].lastHeard = now
        if case .reconnecting = transports[transport].state, !transports[transport].lacksConsent {
            transports[transport].state = .connected
            note(.reconnected, of: transport)
        }
    }

    mutating func checkLiveness(
        of transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        let silence = now.milliseconds(since: transports[transport].lastHeard)
        if silence >= limits.timeoutMilliseconds {
            end(transport, because: .timeout, at: now, into: &output)
        } else if silence >= limits.livenessMilliseconds,
            case .connected = transports[transport].state
        {
            transports[transport].state = .reconnecting
            note(.reconnecting, of: transport)
        }
    }

    /// Excludes time when the process itself was stalled from the silence of the peers.
    ///
    /// The stall is counted from the first overdue timer or from the previous call, whichever is
    /// later: timers that are late only because there are many of them are not a stall.
    mutating func excludeStall(at now: Instant) {
        let last = lastExpiry ?? now
        lastExpiry = now
        guard let first = timers.first else { return }
        let stall = now.nanoseconds(since: max(first, last))
        if stall > Self.shortestStall { lastStall = (max(first, last), now) }
        guard stall > 1_000_000_000 else { return }
        for offset in 0..<transports.capacity {
            guard let index = transports.index(at: offset) else { continue }
            let heard = transports[index].lastHeard.advanced(nanoseconds: stall)
            transports[index].lastHeard = min(heard, now)
            transports[index].consent.extend(stall, at: now)
        }
    }

    /// Schedules the transport's next deadline, unless an earlier one is scheduled already.
    mutating func schedule(_ transport: TransportIndex, at now: Instant) {
        guard !transports[transport].hasEnded else { return }
        var next = transports[transport].livenessDeadline(limits)
        next = min(next, transports[transport].dtls?.deadline ?? next)
        // These timers are processed only with a path. Without one they would stay due forever.
        if transports[transport].canSend {
            next = min(next, transports[transport].feedbackDue ?? next)
            next = min(next, transports[transport].nackDue ?? next)
            next = min(next, transports[transport].keyframeDue ?? next)
            next = min(next, transports[transport].layersDue ?? next)
            next = min(next, transports[transport].allocationDue ?? next)
            next = min(next, transports[transport].bandwidth?.deadline(at: now) ?? next)
            next = min(next, transports[transport].reportDue ?? next)
        }
        next = min(next, transports[transport].freezeDue ?? next)
        next = min(next, transports[transport].speechDue ?? next)
        next = min(next, transports[transport].consentDue ?? next)
        if let scheduled = transports[transport].scheduled, scheduled <= next { return }
        transports[transport].scheduled = next
        timers.insert(transports[transport].id, at: next)
    }

    mutating func scheduleAllocation(of transport: TransportIndex, by due: Instant, at now: Instant)
    {
        if let own = transports[transport].allocationDue, own <= due { return }
        transports[transport].allocationDue = due
        schedule(transport, at: now)
    }

    /// Returns the time of the next RTCP reports.
    ///
    /// Times are rounded down to steps of 50 ms. Many transports then share one wakeup, and
    /// thousands of idle ones do not wake the worker thousands of times a second.
    static func nextReport(after now: Instant) -> Instant {
        let step: Int64 = 50_000_000
        let due = now.advanced(milliseconds: reportMilliseconds)
        return Instant(nanoseconds: due.nanoseconds / step * step)
    }
}

extension Optional<Instant> {
    func isDue(at now: Instant) -> Bool {
        guard let self else { return false }
        return self <= now
    }
}

extension Transport {
    /// Time of the next consent check of the current path, or of the consent's expiry (RFC 7675).
    var consentDue: Instant? { canSend && path?.isConnection == false ? consent.due : nil }

    /// Time when continued silence changes the state of the transport.
    func livenessDeadline(_ limits: CoreLimits) -> Instant {
        switch state {
        case .connected: lastHeard.advanced(milliseconds: limits.livenessMilliseconds)
        case .connecting, .reconnecting, .ended:
            lastHeard.advanced(milliseconds: limits.timeoutMilliseconds)
        }
    }
}
