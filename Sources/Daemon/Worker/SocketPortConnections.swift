import RTP
import SFU
import Sockets
import WorkerInterface

/// TCP connections of a worker.
extension SocketPort {
    /// Accepts connections on a ready listener, or notes what a connection is ready for.
    mutating func takeReady(
        _ subject: TCPConnections.Subject,
        _ found: Poller.Readiness,
        at now: Instant
    ) -> ReadySource {
        switch subject {
        case .listener(let index):
            streams.accept(index, with: poller, at: now)
            return .served
        case .connection(let number):
            if found.writable { streams.noteWritable(number, with: poller, at: now) }
            return found.readable || found.hungUp ? .connection(number) : .served
        }
    }

    mutating func read(connection number: UInt16) -> Path? {
        streams.read(number, into: &frames)
    }

    mutating func nextFrame(of number: UInt16, at now: Instant) -> Range<Int>? {
        streams.nextFrame(of: number, in: &frames, at: now)
    }

    @_lifetime(borrow self)
    func frame(_ position: Range<Int>) -> Span<UInt8> { frames[position] }

    var mayHaveMoreFrames: Bool { frames.isFull }

    func isUnchecked(_ number: UInt16) -> Bool { streams.isUnchecked(number) }

    mutating func noteValidation(_ number: UInt16, isValidated: Bool, isAnswered: Bool) {
        streams.noteValidation(number, isValidated: isValidated, isAnswered: isAnswered)
    }

    mutating func expireConnections(of core: inout Core, at now: Instant) {
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
        while let path = streams.takeEnded() { core.lose(path, at: now) }
    }
}
