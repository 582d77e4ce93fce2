import RTP
import WorkerInterface

/// Encodings that a client offers to send on one m-line.
struct EncodingSelection: Sendable {
    /// Maximum number of simulcast streams; the answer omits the others (RFC 8853 §5.3.2).
    static let maximum = 4

    private(set) var encodings: [EncodingConfiguration]
    /// Accepted RIDs for the answer; empty without simulcast.
    private(set) var rids: [RIDAttribute] = []

    /// Selects the encodings of an m-line.
    ///
    /// Simulcast needs packets that carry their RID: without `hasRID` there is one encoding.
    init(_ media: MediaDescription, formats: FormatSelection, hasRID: Bool) {
        if hasRID, let simulcast = media.simulcast {
            rids = Self.rids(media, streams: simulcast.send, formats: formats)
        }
        guard rids.isEmpty else {
            // Packets carry their RID; the SDP does not say which `a=ssrc` belongs to which RID.
            encodings = rids.map { EncodingConfiguration(rid: $0.id) }
            return
        }
        let pair = media.sourceGroups.first { $0.semantics == "FID" && $0.ssrcs.count == 2 }
        encodings = [
            EncodingConfiguration(
                ssrc: pair?.ssrcs[0] ?? media.sources.first?.ssrc,
                rtxSSRC: formats.repairs ? pair?.ssrcs[1] : nil
            )
        ]
    }

    /// Returns the streams with an `a=rid` and a remaining payload type; the first of alternatives.
    private static func rids(
        _ media: MediaDescription,
        streams: [[String]],
        formats: FormatSelection
    ) -> [RIDAttribute] {
        var chosen: [RIDAttribute] = []
        for stream in streams where chosen.count < maximum {
            guard let id = stream.first,
                var rid = media.rids.first(where: { $0.id == id && $0.sends }),
                !chosen.contains(where: { $0.id == id })
            else { continue }
            let isRestricted = !rid.payloadTypes.isEmpty
            rid.payloadTypes.removeAll { payloadType in
                !formats.mappings.contains { $0.payloadType == payloadType }
            }
            guard !isRestricted || !rid.payloadTypes.isEmpty else { continue }
            rid.sends = false
            chosen.append(rid)
        }
        return chosen
    }
}
