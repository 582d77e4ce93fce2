import RTP

/// One m-line of an offer, and what sfud can take of it.
struct OfferedLine: Sendable {
    /// What an m-line that is not rejected agrees on.
    struct Content: Sendable {
        var kind: MediaKind
        var formats: FormatSelection
        var extensions: ExtensionSelection
        var encodings: EncodingSelection
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

/// All m-lines of an offer, checked against one another.
struct OfferedLines: Sendable {
    private(set) var lines: [OfferedLine] = []
    /// The offer's BUNDLE group (RFC 9143 §5), empty where it has none.
    private(set) var bundle: [String]
    /// The m-line whose transport attributes hold for all (RFC 9143 §7.3.2).
    private(set) var tagged: Int

    init(_ session: SessionDescription) throws(SDPError) {
        guard !session.media.isEmpty else {
            throw SDPError(line: session.lineCount, cause: "no m-line")
        }
        guard !session.isICELite else {
            // Neither side would send a check (RFC 8445 §6.1.1).
            throw SDPError(
                line: session.media[0].line,
                cause: "the client is ICE-lite, as sfud is"
            )
        }
        let places = try Self.places(session)
        bundle = session.bundles.first?.mids ?? []
        let members = Set(bundle)
        var alone: Int?
        tagged = bundle.first.flatMap { places[$0] } ?? 0

        for (index, media) in session.media.enumerated() {
            let isBundled = media.mid.map(members.contains) ?? false
            var hasTransport = OfferedLine.isUsable(media, isBundled: isBundled)
            if !isBundled, !bundle.isEmpty || alone != nil { hasTransport = false }
            let line = try OfferedLine(media, session: session, hasTransport: hasTransport)
            guard line.content == nil || media.mid != nil else {
                throw SDPError(line: media.line, cause: "m-line without mid")
            }
            if line.content != nil, bundle.isEmpty { alone = index }
            lines.append(line)
        }
        let candidates = bundle.isEmpty ? Array(lines.indices) : bundle.compactMap { places[$0] }
        tagged = candidates.first { lines[$0].content != nil } ?? tagged
        try checkPayloadTypes()
        try checkExtensions()
        try checkSources()
    }

    /// The m-line of each mid; every mid has one, and every bundled mid is there.
    private static func places(_ session: SessionDescription) throws(SDPError) -> [String: Int] {
        var places: [String: Int] = [:]
        for (index, media) in session.media.enumerated() {
            guard let mid = media.mid else { continue }
            guard places.updateValue(index, forKey: mid) == nil else {
                throw SDPError(line: media.line, cause: "mid is there twice")
            }
        }
        var grouped: Set<String> = []
        for group in session.bundles {
            for mid in group.mids {
                guard places[mid] != nil else {
                    throw SDPError(line: group.line, cause: "BUNDLE names a mid without m-line")
                }
                guard grouped.insert(mid).inserted else {
                    throw SDPError(line: group.line, cause: "BUNDLE names a mid twice")
                }
            }
        }
        return places
    }

    /// A payload type means the same on all bundled m-lines (RFC 9143 §9.1).
    private func checkPayloadTypes() throws(SDPError) {
        var meanings = PayloadMeanings()
        for line in lines {
            guard let content = line.content else { continue }
            if let clash = meanings.merge(PayloadMeanings(content.formats.mappings)) {
                throw SDPError(
                    line: line.media.line,
                    cause: "payload type \(clash) has another meaning on another m-line"
                )
            }
        }
    }

    /// An id means the same on all bundled m-lines (RFC 9143 §9.2).
    private func checkExtensions() throws(SDPError) {
        var meanings = [ExtensionKind?](repeating: nil, count: 256)
        for line in lines {
            guard let content = line.content else { continue }
            for kind in ExtensionKind.allCases where content.extensions.all[kind] != 0 {
                let id = Int(content.extensions.all[kind])
                guard meanings[id] == nil || meanings[id] == kind else {
                    throw SDPError(
                        line: line.media.line,
                        cause: "extmap id \(id) has another meaning on another m-line"
                    )
                }
                meanings[id] = kind
            }
        }
    }

    private func checkSources() throws(SDPError) {
        var taken: Set<SSRC> = []
        for line in lines where line.content != nil && line.direction.sends {
            for source in line.media.sources {
                guard taken.insert(source.ssrc).inserted else {
                    throw SDPError(
                        line: line.media.line,
                        cause: "ssrc is on another m-line as well"
                    )
                }
            }
        }
    }
}

/// What each payload type stands for.
struct PayloadMeanings: Sendable {
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

    /// Takes in the others' meanings; returns a payload type that both have for different things.
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
