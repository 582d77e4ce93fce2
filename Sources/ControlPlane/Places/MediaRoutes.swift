import RTP
import Rooms
import WorkerInterface

/// A relay target, as it is seen from this node.
enum RoutedTarget: Hashable {
    /// A publication of a worker of this node.
    case here(RelayTarget)
    /// A publication at another node.
    case at(String)
}

/// Commands that follow from one batch for a worker.
struct RoutedCommands {
    var worker: [WorkerCommand] = []
    var link: [WorkerCommand] = []
    /// Handles that nobody uses once the fences behind the commands are passed.
    var freed: [Room.WorkerResource] = []
}

/// Publications of this node's workers that go to other nodes, and those that come from there.
///
/// To the workers, the link thread is one more worker: what goes out is mirrored in it, and what
/// comes in has its home there.
struct MediaRoutes {
    private struct Known {
        var configuration: PublicationConfiguration
        var isOpen = false
    }

    private struct Sent {
        var handle: PublicationID
        var nodes: Set<String>
    }

    private struct Received {
        var handle: PublicationID
        /// Node with the publisher.
        var node: String
        /// Node by way of which it comes.
        var parent: String
        var configuration: PublicationConfiguration
        var isOpen: Bool
        /// Whether the link thread has yet to hear of a new name.
        var isRenamed = false
        /// Mirrors in the workers, with the encodings that each wants.
        var users: [RelayTarget: UInt8] = [:]
        var wanted: UInt8 = 0
        /// Nodes to which it goes on from here.
        var onward: Set<String> = []

        var isUsed: Bool { !users.isEmpty || !onward.isEmpty }
    }

    /// Number of the recorder's thread among the workers.
    let recorder: Int
    /// Number of the link thread among the workers.
    let link: Int
    /// Publications of transports here.
    private var known: [RelayTarget: Known] = [:]
    private var sent: [RelayTarget: Sent] = [:]
    private var received: [StreamName: Received] = [:]
    /// Names of the publications that mirrors here are of.
    private var mirrored: [RelayTarget: StreamName] = [:]

    init(recorder: Int, link: Int) {
        self.recorder = recorder
        self.link = link
    }

    var isEmpty: Bool { sent.isEmpty && received.isEmpty && mirrored.isEmpty }

    /// Nodes with publishers whose media comes here.
    var origins: Set<String> { Set(received.values.map(\.node)) }

    /// Name of the publication that a mirror here is of, if it comes from another node.
    func name(of mirror: RelayTarget) -> StreamName? { mirrored[mirror] }

    /// Follows a transport's configuration.
    mutating func configure(
        _ publications: [PublicationConfiguration],
        in worker: Int,
        _ routed: inout RoutedCommands
    ) {
        for publication in publications {
            let target = RelayTarget(worker: worker, publication: publication.id)
            known[target, default: Known(configuration: publication)].configuration = publication
            if let sent = sent[target] { routed.link.append(mirror(sent, of: target)) }
        }
    }

    /// Forgets a publication whose transport has ended.
    mutating func forget(_ target: RelayTarget, _ routed: inout RoutedCommands) {
        known[target] = nil
        endSending(target, &routed)
    }

    private func mirror(
        _ sent: Sent,
        of target: RelayTarget,
        from start: Instant? = nil
    ) -> WorkerCommand {
        var configuration =
            known[target]?.configuration
            ?? PublicationConfiguration(
                id: sent.handle,
                mid: "",
                kind: .audio,
                formats: [],
                extensions: .init(),
                encodings: []
            )
        configuration.id = sent.handle
        let isOpen = known[target]?.isOpen ?? false
        var mirror = Mirror(configuration: configuration, home: target, open: isOpen)
        mirror.from = start
        return .mirror(mirror)
    }

    /// Follows a gate, of a publication or of a mirror.
    mutating func gate(_ target: RelayTarget, open: Bool, _ routed: inout RoutedCommands) {
        known[target]?.isOpen = open
        if let sent = sent[target] { routed.link.append(.gate(sent.handle, open: open)) }
        if let name = mirrored[target] { gate(name, open: open, &routed) }
    }

    /// Follows the gate of what comes from another node.
    mutating func gate(_ name: StreamName, open: Bool, _ routed: inout RoutedCommands) {
        guard let handle = received[name]?.handle, received[name]?.isOpen != open else { return }
        received[name]?.isOpen = open
        routed.link.append(.gate(handle, open: open))
    }

    /// Time for which sound is held for the first syllable of who begins to talk.
    static let heldMilliseconds: Int64 = 400

    /// Sets where a publication's packets go.
    ///
    /// Of sound, the link thread gets what the worker holds as well: another node may want it from
    /// the first syllable on.
    mutating func relay(
        _ target: RelayTarget,
        as name: StreamName,
        to targets: [RoutedTarget],
        at now: Instant,
        _ pools: inout [WorkerIdentifiers],
        _ routed: inout RoutedCommands
    ) {
        var here: [RelayTarget] = []
        var nodes: Set<String> = []
        for routedTarget in targets {
            switch routedTarget {
            case .here(let mirror): here.append(mirror)
            case .at(let node): nodes.insert(node)
            }
        }
        var held: RelayTarget?
        if nodes.isEmpty {
            endSending(target, &routed)
        } else if let handle = sent[target]?.handle ?? pools[link].publications.allocate() {
            if sent[target] == nil {
                let new = Sent(handle: handle, nodes: nodes)
                sent[target] = new
                if known[target]?.configuration.kind == .audio {
                    held = RelayTarget(worker: link, publication: handle)
                }
                let start = now.advanced(milliseconds: -Self.heldMilliseconds)
                routed.link.append(mirror(new, of: target, from: held == nil ? nil : start))
            }
            sent[target]?.nodes = nodes
            routed.link.append(.link(.send(handle, as: name, to: nodes.sorted())))
            here.append(RelayTarget(worker: link, publication: handle))
        }
        routed.worker.append(.relay(target.publication, to: here))
        if let held { routed.worker.append(.hold(target.publication, for: held)) }
    }

    private mutating func endSending(_ target: RelayTarget, _ routed: inout RoutedCommands) {
        guard let ended = sent.removeValue(forKey: target) else { return }
        routed.link.append(.unmirror(ended.handle))
        routed.freed.append(.publication(worker: link, ended.handle))
    }

    /// Makes a mirror of a publication at another node, or updates it; returns the mirror as the
    /// worker is to have it, or `nil` if there is no handle left.
    mutating func mirror(
        _ mirror: Mirror,
        in worker: Int,
        of name: StreamName,
        at node: String,
        via parent: String?,
        _ pools: inout [WorkerIdentifiers],
        _ routed: inout RoutedCommands
    ) -> Mirror? {
        let target = RelayTarget(worker: worker, publication: mirror.configuration.id)
        rename(target, to: name)
        let way = (origin: node, parent: parent ?? node)
        guard let handle = take(mirror.configuration, name, way, &pools, &routed) else {
            return nil
        }
        if received[name]?.users[target] == nil {
            received[name]?.users[target] = Self.firstWant(of: mirror)
            mirrored[target] = name
            tellUsers(of: name, &routed)
        }
        if worker == recorder {
            received[name]?.users[target] = Self.allEncodings(of: mirror.configuration)
        }
        reviewWants(of: name, &routed)
        gate(target, open: mirror.open, &routed)
        var made = mirror
        made.home = RelayTarget(worker: link, publication: handle)
        made.from = nil
        return made
    }

    /// Takes a publication of another node, or updates it; `nil` if there is no handle left.
    private mutating func take(
        _ configuration: PublicationConfiguration,
        _ name: StreamName,
        _ way: (origin: String, parent: String),
        _ pools: inout [WorkerIdentifiers],
        _ routed: inout RoutedCommands
    ) -> PublicationID? {
        guard let handle = received[name]?.handle ?? pools[link].publications.allocate() else {
            return nil
        }
        var configuration = configuration
        configuration.id = handle
        let new = Received(
            handle: handle,
            node: way.origin,
            parent: way.parent,
            configuration: configuration,
            isOpen: false
        )
        let known = received[name]
        guard
            known?.configuration != configuration || known?.isRenamed == true
                || known?.parent != way.parent
        else { return handle }
        received[name, default: new].configuration = configuration
        received[name]?.parent = way.parent
        received[name]?.isRenamed = false
        routed.link.append(.link(.receive(configuration, name, from: way.parent)))
        return handle
    }

    /// Lets a publication of another node go on from here to further nodes; returns whether there
    /// was a handle for it.
    ///
    /// `mirror` is one of theirs.
    mutating func passOn(
        _ mirror: Mirror,
        of name: StreamName,
        at node: String,
        to nodes: Set<String>,
        _ pools: inout [WorkerIdentifiers],
        _ routed: inout RoutedCommands
    ) -> Bool {
        let way = (origin: node, parent: node)
        guard take(mirror.configuration, name, way, &pools, &routed) != nil else { return false }
        gate(name, open: mirror.open, &routed)
        passOn(name, to: nodes, &routed)
        return true
    }

    /// Sets the nodes to which a publication of another node goes on from here; none ends that.
    mutating func passOn(
        _ name: StreamName,
        to nodes: Set<String>,
        _ routed: inout RoutedCommands
    ) {
        guard let known = received[name], known.onward != nodes else { return }
        received[name]?.onward = nodes
        routed.link.append(.link(.send(known.handle, as: name, to: nodes.sorted())))
        endUnused(name, &routed)
    }

    private mutating func endUnused(_ name: StreamName, _ routed: inout RoutedCommands) {
        guard let left = received[name], !left.isUsed else { return }
        received[name] = nil
        routed.link.append(.link(.end(left.handle)))
        routed.freed.append(.publication(worker: link, left.handle))
    }

    /// Encodings that a new mirror wants, one bit each: audio has one, and none is wanted of video
    /// before a viewer is there.
    private static func firstWant(of mirror: Mirror) -> UInt8 {
        guard mirror.configuration.kind == .audio else { return 0 }
        return mirror.from == nil ? 1 : 1 | LinkOrder.heldAudio
    }

    /// Encodings that an output wants of a publication, one bit each.
    ///
    /// Recordings and other outputs take the best encoding that comes. They want all of them, so
    /// that a narrow link that withholds the best one leaves them another, and so that none has to
    /// be waited for when the publisher ends the best one.
    private static func allEncodings(of configuration: PublicationConfiguration) -> UInt8 {
        let count = min(8, max(1, configuration.encodings.count))
        return UInt8.max >> UInt8(8 - count)
    }

    /// Gives what a mirror here is of the name that another home has for it; what is received and
    /// its other mirrors stay.
    private mutating func rename(_ mirror: RelayTarget, to name: StreamName) {
        guard let old = mirrored[mirror], old != name, received[name] == nil,
            var known = received.removeValue(forKey: old)
        else { return }
        known.isRenamed = true
        received[name] = known
        for user in known.users.keys { mirrored[user] = name }
    }

    /// Ends a mirror, and with the last one what comes from the other node.
    mutating func unmirror(_ target: RelayTarget, _ routed: inout RoutedCommands) {
        guard let name = mirrored.removeValue(forKey: target) else { return }
        received[name]?.users[target] = nil
        guard received[name]?.isUsed == true else { return endUnused(name, &routed) }
        tellUsers(of: name, &routed)
        reviewWants(of: name, &routed)
    }

    private func tellUsers(of name: StreamName, _ routed: inout RoutedCommands) {
        guard let received = received[name] else { return }
        let users = received.users.keys.sorted {
            ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index)
        }
        routed.link.append(.relay(received.handle, to: users))
    }

    private mutating func reviewWants(of name: StreamName, _ routed: inout RoutedCommands) {
        guard let known = received[name] else { return }
        let wanted = known.users.values.reduce(0, |)
        guard wanted != known.wanted else { return }
        received[name]?.wanted = wanted
        routed.link.append(.link(.want(known.handle, wanted)))
    }

    /// Takes the encodings that a worker wants of a mirror.
    mutating func want(
        _ encodings: UInt8,
        of mirror: RelayTarget,
        _ routed: inout RoutedCommands
    ) {
        guard let name = mirrored[mirror], received[name]?.users[mirror] != nil else { return }
        received[name]?.users[mirror] = encodings
        reviewWants(of: name, &routed)
    }
}
