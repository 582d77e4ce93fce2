import Contract
import JSON
import RTP
import Testing
import WorkerInterface

@testable import Simulator

/// A room in which one term of the gate changes while media flows.
///
/// The publisher sends 1,000 packets a second to a viewer on its own worker and to one on another,
/// or in a cluster to viewers at any nodes.
struct FenceTrial {
    let daemon: SimulatedDaemon
    let term: FenceTerm
    let room: String
    private let number: UInt32
    private var cast = FenceCast()
    private var clients: [SimulatedClient] = []
    private var publisher: SimulatedClient?
    private var other: SimulatedClient?
    private var viewers: [SimulatedClient] = []
    /// Copies that earlier fences have reported.
    private var counted: [SimulatedDaemon.Flow: UInt64] = [:]

    /// Makes the room, and returns once media flows.
    init(_ term: FenceTerm, number: Int, on daemon: SimulatedDaemon) throws {
        self.daemon = daemon
        self.term = term
        self.number = UInt32(number)
        room = "room-\(number)"
        daemon.interval = 1
        daemon.places = [:]
        for who in ["p", "q", "v0", "v1"] where daemon.nodes.count > 1 {
            daemon.places[who] = daemon.nodes.randomElement(using: &daemon.random)?.name
        }
        try daemon.done("room.create", params(["settings": .object(term.settings)]))
        try join("m", "moderator")
        try join("p", term.role)
        for (method, more) in term.early(cast) { try daemon.done(method, params(more)) }
        if Bool.random(using: &daemon.random) {
            // With it, the publisher's transport is placed on the other worker.
            try join("x", "moderator")
            clients.append(try connect("x", slots: 1).client)
        }
        try connectAll()
        daemon.senders = clients.filter { !$0.tracks.isEmpty }
        try give()
        for viewer in 0...1 { try watch(viewer) }
        let never = flows(term.never, [0, 1])
        try awaitFlow(all.filter { !never.contains($0) }, beyond: [:])
    }

    /// Gives a right that the term lacks at first; media that was sent before is not forwarded.
    private mutating func give() throws {
        let calls = term.first(cast)
        guard !calls.isEmpty else { return }
        play(milliseconds: 40)
        #expect(all.allSatisfy { daemon.flows[$0] == nil }, "forwarded before the right was given")
        for (method, more) in calls { try daemon.done(method, params(more)) }
        let list = try daemon.done("stream.list", params([:])).decode(StreamList.Result.self)
        let stream = try #require(list.streams.first { $0.participant == "p" }).stream
        cast.stream = .string(stream.rawValue)
    }

    private mutating func connectAll() throws {
        if term.hasOther {
            try join("q", term.role)
            let (other, mids) = try connect("q", tracks: [.audio, .video])
            clients.append(other)
            self.other = other
            cast.otherStream = .string(try #require(mids[0].stream).rawValue)
        }
        let (publisher, mids) = try connect("p", tracks: [.audio, .video])
        self.publisher = publisher
        clients.append(publisher)
        if let stream = mids[0].stream { cast.stream = .string(stream.rawValue) }
        for viewer in 0...1 {
            try join("v\(viewer)", term.viewerRole)
            viewers.append(try connect("v\(viewer)", slots: 1).client)
        }
        clients += viewers
        try daemon.awaitConnected(clients)
        let isSpread = Set(viewers.map(\.worker)).count == 2
        #expect(isSpread || daemon.nodes.count > 1, "the room is on one worker")
        for client in clients {
            let place = daemon.places[client.participant] ?? daemon.nodes[0].name
            #expect(daemon.node(of: client).name == place, "\(client.participant) is elsewhere")
        }
        let offer = daemon.offer(index: publisher.index, tracks: publisher.tracks, slots: 0).text
        cast.offerWithoutMicrophone = .string(offer.replacing("a=sendonly", at: 0))
        cast.offersWithoutPicture = viewers.map {
            let offer = daemon.offer(index: $0.index, tracks: [], slots: 1).text
            return .string(offer.replacing("a=recvonly", at: 1))
        }
    }

    private func join(_ participant: String, _ role: JSON) throws {
        try daemon.done(
            "participant.join",
            params(["participant": .string(participant), "role": role])
        )
    }

    private func connect(
        _ participant: String,
        tracks: [MediaKind] = [],
        slots: Int = 0
    ) throws -> (client: SimulatedClient, mids: [MidInfo]) {
        try daemon.connect(participant, in: room, number: number, tracks: tracks, slots: slots)
    }

    private mutating func watch(_ viewer: Int) throws {
        let who = JSON.string("v\(viewer)")
        let result = try daemon.done(
            "subscription.add",
            params(["participant": who, "stream": cast.stream])
        )
        cast.subscriptions.append(result["subscription"] ?? .null)
    }

    private func params(_ more: [String: JSON]) -> [String: JSON] {
        more.merging(["room": .string(room)]) { $1 }
    }

    /// Flows from the publisher, or the other one, to some of the viewers.
    private func flows(
        _ kinds: Set<MediaKind>,
        _ places: [Int],
        of sender: SimulatedClient? = nil
    ) -> [SimulatedDaemon.Flow] {
        guard let sender = sender ?? publisher else { return [] }
        return places.flatMap { place in
            kinds.map {
                SimulatedDaemon.Flow(
                    publisher: sender.index,
                    viewer: viewers[place].index,
                    kind: $0
                )
            }
        }
    }

    private var all: [SimulatedDaemon.Flow] { flows([.audio, .video], [0, 1]) }

    /// Flows of the other publisher.
    private var others: [SimulatedDaemon.Flow] {
        other.map { flows([.audio, .video], [0, 1], of: $0) } ?? []
    }

    /// Takes the copies of these flows that no fence has reported yet.
    private mutating func take(
        _ flows: [SimulatedDaemon.Flow],
        at then: [SimulatedDaemon.Flow: SimulatedDaemon.Count]
    ) -> JSON {
        var packets: UInt64 = 0
        for flow in flows {
            packets += (then[flow]?.written ?? 0) - (counted[flow] ?? 0)
            counted[flow] = then[flow]?.written
        }
        return .integer(Int64(packets))
    }

    /// Advances the clock until packets of these flows have been forwarded.
    private func awaitFlow(
        _ flows: [SimulatedDaemon.Flow],
        beyond known: [SimulatedDaemon.Flow: SimulatedDaemon.Count]
    ) throws {
        for flow in flows {
            let before = known[flow]?.written ?? 0
            for _ in 0..<4_000 where (daemon.flows[flow]?.written ?? 0) < before + 3 {
                daemon.step()
            }
            try #require(
                (daemon.flows[flow]?.written ?? 0) >= before + 3,
                "\(flow.kind) does not flow"
            )
        }
    }

    /// Revokes the right, and checks that nothing leaves after the reply and the count is right.
    mutating func close() throws {
        for (method, more) in term.prepare(cast) {
            cast.prepared = try daemon.done(method, params(more))
        }
        play(milliseconds: Int.random(in: 1...30, using: &daemon.random))
        for worker in daemon.workers where Bool.random(using: &daemon.random) {
            let wait = Int64.random(in: 1...25, using: &daemon.random)
            worker.refusesUntil = daemon.now.advanced(milliseconds: wait)
        }
        let ids = term.close(cast).map { daemon.send($0.method, params($0.params)) }
        let id = try #require(ids.last)
        var reply = JSON.null
        for id in ids { reply = try daemon.reply(to: id) }
        let then = try #require(daemon.flowsAtReply[id])
        let lost = flows(term.lost, term.viewers)
        let packets = take(lost, at: then)
        if term.hasFence {
            #expect(reply["fence"]?["packets"] == packets, "\(room)")
        } else {
            #expect(reply["fence"] == nil)
        }
        play(milliseconds: 40)
        for flow in lost {
            let after = (daemon.flows[flow]?.left ?? 0) - (then[flow]?.left ?? 0)
            #expect(after == 0, "\(after) packets of \(flow.kind) after the reply in \(room)")
        }
        let never = flows(term.never, [0, 1])
        #expect(never.allSatisfy { daemon.flows[$0] == nil }, "forwarded, and may never be")
        try awaitFlow(all.filter { !lost.contains($0) && !never.contains($0) }, beyond: then)
    }

    /// Restores the right, and checks that media flows again.
    mutating func open() throws {
        guard let open = term.open else { return }
        let before = daemon.flows
        for (method, more) in open(cast) {
            let id = daemon.send(method, params(more))
            let reply = try daemon.reply(to: id)
            // Switching back revokes the right to the stream in between; otherwise nothing is
            // revoked.
            let packets = take(others, at: try #require(daemon.flowsAtReply[id]))
            #expect(reply["fence"]?["packets"] ?? 0 == packets, "\(room)")
        }
        try awaitFlow(flows(term.lost, term.viewers), beyond: before)
    }

    /// Ends the room, and with it all remaining rights.
    mutating func end() throws {
        let id = daemon.send("room.close", params([:]))
        // The room's end may have revoked the right.
        if let reply = try? daemon.reply(to: id) {
            let packets = take(all + others, at: try #require(daemon.flowsAtReply[id]))
            #expect(reply["fence"]?["packets"] == packets, "\(room)")
        }
        daemon.forget(clients)
    }

    /// Advances the clock while the viewers request retransmissions.
    private func play(milliseconds: Int) {
        for millisecond in 0..<milliseconds {
            if millisecond % 5 == 0 { for viewer in viewers { daemon.askAgain(viewer) } }
            daemon.run(milliseconds: 1)
        }
    }
}

extension String {
    /// Replaces one of the lines equal to `line`, counted from 0, by `inactive`.
    fileprivate func replacing(_ line: String, at place: Int) -> String {
        var seen = -1
        let lines = split(separator: "\r\n", omittingEmptySubsequences: false).map { text in
            if text == line { seen += 1 }
            return text == line && seen == place ? "a=inactive" : text
        }
        return lines.joined(separator: "\r\n")
    }
}
