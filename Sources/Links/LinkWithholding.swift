import RTP
import SFU
import WorkerInterface

// A path that does not carry all that is wanted: whole encodings are withheld, the higher ones
// first, never sound, and the other node is told which, so that its viewers get lower ones.
extension LinkMedia {
    /// Time for which a change is repeated with each beat, as it may be lost on a full path.
    static let repeatedMilliseconds: Int64 = 500

    /// A publication that a node wants, with its wanted encodings by position, the lowest first.
    private struct Wanted {
        var id: PublicationID
        var encodings: [(position: Int, bitrate: Int)]
        var claim: LinkShares.Claim
    }

    /// Distributes what the path to a node carries among the publications that it wants.
    mutating func share(pathTo node: String, at now: Instant) {
        guard let path = peers[node]?.path else { return }
        let wanted = wantedVideo(of: node)
        let other = path.bandwidth.otherBitrate
        guard let limit = path.bandwidth.limit else {
            let sum = wanted.reduce(other) { $0 + $1.claim.bitrates.reduce(0, +) }
            path.bandwidth.setDemand(sum, allocated: sum, next: 0)
            path.shares.forget()
            for publication in wanted { withhold(0, of: publication.id, from: node, at: now) }
            return
        }
        let result = path.shares.share(
            wanted.map(\.claim),
            within: limit,
            beside: other,
            isFull: path.bandwidth.isFull,
            at: now
        )
        path.bandwidth.setDemand(result.wanted, allocated: result.allocated, next: result.next)
        for (publication, given) in zip(wanted, result.given) {
            let withheld = publication.encodings.dropFirst(given)
                .reduce(UInt8(0)) { $0 | Self.bit($1.position) }
            withhold(withheld, of: publication.id, from: node, at: now)
        }
    }

    private static func bit(_ position: Int) -> UInt8 { 1 << UInt8(clamping: position) }

    /// Returns the encodings that a narrow path does not carry at first when a node wants other
    /// ones than before: all but the lowest, until there is room for them.
    mutating func withheldAtFirst(
        _ encodings: UInt8,
        of id: PublicationID,
        after before: Sending.Subscriber?,
        to node: String
    ) -> UInt8 {
        // Sound is never withheld.
        guard peers[node]?.path.bandwidth.limit != nil,
            let exported = core.exportedEncodings(of: id)
        else { return 0 }
        let lowest = exported.encodings.first.map { Self.bit($0.position) }
        let carried = before?.carried ?? 0
        return encodings & ~(carried | (lowest ?? 0)) | (before?.withheld ?? 0) & encodings
    }

    private mutating func wantedVideo(of node: String) -> [Wanted] {
        var found: [Wanted] = []
        for (id, known) in sending {
            guard let subscriber = known.subscribers[node], subscriber.encodings != 0,
                let exported = core.exportedEncodings(of: id)
            else { continue }
            let encodings = exported.encodings
                .filter { subscriber.encodings & Self.bit($0.position) != 0 }
            let highest = encodings.lastIndex { subscriber.carried & Self.bit($0.position) != 0 }
            let claim = LinkShares.Claim(
                bitrates: encodings.map(\.bitrate),
                held: highest.map { $0 + 1 } ?? 0,
                hasLowest: encodings.first?.position == exported.encodings.first?.position,
                isScreen: exported.isScreen
            )
            found.append(Wanted(id: id, encodings: encodings, claim: claim))
        }
        // The order decides among equals, so it must not change.
        return found.sorted { ($0.id.index, $0.id.generation) < ($1.id.index, $1.id.generation) }
    }

    private mutating func withhold(
        _ encodings: UInt8,
        of id: PublicationID,
        from node: String,
        at now: Instant
    ) {
        guard var subscriber = sending[id]?.subscribers[node], subscriber.withheld != encodings
        else { return }
        subscriber.withheld = encodings
        subscriber.repeatedUntil = now.advanced(milliseconds: Self.repeatedMilliseconds)
        sending[id]?.subscribers[node] = subscriber
        core.setExported(id, sending[id]?.carried ?? 0)
        peers[node]?.path.drop(id, except: subscriber.carried)
        tellWithheld(of: id, to: node, at: now)
    }

    /// Tells a node which encodings it does not get, or that it gets all again.
    ///
    /// Encodings that this node does not get itself cannot go on to it.
    mutating func tellWithheld(of id: PublicationID, to node: String, at now: Instant) {
        guard let subscriber = sending[id]?.subscribers[node] else { return }
        let isNews = subscriber.repeatedUntil.map { $0 >= now } ?? false
        let missing = (receiving[id]?.withheld ?? 0) & subscriber.encodings
        let encodings = subscriber.withheld | missing
        guard encodings != 0 || isNews else { return }
        append(.withheld(handle: subscriber.handle, encodings: encodings), to: node, at: now)
    }

    /// Takes from a node which encodings of a publication it does not send.
    mutating func take(
        withheld encodings: UInt8,
        of id: PublicationID,
        from node: String,
        at now: Instant
    ) {
        guard receiving[id]?.node == node else { return }
        receiving[id]?.withheldHeard = now
        setWithheld(id, encodings, at: now)
    }

    /// Lets the viewers here know what does not come, and the nodes to which it would go on.
    mutating func setWithheld(_ id: PublicationID, _ encodings: UInt8, at now: Instant) {
        guard let known = receiving[id], known.withheld != encodings else { return }
        receiving[id]?.withheld = encodings
        core.setWithheld(id, encodings)
        let until = now.advanced(milliseconds: Self.repeatedMilliseconds)
        for node in sending[id]?.subscribers.keys.sorted() ?? [] {
            sending[id]?.subscribers[node]?.repeatedUntil = until
            tellWithheld(of: id, to: node, at: now)
        }
    }

    /// Repeats what is new, and ends what has not been heard for long.
    mutating func expireWithholdings(at now: Instant) {
        for (id, known) in sending {
            for (node, subscriber) in known.subscribers
            where subscriber.repeatedUntil.map({ $0 >= now }) ?? false {
                tellWithheld(of: id, to: node, at: now)
            }
        }
        for (id, known) in receiving where known.withheld != 0 {
            guard let heard = known.withheldHeard,
                now.milliseconds(since: heard) >= Self.wantMilliseconds
            else { continue }
            setWithheld(id, 0, at: now)
        }
    }

    mutating func countWithholdings() {
        counters.narrowPaths =
            peers.values.count { $0.isAlive && $0.path.bandwidth.limit != nil }
        counters.encodingsWithheld = sending.values.reduce(0) { sum, known in
            sum + known.subscribers.values.reduce(0) { $0 + $1.withheld.nonzeroBitCount }
        }
        counters.streamsPassedOn = sending.keys.count { receiving[$0] != nil }
    }
}
