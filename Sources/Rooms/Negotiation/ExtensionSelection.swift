import RTP

/// The header extensions of an offered m-line that sfud knows, by the way they go.
///
/// Those with an id past 14 would need the two-byte form, which sfud reads but does not write:
/// they are left out, as are those that a session names for all its m-lines at once.
struct ExtensionSelection: Sendable {
    /// What the client puts into the packets it sends.
    private(set) var incoming = ExtensionMap()
    /// What sfud puts into the packets the client receives.
    private(set) var outgoing = ExtensionMap()
    /// Both ways together.
    private(set) var all = ExtensionMap()
    /// For the answer, in the offer's order.
    private(set) var attributes: [ExtensionAttribute] = []

    init(_ media: MediaDescription) {
        var known: Set<ExtensionKind> = []
        for offered in media.extensions {
            guard let id = UInt8(exactly: offered.id), (1...14).contains(id),
                let kind = ExtensionKind(uri: offered.uri), known.insert(kind).inserted
            else { continue }
            let way = offered.direction ?? .sendrecv
            all[kind] = id
            if way.sends { incoming[kind] = id }
            // A slot carries one encoding: it has no name to tell. The answer has the RIDs all the
            // same: Chromium never again offers what was once left out, and then no simulcast.
            let isOfEncodings = kind == .rid || kind == .repairedRID
            if way.receives, !isOfEncodings { outgoing[kind] = id }
            attributes.append(
                ExtensionAttribute(
                    id: offered.id,
                    direction: offered.direction?.mirrored,
                    uri: offered.uri
                )
            )
        }
    }
}
