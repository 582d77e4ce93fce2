import RTP

/// Missed events of this node's rooms that may still be on their way over a link.
///
/// A link on which too much waits is cut, and whoever asked would ask for the same again. So
/// further questions wait until the answer to a ping tells that what was sent before has arrived.
struct ReplaysOnTheWay {
    /// Bytes that may be on the way when a question is answered, its own events included.
    var byteLimit = 32 << 20
    /// Bytes that the events of one question may have.
    var answerBytes = 8 << 20
    private var sent: [(bytes: Int, at: Instant)] = []
    private var bytes = 0

    /// Notes events that were sent.
    mutating func add(_ count: Int, at now: Instant) {
        guard count > 0 else { return }
        sent.append((count, now))
        bytes += count
    }

    /// Notes that all has arrived that was sent before `time`.
    mutating func confirm(before time: Instant) {
        let arrived = sent.prefix { $0.at < time }
        bytes -= arrived.reduce(0) { $0 + $1.bytes }
        sent.removeFirst(arrived.count)
    }

    /// Whether one more question can be answered, while so many others are.
    func hasRoom(besides underWay: Int) -> Bool {
        bytes + (underWay + 1) * answerBytes <= byteLimit
    }
}

// Questions of other nodes for missed events, so many at a time as their links carry.
extension Cluster {
    /// Lets another node's question for events wait if there is too much on the way to it; returns
    /// whether it waits.
    ///
    /// Events from now on are told meanwhile.
    mutating func waitsForLink(_ number: UInt64, _ call: PendingCall) -> Bool {
        guard let guest = guests[number], guest.interest != nil,
            case .peer(let node, _, _, _) = guest.caller, !hasRoomForReplay(to: node)
        else { return false }
        tellMeanwhile(call)
        guests[number]?.waiting = call
        return true
    }

    private func hasRoomForReplay(to node: NodeName) -> Bool {
        let underWay = guests.values.count { $0.asks(from: node) && $0.call != nil }
        return peers[node]?.replays.hasRoom(besides: underWay) ?? true
    }

    /// Notes what was sent of missed events, and goes on with the questions that wait for it.
    mutating func noteReplayed(_ replay: [ReplayedEvent], to node: NodeName) {
        peers[node]?.replays.add(replay.reduce(0) { $0 + $1.line.count }, at: lastActive)
        answerWaiting(of: node)
    }

    /// Takes the answer of a node to a ping of this one, with the time at which it was sent.
    mutating func noteArrived(before stamp: UInt64, at node: NodeName) {
        let time = Instant(nanoseconds: Int64(clamping: stamp))
        peers[node]?.replays.confirm(before: time)
        answerWaiting(of: node)
    }

    /// Executes the questions that have waited for the link, oldest first, as far as it has room.
    private mutating func answerWaiting(of node: NodeName) {
        let waiting = guests.inOrder { $0.waiting != nil && $0.asks(from: node) }
        for (number, guest) in waiting {
            guard let call = guest.waiting else { continue }
            guard hasRoomForReplay(to: node) else { return }
            guests[number]?.waiting = nil
            execute(call)
        }
    }
}

extension Guest {
    /// Whether this is a question for events of a node.
    fileprivate func asks(from node: NodeName) -> Bool {
        guard interest != nil, case .peer(let asker, _, _, _) = caller else { return false }
        return asker == node
    }
}
