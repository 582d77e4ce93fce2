package import RTP
package import SFU
import WorkerInterface

// What goes to connections.
extension Streams {
    /// Sends, queues or drops what of `batch` goes to connections; the batch stays as it is.
    package mutating func send(
        _ batch: borrowing Batch,
        with poller: borrowing Poller,
        at now: Instant
    ) {
        var index = 0
        while index < batch.count {
            let path = batch.path(at: index)
            var end = index + 1
            while end < batch.count, batch.path(at: end) == path { end += 1 }
            if path.isConnection { send(batch, index..<end, on: path, poller, at: now) }
            index = end
        }
    }

    private mutating func send(
        _ batch: borrowing Batch,
        _ range: Range<Int>,
        on path: Path,
        _ poller: borrowing Poller,
        at now: Instant
    ) {
        let number = path.local
        guard table.contains(number), table[number].path == path else {
            errors &+= UInt64(range.count)
            return
        }
        let wasWaiting = table[number].lane.isWaiting
        let descriptor = table[number].descriptor
        table[number].lane.send(batch, range, on: descriptor, through: &output, at: now)
        let isWaiting = table[number].lane.isWaiting
        if !isWaiting { stamp.note(batch.content(at: range.lowerBound)) }
        if isWaiting, !wasWaiting { waiting.append(number) }
        follow(number, poller)
    }

    /// Says that a connection takes something again; `resume` then sends what waits.
    package mutating func noteWritable(
        _ number: UInt16,
        with poller: borrowing Poller,
        at now: Instant
    ) {
        guard table.contains(number) else { return }
        let descriptor = table[number].descriptor
        table[number].lane.drain(through: &staging, on: descriptor, through: &output, at: now)
        if !table[number].lane.isWaiting { waiting.removeAll { $0 == number } }
        follow(number, poller)
    }

    /// Drops what has waited for too long.
    package mutating func expireQueues(at now: Instant) {
        guard !waiting.isEmpty else { return }
        for number in waiting where table.contains(number) { table[number].lane.expire(at: now) }
        forgetIdle()
    }

    /// Keeps in `waiting` only those for which something waits.
    private mutating func forgetIdle() {
        var kept: [UInt16] = []
        for number in waiting where table.contains(number) && table[number].lane.isWaiting {
            kept.append(number)
        }
        waiting = kept
    }

    /// Drops what waits of streams that nobody has a right to any more.
    package mutating func withdraw(_ streams: [SSRC]) {
        guard !streams.isEmpty, !waiting.isEmpty else { return }
        for number in waiting where table.contains(number) {
            table[number].lane.withdraw(streams)
        }
        forgetIdle()
    }

    /// Ends a connection that has failed, and has the poller tell of room in one that has none.
    private mutating func follow(_ number: UInt16, _ poller: borrowing Poller) {
        guard table[number].lane.failure == nil else { return end(number, .failed) }
        let isBlocked = table[number].lane.isBlocked
        guard isBlocked != table[number].isWatched else { return }
        table[number].isWatched = isBlocked
        poller.change(
            table[number].descriptor,
            to: isBlocked ? [.readable, .writable] : .readable,
            token: Subject.connection(number).token
        )
    }
}
