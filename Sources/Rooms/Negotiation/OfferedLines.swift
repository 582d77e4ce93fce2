import RTP
import WorkerInterface

/// All m-lines of an offer, checked for consistency with one another.
struct OfferedLines: Sendable {
    private(set) var lines: [OfferedLine] = []
    /// Mids of the offer's BUNDLE group (RFC 9143 §5), empty if there is none.
    private(set) var bundle: [String]
    /// Index of the m-line whose transport attributes apply to all (RFC 9143 §7.3.2).
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

    /// Leaves one encoding of each video that may not be simulcast.
    mutating func refuseSimulcast(unless isAllowed: (OfferedMedia) -> Bool) {
        for index in lines.indices where lines[index].content?.kind == .video {
            guard !isAllowed(OfferedMedia(mid: lines[index].mid, kind: .video)) else { continue }
            lines[index].refuseSimulcast()
        }
    }

    /// Returns the m-line index of each mid.
    ///
    /// Throws if a mid is duplicated, or if a BUNDLE group names a missing mid or one mid twice.
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

    /// Checks that a payload type has one meaning on all bundled m-lines (RFC 9143 §9.1).
    private func checkPayloadTypes() throws(SDPError) {
        var meanings = PayloadTypeMap()
        for line in lines {
            guard let content = line.content else { continue }
            if let clash = meanings.merge(PayloadTypeMap(content.formats.mappings)) {
                throw SDPError(
                    line: line.media.line,
                    cause: "payload type \(clash) has another meaning on another m-line"
                )
            }
        }
    }

    /// Checks that an extension id has one meaning on all bundled m-lines (RFC 9143 §9.2).
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
