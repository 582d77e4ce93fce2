import RTP

/// Header extensions of an offered m-line that sfud supports, by direction.
///
/// Extensions with an id above 14 are omitted: they need the two-byte form, which sfud reads but
/// does not write. Session-level extensions are omitted too.
struct ExtensionSelection: Sendable {
    /// Extensions in packets that the client sends.
    private(set) var incoming = ExtensionMap()
    /// Extensions in packets that the client receives.
    private(set) var outgoing = ExtensionMap()
    /// Extensions of both directions.
    private(set) var all = ExtensionMap()
    /// Attributes for the answer, in the offer's order.
    private(set) var attributes: [ExtensionAttribute] = []

    init(_ media: MediaDescription) {
        var known: Set<ExtensionKind> = []
        for offered in media.extensions {
            guard let id = UInt8(exactly: offered.id), (1...14).contains(id),
                let kind = ExtensionKind(uri: offered.uri), kind != .playoutDelay,
                known.insert(kind).inserted
            else { continue }
            let way = offered.direction ?? .sendrecv
            all[kind] = id
            if way.sends { incoming[kind] = id }
            // A slot carries one encoding, so RIDs are not sent. The answer has the RID extensions
            // all the same: Chromium never again offers an extension that an answer omitted, and
            // simulcast would be lost.
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
