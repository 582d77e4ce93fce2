import RTP
import WorkerInterface

/// Negotiated state of an m-line, kept from one offer to the next.
struct NegotiatedMediaLine: Sendable, Codable {
    struct Slot: Sendable, Codable {
        var id: SlotID
        var ssrc: SSRC
        /// SSRC for RTX, assigned with the first codec that has RTX and then kept.
        var rtxSSRC: SSRC?
        /// Number that an audio and a video slot share to form one stream (MSID) for the client.
        ///
        /// The client then plays their media in sync (RFC 8830 §3).
        var pair: Int
    }

    var mid: String
    var media: String
    var isRejected: Bool
    var formats: [FormatMapping] = []
    var extensions = ExtensionMap()
    var publication: PublicationID?
    var slot: Slot?

    /// Checks that `offered` is consistent with this m-line; throws otherwise.
    func check(_ offered: OfferedLine, index: Int) throws(SDPError) {
        let line = offered.media.line
        guard offered.mid == mid else {
            // Only a rejected m-line may be reused for another purpose (RFC 8829 §5.2.2).
            guard isRejected else {
                throw SDPError(line: line, cause: "m-line \(index + 1) has changed its mid")
            }
            return
        }
        guard isRejected || offered.media.media == media else {
            throw SDPError(line: line, cause: "m-line \(index + 1) has changed its kind")
        }
        guard !isRejected, let content = offered.content else { return }
        var meanings = PayloadTypeMap(formats)
        if let clash = meanings.merge(PayloadTypeMap(content.formats.mappings)) {
            // RFC 3264 §8.3.2
            throw SDPError(line: line, cause: "payload type \(clash) has changed its meaning")
        }
        for kind in ExtensionKind.allCases where extensions[kind] != 0 {
            let id = content.extensions.all[kind]
            guard id == 0 || id == extensions[kind] else {
                // RFC 8285 §6
                throw SDPError(line: line, cause: "extmap id \(extensions[kind]) has moved")
            }
        }
    }
}

/// Map from payload types to formats, with RTX formats marked.
struct PayloadTypeMap: Sendable {
    private struct Meaning: Equatable {
        var format: MediaFormat
        var isRepair: Bool
    }

    private var meanings = [Meaning?](repeating: nil, count: 128)

    init() {}

    init(_ mappings: [FormatMapping]) {
        for mapping in mappings {
            meanings[Int(mapping.payloadType & 127)] =
                Meaning(format: mapping.format, isRepair: false)
            guard let repair = mapping.rtxPayloadType else { continue }
            meanings[Int(repair & 127)] = Meaning(format: mapping.format, isRepair: true)
        }
    }

    /// Merges another map; returns a payload type that has different meanings in both, if any.
    mutating func merge(_ others: Self) -> Int? {
        for payloadType in meanings.indices {
            guard let other = others.meanings[payloadType] else { continue }
            guard meanings[payloadType] == nil || meanings[payloadType] == other else {
                return payloadType
            }
            meanings[payloadType] = other
        }
        return nil
    }
}
