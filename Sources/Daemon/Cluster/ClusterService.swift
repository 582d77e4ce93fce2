import ControlPlane
import Kernel
import Links
import Nodes
import RTP
import Registry
import Sockets
import WorkerInterface

/// A node's connection with the others: its logic, the registry's client and the links.
struct ClusterService {
    let registry: RegistryClient
    var links: Links
    /// Set once the rooms that are left from before are known.
    private(set) var core: Cluster
    private var nextLoad: Instant
    let counters: LinkFigures
    /// Orders for the link thread.
    private var orders: [LinkOrder] = []

    /// Opens the link's socket and begins to connect to the registry; `nil` without a cluster.
    struct Opening {
        let registry: RegistryClient
        let links: Links
        /// Socket of the datagrams, on the port of the links.
        let socket: UDPSocket
        let counters = LinkFigures()
        fileprivate let node: NodeName
        fileprivate let region: String?
        fileprivate let announced: Address?

        init?(_ settings: ClusterSettings) throws(StartError) {
            guard let registry = settings.registry, let node = settings.node,
                let address = settings.link
            else { return nil }
            self.node = node
            region = settings.region
            announced = settings.linkAnnounce
            do throws(SystemError) {
                let listener = try TCPListener.open(address)
                links = Links(listener, try Self.identity(), own: node)
                socket = try UDPSocket.open(listener.address)
                self.registry = try RegistryClient(registry, name: "sfud \(node)")
            } catch {
                throw .system("link", "\(error)")
            }
        }

        private static func identity() throws(SystemError) -> LinkIdentity {
            do throws(LinkError) {
                return try LinkIdentity()
            } catch {
                throw SystemError(operation: "OpenSSL makes no certificate", number: 0)
            }
        }
    }

    init(_ opening: Opening, _ control: ControlPlane, at now: Instant) {
        registry = opening.registry
        links = opening.links
        counters = opening.counters
        let setup = NodeSetup(
            name: opening.node,
            boot: control.bootID,
            link: opening.announced?.endpointText ?? opening.links.address,
            fingerprint: opening.links.fingerprint,
            region: opening.region
        )
        let positions = control.positions
        let rooms = control.roomNames.map { ($0, positions[$0] ?? 0) }
        core = Cluster(
            setup,
            rooms: Dictionary(uniqueKeysWithValues: rooms),
            places: control.nodesAwaited.compactMap(NodeName.init(rawValue:)),
            at: now
        )
        nextLoad = now
    }

    var deadline: Instant { min(core.deadline, links.deadline ?? core.deadline) }

    /// Lends the logic.
    mutating func withCore<Result>(_ body: (inout Cluster) -> Result) -> Result { body(&core) }

    /// Tells the logic how much this node has to do, once a second or when that changes its state.
    mutating func note(_ control: ControlPlane, at now: Instant) {
        let state: NodeState = control.acceptsRooms ? .up : .draining
        guard nextLoad <= now || state != core.state else { return }
        nextLoad = now.advanced(milliseconds: 1_000)
        var load = NodeLoad()
        load.state = state
        load.load = control.meanLoad
        load.rooms = control.roomCount
        load.participants = control.participantCount
        load.places = max(0, control.roomLimit - control.roomCount)
        core.note(load, at: now)
    }

    /// Takes what the registry has said.
    mutating func takeUpdates(at now: Instant) {
        for update in registry.updates.drain().messages { core.receive(update, at: now) }
    }

    /// Orders for the link thread, in order.
    mutating func takeOrders() -> [LinkOrder] {
        defer { orders = [] }
        return orders
    }

    /// Lets this node's lease on the rooms of a home that has died last longer.
    mutating func prolongLease(of home: NodeName) { orders.append(.prolong(home: home.rawValue)) }

    /// Ends the link to a node; of one that is forgotten the datagrams end, too.
    mutating func disconnect(_ node: NodeName) {
        links.disconnect(node)
        if core.address(of: node) == nil { orders.append(.disconnect(node.rawValue)) }
    }

    /// Takes what the links have brought.
    mutating func takeNews(at now: Instant) {
        for news in links.takeNews() {
            switch news {
            case .up(let node): core.linkChanged(node, isUp: true, at: now)
            case .keys(let node, let keys):
                guard let text = core.address(of: node), let address = Address(endpoint: text)
                else { continue }
                orders.append(.connect(node.rawValue, address, keys))
            case .down(let node): core.linkChanged(node, isUp: false, at: now)
            case .refused(let node): core.linkRefused(node)
            case .message(let node, let message): core.receive(message, from: node, at: now)
            case .roundTrip(let node, let milliseconds):
                core.noteRoundTrip(milliseconds, of: node)
            }
        }
    }
}
