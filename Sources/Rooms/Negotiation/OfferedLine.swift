import RTP
import WorkerInterface

/// M-line of an offer, with the parts that sfud accepts.
struct OfferedLine: Sendable {
    /// Accepted content of an m-line.
    struct Content: Sendable {
        var kind: MediaKind
        var formats: FormatSelection
        var extensions: ExtensionSelection
        var encodings: EncodingSelection

        /// Extensions in packets that the client receives.
        ///
        /// With transport-wide feedback the receiver does not need send times. They would add four
        /// bytes to each packet, which audio on a thin path cannot spare.
        var outgoingExtensions: ExtensionMap {
            var extensions = extensions.outgoing
            let reports = formats.mappings.contains { $0.feedback.contains(.transportWide) }
            if reports, extensions[.transportSequenceNumber] != 0 {
                extensions[.absoluteSendTime] = 0
            }
            return extensions
        }
    }

    let media: MediaDescription
    let mid: String
    let kind: MediaKind?
    /// Offered direction from the client's view.
    let direction: Direction
    /// Accepted content; `nil` for a rejected m-line.
    private(set) var content: Content?
    /// Whether it is rejected because it offers no codec that sfud takes.
    let lacksCodec: Bool

    /// Selects the content of an m-line; without `hasTransport` it is rejected in any case.
    init(
        _ media: MediaDescription,
        session: SessionDescription,
        hasTransport: Bool
    ) throws(SDPError) {
        self.media = media
        mid = media.mid ?? ""
        kind = Self.kind(of: media)
        direction = media.direction ?? session.direction ?? .sendrecv
        guard hasTransport, let kind else {
            content = nil
            lacksCodec = false
            return
        }
        let extensions = ExtensionSelection(media)
        let formats = FormatSelection(
            media,
            kind: kind,
            transportWide: extensions.all[.transportSequenceNumber] != 0
        )
        let encodings = EncodingSelection(
            media,
            formats: formats,
            hasRID: extensions.incoming[.rid] != 0
        )
        lacksCodec = formats.isEmpty
        content =
            formats.isEmpty
            ? nil
            : Content(
                kind: kind,
                formats: formats,
                extensions: extensions,
                encodings: encodings
            )
    }

    /// Leaves one encoding of a video, as if the client had offered no other.
    mutating func refuseSimulcast() {
        guard let formats = content?.formats else { return }
        content?.encodings = EncodingSelection(media, formats: formats, hasRID: false)
    }

    private static func kind(of media: MediaDescription) -> MediaKind? {
        switch media.media {
        case "audio" where media.isRTP: .audio
        case "video" where media.isRTP: .video
        default: nil
        }
    }

    /// Returns whether sfud could accept an m-line on its own.
    static func isUsable(_ media: MediaDescription, isBundled: Bool) -> Bool {
        // Port 0 means rejection, unless bundle-only refers to the bundle's transport (RFC 9143
        // §6).
        guard media.port != 0 || (media.isBundleOnly && isBundled) else { return false }
        guard kind(of: media) != nil, media.multiplexesRTCP else { return false }
        // All profiles of RFC 8829 §5.1.2 mean DTLS and SRTP here.
        return media.transportProtocol.hasSuffix("RTP/SAVPF")
            || media.transportProtocol.hasSuffix("RTP/SAVP")
    }
}
