import RTP
import SFU
import WorkerInterface

/// Datagrams that wait: those that came while a batch was sent, and handshakes, so that many of
/// these at once do not delay media.
///
/// A step of a handshake costs hundreds of times as much as forwarding a packet: it makes keys,
/// signs, and verifies. So the DTLS records of known peers wait in order until the batch has been
/// sent, and a round processes them for a limited time. Strangers' records cost next to nothing,
/// and must not take the room.
extension WorkerRound {
    /// Passes deferred datagrams to the core, before any that arrived later.
    mutating func receiveDeferred(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        guard deferred.count > 0 else { return }
        stalls.received(deferred.count, first: deferred.arrival(0), at: now) {
            port.wallClock()
        }
        for index in 0..<deferred.count {
            if putAside(index) { continue }
            if output.free < Core.replyCapacity { port.send(&output, at: now) }
            if case .rtp = Datagram(deferred[index]) { delay.noteArrival(deferred.arrival(index)) }
            let staleMedia = stalls.staleMedia(deferred.arrival(index))
            deferred.pass(index, to: &core, at: now, staleMedia: staleMedia, into: &output)
        }
        taken += deferred.count
        deferred.removeAll()
    }

    /// Returns whether a deferred datagram was put aside, as a DTLS record of a known peer.
    private mutating func putAside(_ index: Int) -> Bool {
        guard case .dtls = Datagram(deferred[index]) else { return false }
        return core.isValidated(deferred.path(index)) && deferred.copy(index, to: &handshakes)
    }

    /// Processes records that were put aside, until the turn is over; the others stay.
    mutating func processHandshakes(
        at now: Instant,
        through port: inout some WorkerPort & ~Copyable
    ) {
        guard handshakes.count > 0 else { return }
        let start = port.monotonic()
        var done = 0
        repeat {
            if output.free < Core.replyCapacity { port.send(&output, at: now) }
            handshakes.pass(done, to: &core, at: now, staleMedia: .nothing, into: &output)
            done += 1
        } while done < handshakes.count
            && port.monotonic().nanoseconds(since: start) < turnNanoseconds
        handshakes.removeFirst(done)
        port.send(&output, at: now)
        if handshakes.count > 0, rush.begins(at: now) { port.hurry(true) }
    }
}

/// Time in which a worker has more handshakes to process than one turn takes.
///
/// It then has several times as much to do, and its media would wait whenever it has used up its
/// share of a busy processor. So it asks for a larger share meanwhile: of 500 who join at once on
/// two busy cores, a running room notices less. With a larger share all the time it would wake up
/// between the packets of one frame, and these would leave in more and smaller batches.
struct HandshakeRush: Sendable {
    /// Time after the last unfinished turn after which it is over, in nanoseconds.
    static let idleNanoseconds: Int64 = 20_000_000

    private var end: Instant?

    /// Notes handshakes that a turn left; returns whether a rush begins with them.
    mutating func begins(at now: Instant) -> Bool {
        defer { end = now.advanced(nanoseconds: Self.idleNanoseconds) }
        return end == nil
    }

    /// Returns whether the rush is over, once.
    mutating func hasEnded(at now: Instant) -> Bool {
        guard let end, now >= end else { return false }
        self.end = nil
        return true
    }
}
