import Contract
import JSON
import RTP
import SFU
import TestSupport
import Testing
import WorkerInterface

@testable import ControlPlane
@testable import Simulator

/// A history of a room over three nodes, by seed: people at all nodes, whose rights change while
/// nodes die, stand still and do not hear each other.
///
/// Nothing leaves after the reply that took the right to it, at no node. When the faults have
/// ended, everybody sees and hears everybody they may, and when the room has ended no node has kept
/// anything of it.
final class NodeStory {
    /// A participant of the room.
    private final class Person {
        let name: String
        let client: SimulatedClient
        /// Stream that it publishes.
        let stream: JSON?
        /// Subscriptions of a viewer, by publisher.
        var subscriptions: [String: JSON] = [:]
        var muted: Set<MediaKind> = []

        init(_ name: String, _ client: SimulatedClient, _ stream: JSON?) {
            self.name = name
            self.client = client
            self.stream = stream
        }
    }

    private typealias Flow = SimulatedDaemon.Flow

    let daemon: SimulatedDaemon
    private var publishers: [Person] = []
    private var viewers: [Person] = []
    private var lastNumber = 0
    private let free: [[[Int]]]
    /// Course of the history, with times; printed if it fails.
    private(set) var course: [String] = []
    /// Checks that failed.
    private(set) var failures: [String] = []

    init(seed: UInt64) throws {
        daemon = try SimulatedDaemon(
            seed: seed,
            identity: DTLSIdentity(),
            nodes: ["a", "b", "c"]
        )
        daemon.interval = 5
        daemon.mostQuarters = [2, 12, 40][Int(seed % 3)]
        daemon.keepsFlows = false
        daemon.heard = [:]
        free = daemon.nodes.map(\.free)
        try daemon.done("room.create", params([:]))
        for _ in 0..<3 { try enter(publishes: true) }
        for _ in 0..<4 { try enter(publishes: false) }
    }

    private func params(_ more: [String: JSON]) -> [String: JSON] {
        more.merging(["room": "r"]) { $1 }
    }

    private func pick<Value>(_ values: [Value]) throws -> Value {
        try #require(values.randomElement(using: &daemon.random))
    }

    /// Lets somebody join at any node.
    private func enter(publishes: Bool) throws {
        lastNumber += 1
        let name = "\(publishes ? "p" : "v")\(lastNumber)"
        daemon.places[name] = try pick(
            daemon.nodes.filter { !$0.isDead && !daemon.isApart($0, daemon.home) }
        ).name
        try daemon.done("participant.join", params(["participant": .string(name)]))
        let (client, mids) = try daemon.connect(
            name,
            in: "r",
            number: 1,
            tracks: publishes ? [.audio, .video] : [],
            slots: publishes ? 0 : 3
        )
        tell("\(name) enters at \(daemon.node(of: client).name)")
        try daemon.awaitConnected([client])
        let person = Person(name, client, mids.first?.stream.map { .string($0.rawValue) })
        if publishes {
            publishers.append(person)
            for viewer in viewers { try watch(person, by: viewer) }
        } else {
            viewers.append(person)
            for publisher in publishers { try watch(publisher, by: person) }
        }
        daemon.senders = publishers.map(\.client)
    }

    private func watch(_ publisher: Person, by viewer: Person) throws {
        for flow in flows(of: publisher, to: [viewer]) {
            if publisher.muted.contains(flow.kind) {
                daemon.forbidden.insert(flow)
            } else {
                daemon.forbidden.remove(flow)
            }
        }
        let more: [String: JSON] = [
            "participant": .string(viewer.name), "stream": publisher.stream ?? .null,
        ]
        let result = try daemon.done("subscription.add", params(more))
        viewer.subscriptions[publisher.name] = result["subscription"]
    }

    private func flows(
        of publisher: Person,
        _ kinds: [MediaKind] = MediaKind.allCases,
        to viewers: [Person]
    ) -> [Flow] {
        viewers.flatMap { viewer in
            kinds.map { kind in
                Flow(
                    publisher: publisher.client.index,
                    viewer: viewer.client.index,
                    kind: kind
                )
            }
        }
    }

    private func tell(_ text: String) {
        let time = Double(daemon.now.nanoseconds) / 1e9
        course.append("\(time) \(text)")
    }

    private func allow(_ flows: [Flow]) { daemon.forbidden.subtract(flows) }

    /// Makes a call that takes rights away; they are gone from the moment of its answer.
    private func revoke(_ flows: [Flow], _ method: String, _ more: [String: JSON]) throws {
        let id = daemon.send(method, params(more))
        daemon.whenAnswered[id] = { [daemon] in daemon.forbidden.formUnion(flows) }
        _ = try daemon.reply(to: id)
    }
}

// Acts.
extension NodeStory {
    /// Lets faults and changes of rights happen, one after the other.
    func play(acts: Int) throws {
        for _ in 0..<acts {
            try act()
            daemon.run(milliseconds: Int.random(in: 20...600, using: &daemon.random))
        }
    }

    private func act() throws {
        switch Int.random(in: 0..<11, using: &daemon.random) {
        case 0...4: try change()
        case 5: try stop()
        case 6: try sever()
        case 7...8: try restart()
        case 9: try takeOver()
        default: impair()
        }
    }

    /// Changes somebody's rights.
    private func change() throws {
        switch Int.random(in: 0..<5, using: &daemon.random) {
        case 0...1: try mute()
        case 2: try unmute()
        case 3: try turnAway()
        default: try replace()
        }
    }

    private func mute() throws {
        guard let publisher = publishers.randomElement(using: &daemon.random) else { return }
        let kind = try pick(MediaKind.allCases)
        tell("\(publisher.name)'s \(kind) is muted")
        publisher.muted.insert(kind)
        try revoke(
            flows(of: publisher, [kind], to: viewers),
            "participant.hardMute",
            ["participant": .string(publisher.name), "media": [.string("\(kind)")]]
        )
    }

    private func unmute() throws {
        guard let publisher = publishers.first(where: { !$0.muted.isEmpty }) else { return }
        tell("\(publisher.name) is unmuted")
        let kinds = publisher.muted
        publisher.muted = []
        let watching = viewers.filter { $0.subscriptions[publisher.name] != nil }
        allow(flows(of: publisher, Array(kinds), to: watching))
        let media = kinds.map { JSON.string("\($0)") }
        try daemon.done(
            "participant.hardUnmute",
            params(["participant": .string(publisher.name), "media": .array(media)])
        )
    }

    /// Lets a viewer end a subscription, or make it again.
    private func turnAway() throws {
        guard let viewer = viewers.randomElement(using: &daemon.random),
            let publisher = publishers.randomElement(using: &daemon.random)
        else { return }
        guard let subscription = viewer.subscriptions.removeValue(forKey: publisher.name) else {
            tell("\(viewer.name) watches \(publisher.name) again")
            return try watch(publisher, by: viewer)
        }
        tell("\(viewer.name) watches \(publisher.name) no longer")
        try revoke(
            flows(of: publisher, to: [viewer]),
            "subscription.remove",
            ["subscription": subscription]
        )
    }

    /// Lets somebody leave, and another one come.
    private func replace() throws {
        let publishes = Bool.random(using: &daemon.random)
        guard !(publishes ? publishers : viewers).isEmpty else { return }
        let gone = publishes ? publishers.removeFirst() : viewers.removeFirst()
        tell("\(gone.name) leaves")
        let flows =
            publishes
            ? flows(of: gone, to: viewers)
            : publishers.flatMap { self.flows(of: $0, to: [gone]) }
        for viewer in viewers { viewer.subscriptions[gone.name] = nil }
        try revoke(flows, "participant.leave", ["participant": .string(gone.name)])
        try enter(publishes: publishes)
    }

    private func stop() throws {
        let node = try pick(daemon.nodes)
        let milliseconds = Int64.random(in: 50...2_500, using: &daemon.random)
        tell("\(node.name) stands still for \(milliseconds) ms")
        node.stoppedUntil = daemon.now.advanced(milliseconds: milliseconds)
        guard Bool.random(using: &daemon.random) else { return }
        // The reply does not wait for it longer than its leases last.
        daemon.run(milliseconds: Int.random(in: 0...300, using: &daemon.random))
        try mute()
    }

    private func sever() throws {
        let nodes = daemon.nodes.shuffled(using: &daemon.random).prefix(2).map(\.name)
        let milliseconds = Int.random(in: 100...4_000, using: &daemon.random)
        tell("\(nodes) do not hear each other for \(milliseconds) ms")
        daemon.paths.severed.insert(Set(nodes))
        if milliseconds > 2_000, !nodes.contains(daemon.home.name),
            daemon.nodes.allSatisfy({ $0.stoppedUntil <= daemon.now })
        {
            // By way of the home.
            daemon.run(milliseconds: 3_500)
            checkMedia("by way of the home", over: 500, from: 10)
        }
        for _ in 0..<2 {
            daemon.run(milliseconds: milliseconds / 3)
            try change()
        }
        daemon.run(milliseconds: milliseconds / 3)
        daemon.paths.severed.remove(Set(nodes))
    }

    private func restart() throws {
        var dead = [try pick(daemon.nodes)]
        if Int.random(in: 0..<3, using: &daemon.random) == 0 {
            dead.append(try pick(daemon.nodes.filter { $0.index != dead[0].index }))
        }
        for node in dead {
            tell("\(node.name) dies")
            node.stoppedUntil = daemon.now
            daemon.kill(node)
            daemon.run(milliseconds: Int.random(in: 0...50, using: &daemon.random))
        }
        if !daemon.home.isDead, Bool.random(using: &daemon.random) { try change() }
        for node in dead.shuffled(using: &daemon.random) {
            daemon.run(milliseconds: Int.random(in: 10...300, using: &daemon.random))
            daemon.begin(node)
        }
        let isHomeDead = dead.contains { $0.index == daemon.home.index }
        if !isHomeDead, Bool.random(using: &daemon.random) { try change() }
        for node in dead.shuffled(using: &daemon.random) {
            daemon.run(milliseconds: Int.random(in: 10...400, using: &daemon.random))
            awaitRunning()
            tell("\(node.name) is back")
            daemon.reunite(node)
        }
    }

    /// Waits until no node stands still: a link is made when both of its nodes run.
    private func awaitRunning() {
        while daemon.nodes.contains(where: { $0.stoppedUntil > daemon.now }) { daemon.step() }
    }

    /// Ends the home for good: another node goes on with the room.
    ///
    /// Participants who were there leave, and others come.
    private func takeOver() throws {
        // A node that has just begun again needs its home to have built it anew.
        awaitRunning()
        daemon.run(milliseconds: 1_000)
        let former = daemon.home
        former.stoppedUntil = daemon.now
        let heir = try pick(daemon.nodes.filter { $0.index != former.index })
        tell("\(former.name) is lost, for \(heir.name)")
        daemon.kill(former)
        daemon.run(milliseconds: Int.random(in: 20...800, using: &daemon.random))
        daemon.loseHome()
        daemon.run(milliseconds: Int.random(in: 20...1_500, using: &daemon.random))
        daemon.takeOver("r", by: heir)
        // It asks the other nodes first what they have kept.
        for _ in 0..<50 where !heir.plane.hasRoom("r") { daemon.run(milliseconds: 100) }
        tell("the room goes on at \(heir.name)")
        let isLost = { (person: Person) in self.daemon.node(of: person.client) === former }
        let (lost, gone) = (publishers.filter(isLost), viewers.filter(isLost))
        publishers.removeAll(where: isLost)
        viewers.removeAll(where: isLost)
        for person in lost + gone {
            try daemon.done("participant.leave", params(["participant": .string(person.name)]))
            for viewer in viewers { viewer.subscriptions[person.name] = nil }
        }
        if Bool.random(using: &daemon.random) { try change() }
        daemon.run(milliseconds: Int.random(in: 20...800, using: &daemon.random))
        tell("another life of \(former.name) begins")
        daemon.beginAfresh(former)
        daemon.run(milliseconds: 500)
        for _ in lost { try enter(publishes: true) }
        for _ in gone { try enter(publishes: false) }
    }

    private func impair() {
        daemon.paths.lossPercent = [0, 2, 10][Int.random(in: 0...2, using: &daemon.random)]
        daemon.paths.delay =
            [1...4, 1...40, 40...120][Int.random(in: 0...2, using: &daemon.random)]
    }
}

// Checks.
extension NodeStory {
    /// Ends the faults, and checks that all media flows that may.
    func calm() throws {
        daemon.run(milliseconds: 2_500)
        daemon.paths.severed = []
        daemon.paths.lossPercent = 0
        daemon.paths.delay = 1...16
        while publishers.contains(where: { !$0.muted.isEmpty }) { try unmute() }
        for viewer in viewers {
            for publisher in publishers where viewer.subscriptions[publisher.name] == nil {
                try watch(publisher, by: viewer)
            }
        }
        tell("all is calm")
        daemon.run(milliseconds: 6_000)
        checkMedia("in the end", over: 1_000, from: 50)
        if daemon.strays > 0 { failures.append("\(daemon.strays) packets of other rooms") }
    }

    /// Checks that media flows to everybody who may have it: as many packets in this time, at
    /// least.
    private func checkMedia(_ occasion: String, over milliseconds: Int, from least: UInt64) {
        let before = daemon.flows
        daemon.run(milliseconds: milliseconds)
        for publisher in publishers {
            for viewer in viewers where viewer.subscriptions[publisher.name] != nil {
                let kinds = MediaKind.allCases.filter { !publisher.muted.contains($0) }
                for flow in flows(of: publisher, kinds, to: [viewer]) {
                    let count = (daemon.flows[flow]?.written ?? 0) - (before[flow]?.written ?? 0)
                    guard count < least else { continue }
                    let ways = [publisher, viewer].map { daemon.node(of: $0.client).name }
                    failures.append(
                        "\(occasion): \(flow.kind) of \(publisher.name) to \(viewer.name), \(ways)"
                    )
                }
            }
        }
    }

    /// Ends the room, and checks that nothing is left of it.
    func end() throws {
        try daemon.done("room.close", params([:]))
        daemon.run(milliseconds: 2_000)
        for (node, before) in zip(daemon.nodes, free) where node.free != before {
            failures.append("handles are left at \(node.name): \(node.free)")
        }
    }
}
