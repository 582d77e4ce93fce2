import RTP
import SFU
import WorkerInterface

/// Turns of DTLS handshakes, so that many at once do not delay media.
///
/// A step of a handshake costs hundreds of times as much as forwarding a packet: it makes keys,
/// signs, and verifies. So all DTLS records wait in order until the batch has been sent, and a
/// round processes them for a limited time.
extension WorkerRound {
    /// Whether a datagram is a DTLS record of a known peer, to be put aside.
    ///
    /// Strangers' records cost next to nothing, and must not take the room.
    static func isHandshake(
        _ datagram: Span<UInt8>,
        on path: Path,
        _ core: borrowing Core
    ) -> Bool {
        guard case .dtls = Datagram(datagram) else { return false }
        return core.isValidated(path)
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
    }
}
