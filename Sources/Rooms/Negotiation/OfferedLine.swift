import RTP
import WorkerInterface

/// One m-line of an offer, and what sfud can take of it.
struct OfferedLine: Sendable {
    /// What an m-line that is not rejected agrees on.
    struct Content: Sendable {
        var kind: MediaKind
        var formats: FormatSelection
        var extensions: ExtensionSelection
        var encodings: EncodingSelection

        /// What sfud puts into the packets the client receives.
        ///
        /// Who reports arrivals by number (transport-wide feedback) makes nothing of send times:
        /// they would be four bytes of each packet, which on a thin path the sound lacks.
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
    /// What the client offers to do.
    let direction: Direction
    /// `nil`: rejected.
    let content: Content?

    /// Without a transport to go on, the m-line is rejected whatever it offers.
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

    private static func kind(of media: MediaDescription) -> MediaKind? {
        switch media.media {
        case "audio" where media.isRTP: .audio
        case "video" where media.isRTP: .video
        default: nil
        }
    }

    /// Whether sfud could take an m-line, were it alone.
    static func isUsable(_ media: MediaDescription, isBundled: Bool) -> Bool {
        // Port 0 is a rejection unless bundle-only says where the media goes (RFC 9143 §6).
        guard media.port != 0 || (media.isBundleOnly && isBundled) else { return false }
        guard kind(of: media) != nil, media.multiplexesRTCP else { return false }
        // RFC 8829 §5.1.2 names the profiles that all mean DTLS and SRTP here.
        return media.transportProtocol.hasSuffix("RTP/SAVPF")
            || media.transportProtocol.hasSuffix("RTP/SAVP")
    }
}
