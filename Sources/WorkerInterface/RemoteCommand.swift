/// Command of a home for a worker of another node, as it goes over the link.
///
/// Handles are the home's; the node has its own. Places of relay targets are the home's too, with
/// the node that each is at.
package enum RemoteCommand: Hashable, Sendable, Codable {
    case configure(TransportID, TransportConfiguration)
    /// Keeps the outcome of a transport's offers, encoded, for a home that goes on with the room.
    case keep(TransportID, room: String, [UInt8])
    /// Continues a transport, just configured, where the node's process before left it.
    case resume(TransportID, wasConnected: Bool)
    case close(TransportID)
    case gate(PublicationID, open: Bool)
    case bind(SlotID, Binding?)
    case limit(PublicationID, LayerCap)
    case feature(PublicationID, Bool)
    /// `via` is the node by way of which the media comes, where that is not the first one. A node
    /// of an earlier version takes it directly.
    case mirror(Mirror, of: RemotePlace, via: String?)
    case unmirror(PublicationID)
    case relay(PublicationID, to: [RelayTarget], at: [RemotePlace])
    case explain(SlotID, token: UInt64)
    case reportTransports([TransportID], token: UInt64)
    case fence(epoch: UInt64)

    /// Whether the figures are within the limits of a worker: it trusts its control plane.
    package var isValid: Bool {
        switch self {
        case .configure(_, let configuration):
            configuration.publications.count <= Self.listLimit
                && configuration.slots.count <= Self.listLimit
                && configuration.publications.allSatisfy(\.isValid)
                && Self.areUnique(configuration.publications.map(\.id))
                && Self.areUnique(configuration.slots.map(\.id))
                && configuration.slots.allSatisfy { $0.formats.count <= Self.listLimit }
        case .mirror(let mirror, _, _): mirror.configuration.isValid
        case .relay(_, let targets, let places):
            targets.count == places.count && targets.count <= Self.listLimit
        case .reportTransports(let ids, _): ids.count <= Self.transportLimit
        case .bind(_, let binding): binding.map { (0...1_000).contains($0.priority) } ?? true
        case .keep(_, _, let negotiation): negotiation.count <= Self.keptLimit
        case .resume, .close, .gate, .limit, .feature, .unmirror, .explain, .fence: true
        }
    }

    private static func areUnique(_ handles: [some Hashable]) -> Bool {
        Set(handles).count == handles.count
    }

    fileprivate static let listLimit = 1_024
    private static let transportLimit = 65_536
    private static let keptLimit = 1 << 20
}

extension PublicationConfiguration {
    /// Whether a worker can carry it.
    fileprivate var isValid: Bool {
        (1...CoreLimits.encodingsPerPublication).contains(encodings.count)
            && formats.count <= RemoteCommand.listLimit
    }
}

/// A worker of a node of the cluster.
package struct RemotePlace: Hashable, Sendable, Codable {
    package var node: String
    package var worker: Int

    package init(node: String, worker: Int) {
        self.node = node
        self.worker = worker
    }
}
