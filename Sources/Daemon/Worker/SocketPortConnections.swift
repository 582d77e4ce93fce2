import RTP
import SFU
import Sockets
import WorkerInterface

/// TCP connections of a worker.
extension WorkerLoop {
    /// Accepts connections on a ready listener, or reads a ready connection.
    mutating func serve(
        _ subject: TCPConnections.Subject,
        _ found: Poller.Readiness,
        _ rounds: Int,
        through frames: inout RFC4571Deframer,
        at now: Instant
    ) {
        switch subject {
        case .listener(let index): streams.accept(index, with: poller, at: now)
        case .connection(let number):
            if found.writable { streams.noteWritable(number, with: poller, at: now) }
            guard found.readable || found.hungUp else { return }
            for _ in 0..<rounds {
                guard receive(stream: number, through: &frames, at: now) else { return }
            }
        }
    }

    /// Reads once from a connection; returns whether there may be more.
    private mutating func receive(
        stream number: UInt16,
        through frames: inout RFC4571Deframer,
        at now: Instant
    ) -> Bool {
        guard let path = streams.read(number, into: &frames) else { return false }
        while let frame = streams.nextFrame(of: number, in: &frames, at: now) {
            if taken >= Core.batchCapacity { flush(at: now) }
            if output.free < Core.replyCapacity { send(at: now) }
            taken += 1
            let before = output.count
            let isUnchecked = streams.isUnchecked(number)
            core.receive(frames[frame], on: path, at: now, into: &output)
            guard isUnchecked else { continue }
            streams.noteValidation(
                number,
                isValidated: core.isValidated(path),
                isAnswered: output.count > before
            )
        }
        return frames.isFull
    }

    /// Closes connections that were idle too long or whose peer has left; tells the core of lost
    /// paths.
    mutating func expireStreams(at now: Instant) {
        streams.expireQueues(at: now)
        if streams.isDue(at: now) {
            streams.expire(at: now)
            for place in 0..<streams.places {
                guard let path = streams.validatedPath(at: place), !core.isValidated(path) else {
                    continue
                }
                streams.end(path.local, .released)
            }
        }
        while let path = streams.takeEnded() { core.lose(path) }
    }
}
