package import RTP
package import SFU
import WorkerInterface

// Sending on connections.
extension TCPConnections {
    /// Sends, queues or drops the datagrams of `batch` for TCP connections, and leaves the batch as
    /// it is.
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
        let wasWaiting = table[number].sender.isWaiting
        let descriptor = table[number].descriptor
        table[number].sender.send(batch, range, on: descriptor, through: &output, at: now)
        let isWaiting = table[number].sender.isWaiting
        if !isWaiting { stamp.note(batch.content(at: range.lowerBound)) }
        if isWaiting, !wasWaiting { waiting.append(number) }
        follow(number, poller)
    }

    /// Handles a connection that is writable again, and sends its queue.
    package mutating func noteWritable(
        _ number: UInt16,
        with poller: borrowing Poller,
        at now: Instant
    ) {
        guard table.contains(number) else { return }
        let descriptor = table[number].descriptor
        table[number].sender.drain(through: &staging, on: descriptor, through: &output, at: now)
        if !table[number].sender.isWaiting { waiting.removeAll { $0 == number } }
        follow(number, poller)
    }

    /// Drops stale datagrams.
    package mutating func expireQueues(at now: Instant) {
        guard !waiting.isEmpty else { return }
        for number in waiting where table.contains(number) { table[number].sender.expire(at: now) }
        forgetIdle()
    }

    /// Removes connections without queued data from `waiting`.
    private mutating func forgetIdle() {
        var kept: [UInt16] = []
        for number in waiting where table.contains(number) && table[number].sender.isWaiting {
            kept.append(number)
        }
        waiting = kept
    }

    /// Drops the queued media of streams that nobody may receive any more.
    package mutating func withdraw(_ streams: [SSRC]) {
        guard !streams.isEmpty, !waiting.isEmpty else { return }
        for number in waiting where table.contains(number) {
            table[number].sender.withdraw(streams)
        }
        forgetIdle()
    }

    /// Ends a failed connection; otherwise watches for writability while it is blocked.
    private mutating func follow(_ number: UInt16, _ poller: borrowing Poller) {
        guard table[number].sender.failure == nil else { return end(number, .failed) }
        let isBlocked = table[number].sender.isBlocked
        guard isBlocked != table[number].isWatched else { return }
        table[number].isWatched = isBlocked
        poller.change(
            table[number].descriptor,
            to: isBlocked ? [.readable, .writable] : .readable,
            token: Subject.connection(number).token
        )
    }
}
