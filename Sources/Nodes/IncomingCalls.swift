import Contract
import JSON
package import RTP

/// Calls of another node that were executed here, with the answers that it may ask for again.
struct IncomingCalls {
    private enum Call {
        case underWay
        /// The room was not here, so the call was not executed.
        case sentAway
        /// The time is that of the first `expire(at:)` after the answer.
        case answered([UInt8], since: Instant?)
    }

    /// Treatment of a call that arrives.
    enum Arrival: Equatable {
        case execute
        /// It is being executed; its answer will come.
        case ignore
        case repeatAnswer([UInt8])
        case sendAway
        case forgotten
    }

    /// Life of the node whose calls these are.
    private(set) var boot = ""
    private var calls: [UInt64: Call] = [:]
    /// Numbers of the calls that were taken, ascending; those before `first` are forgotten.
    private var order: [UInt64] = []
    private var first = 0
    private var highest: UInt64 = 0
    private var bytes = 0

    /// Bytes of answers that are kept of one node.
    static let byteLimit = 64 << 20
    static let keepMilliseconds: Int64 = 60_000

    /// Number of calls that are known.
    var count: Int { calls.count }

    /// Judges a call; those below `answered` need not be kept any longer.
    mutating func receive(_ number: UInt64, answered: UInt64, of boot: String) -> Arrival {
        if boot != self.boot {
            self = Self()
            self.boot = boot
        }
        forget { number, _ in number < answered }
        switch calls[number] {
        case .underWay: return .ignore
        case .sentAway: return .sendAway
        case .answered(let line, _): return .repeatAnswer(line)
        case nil:
            // Numbers come in order, also when they come again.
            guard number > highest else { return .forgotten }
            highest = number
            order.append(number)
            calls[number] = .underWay
            return .execute
        }
    }

    /// Keeps the answer of a call.
    mutating func answer(_ number: UInt64, _ line: [UInt8], of boot: String) {
        guard boot == self.boot, case .underWay = calls[number] else { return }
        calls[number] = .answered(line, since: nil)
        bytes += line.count
        guard bytes > Self.byteLimit else { return }
        for number in order[first...] where bytes > Self.byteLimit {
            if case .answered = calls[number] { remove(number) }
        }
        forget { _, call in call == nil }
    }

    /// Notes that a call is not executed here.
    mutating func sendAway(_ number: UInt64) { calls[number] = .sentAway }

    /// Forgets answers after a minute.
    mutating func expire(at now: Instant) {
        for (number, call) in calls {
            guard case .answered(let line, let since) = call else { continue }
            guard let since else {
                calls[number] = .answered(line, since: now)
                continue
            }
            if now.milliseconds(since: since) >= Self.keepMilliseconds { remove(number) }
        }
        forget { _, call in call == nil }
    }

    /// Forgets the oldest calls, as long as they are such.
    private mutating func forget(while isOver: (UInt64, Call?) -> Bool) {
        while first < order.count, isOver(order[first], calls[order[first]]) {
            remove(order[first])
            first += 1
        }
        guard first > order.count / 2 else { return }
        order.removeSubrange(..<first)
        first = 0
    }

    private mutating func remove(_ number: UInt64) {
        if case .answered(let line, _) = calls.removeValue(forKey: number) { bytes -= line.count }
    }
}

// Calls of other nodes that are executed here.
extension Cluster {
    /// Takes a call of another node.
    mutating func host(
        _ number: UInt64,
        answered: UInt64,
        _ first: UInt64,
        _ connection: UInt64,
        _ line: [UInt8],
        of node: NodeName,
        at now: Instant
    ) {
        guard let boot = members[node]?.record.boot else { return }
        let arrival = peers[node, default: Peer()].incoming
            .receive(number, answered: answered, of: boot)
        switch arrival {
        case .ignore: return
        case .repeatAnswer(let line): return emit(.send(node, .reply(number: number, line: line)))
        case .sendAway: return emit(.send(node, .notHere(number: number)))
        case .forgotten: return emit(.send(node, .forgotten(number: number)))
        case .execute: break
        }
        lastGuest += 1
        let caller = Guest.Caller.peer(node, boot: boot, number: number, connection: connection)
        var guest = Guest(caller: caller)
        guest.name = CallName.text(node, boot, first)
        do throws(IPCRefusal) {
            let request = try IPCRequest(line: line)
            var call = PendingCall(request: request, line: line, origin: .peer(lastGuest))
            if first != number {
                call.firstNumber = first
                dropWaiting(named: guest.name, besides: lastGuest)
            }
            if request.method == EventsSubscribe.name {
                let params = try? request.params(EventsSubscribe.Params.self)
                guest.interest = params.map(FeedInterest.init)
                // Those that wait about the same events have put these there.
                if let interest = guest.interest, peers[node]?.interests[connection] != interest {
                    dropQuestions(of: connection, at: node, exceptFor: interest)
                }
                guests[lastGuest] = guest
                return execute(withoutComingRooms(call))
            }
            guests[lastGuest] = guest
            guard let room = call.room, holds[room] == nil,
                request.method != RoomCreate.name
            else { return route(call, at: now) }
            sendAway(lastGuest)
        } catch {
            guests[lastGuest] = guest
            finishAnswer(lastGuest, error.encoded(), isStored: true)
        }
    }

    /// Gives a call up that waits under the number that it had before: it comes again.
    private mutating func dropWaiting(named name: String?, besides guest: UInt64) {
        for (number, other) in guests where number != guest && other.name == name {
            // One that is executed is answered, though nobody may wait for that.
            if other.call == nil { guests[number] = nil }
        }
    }

    /// Removes the rooms from a subscription's `since` that are about to be made here, if all of
    /// their events are wanted.
    ///
    /// The registry tells of a room a moment before it exists. Its events are still to come.
    private func withoutComingRooms(_ call: PendingCall) -> PendingCall {
        guard case .object(var params) = call.request.params, let asked = params["since"],
            case .object(var since) = asked
        else { return call }
        for (room, seq) in since where seq == .integer(0) {
            guard let hold = holds[room], !hold.exists, hold.stage != .releasing,
                // Such a room has events already.
                !hold.takesOver
            else { continue }
            since[room] = nil
        }
        params["since"] = .object(since)
        var call = call
        call.request.params = .object(params)
        return call
    }

    /// Gives up the questions of another node's connection that wait here, but for those about the
    /// same events: they would replace what it asks for now.
    mutating func dropQuestions(
        of connection: UInt64,
        at node: NodeName,
        exceptFor interest: FeedInterest?
    ) {
        for (number, guest) in guests {
            guard let asked = guest.interest, asked != interest,
                case .peer(let asker, _, _, let origin) = guest.caller,
                asker == node, origin == connection
            else { continue }
            sendAway(number)
        }
    }

    /// Tells another node what happens from now on, while its question for events waits for a room.
    ///
    /// It answers its connection before that if it takes long, and events of the other rooms here
    /// would be missed.
    mutating func tellMeanwhile(_ call: PendingCall) {
        guard case .peer(let number) = call.origin, let guest = guests[number],
            let interest = guest.interest,
            case .peer(let node, _, _, let connection) = guest.caller, peers[node]?.link == .up
        else { return }
        // One question owes the positions, however many wait.
        guard peers[node]?.interests[connection] != interest else { return }
        guests[number]?.hasWaited = true
        peers[node]?.interests[connection] = interest
    }

    /// Tells the caller's node that the room is not here.
    mutating func sendAway(_ number: UInt64) {
        guard case .peer(let node, _, let call, _) = guests.removeValue(forKey: number)?.caller
        else { return }
        peers[node]?.incoming.sendAway(call)
        emit(.send(node, .notHere(number: call)))
    }

    /// Takes the reply to a call; it is sent when what it tells is in the room's journal.
    package mutating func answer(_ number: UInt64, _ line: [UInt8], at now: Instant) {
        observe(now)
        guard let guest = guests[number] else { return }
        guard let room = guest.call?.room else {
            return finishAnswer(number, line, isStored: true)
        }
        hold(.reply(guest: number, line), of: room, at: now)
    }

    /// Sends the reply to a call; that to another node is kept for a while.
    mutating func finishAnswer(_ number: UInt64, _ line: [UInt8], isStored: Bool) {
        guard let guest = guests[number] else { return }
        // A subscription still has its events to come, unless it is refused.
        if guest.interest == nil || Self.isRefusal(line) { guests[number] = nil }
        var line = line
        let journal = guest.call?.room.flatMap { journaling.rooms[$0] }
        if guest.hasChanged, !isStored, guest.change > journal?.stored ?? 0 {
            counters.repliesNotDurable &+= 1
            line = NotDurable.mark(line)
        }
        switch guest.caller {
        case .here(let connection): emit(.line(connection: connection, line))
        case .peer(let node, let boot, let call, _):
            peers[node]?.incoming.answer(call, line, of: boot)
            guard peers[node]?.link == .up else { return }
            emit(.send(node, .reply(number: call, line: line)))
        }
    }

    private static func isRefusal(_ line: [UInt8]) -> Bool {
        (try? JSON(parsing: line))?["error"] != nil
    }

    /// Sends a call that was not executed for good to the room's new home.
    mutating func moveOn(_ number: UInt64, at now: Instant) {
        guard let guest = guests[number], let call = guest.call else { return }
        switch guest.caller {
        case .here:
            guests[number] = nil
            route(call, at: now)
        case .peer: sendAway(number)
        }
    }

    /// Answers a call that may or may not have taken effect for good.
    mutating func giveUp(_ number: UInt64) {
        guard let guest = guests[number], let call = guest.call else { return }
        counters.outcomesUnknown &+= 1
        let line = IPCReply.encoded(id: call.request.id, error: .outcomeUnknown(setup.name))
        guests[number]?.hasChanged = false
        finishAnswer(number, line, isStored: true)
    }
}

/// Mark of a reply whose changes are not in the journal yet.
enum NotDurable {
    private static let result = Array(#","result":{"#.utf8)
    private static let member = Array(#""durable":false"#.utf8)

    /// Adds `durable: false` to the result of a reply; an error is left as it is.
    ///
    /// Within a string the quotes would have a backslash before them, so the first place that looks
    /// like the result is it.
    static func mark(_ line: [UInt8]) -> [UInt8] {
        var place = 0
        while place + result.count < line.count {
            let end = place + result.count
            if line[place..<end].elementsEqual(result) {
                let comma: [UInt8] = line[end] == UInt8(ascii: "}") ? [] : [UInt8(ascii: ",")]
                return line[..<end] + member + comma + line[end...]
            }
            place += 1
        }
        return line
    }
}
