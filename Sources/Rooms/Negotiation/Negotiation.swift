package import RTP
import WorkerInterface

/// Negotiated SDP state of one transport, across all its offers.
///
/// The client always offers and sfud always answers (RFC 8829 §5.3). All media is bundled on one
/// transport; an m-line outside the bundle is rejected.
package struct Negotiation: Sendable, Codable {
    private var local: LocalParameters
    private var session: Session?
    private var lines: [NegotiatedMediaLine] = []

    /// State that all m-lines share.
    private struct Session: Sendable, Codable {
        var identifier: UInt64
        var version: UInt64
        var transport: NegotiatedTransport
        var ssrcs: SSRCGenerator
        /// `sess-id` of the client's last offer, which a peer connection keeps (RFC 8829 §5.2.1).
        var offered: UInt64?
    }

    package init(local: LocalParameters) { self.local = local }

    /// Takes the addresses and the certificate of a new process for the answers to come.
    mutating func take(_ parameters: LocalParameters) {
        let cname = local.cname
        local = parameters
        local.cname = cname
    }

    /// Handles of the m-lines' publications and slots.
    var handles: Room.Handles {
        var handles = Room.Handles()
        handles.publications = lines.compactMap(\.publication)
        handles.slots = lines.compactMap(\.slot?.id)
        return handles
    }

    /// Gives the objects of the m-lines other names; returns whether each has one.
    mutating func rename(
        publication newPublication: (PublicationID) -> PublicationID?,
        slot newSlot: (SlotID) -> SlotID?
    ) -> Bool {
        for index in lines.indices {
            if let publication = lines[index].publication {
                guard let name = newPublication(publication) else { return false }
                lines[index].publication = name
            }
            if let slot = lines[index].slot {
                guard let name = newSlot(slot.id) else { return false }
                lines[index].slot?.id = name
            }
        }
        return true
    }

    /// Whether an offer comes from another peer connection than those before: it has another
    /// certificate (RFC 8842 §4), or is of another session (RFC 8829 §5.2.1).
    func isOfAnotherPeer(_ offer: String) -> Bool {
        guard let session, let description = try? SessionDescription(offer),
            let offered = try? OfferedLines(description),
            offered.lines.contains(where: { $0.content != nil })
        else { return false }
        return session.offered.map { $0 != description.identifier } ?? false
            || !session.transport.hasFingerprints(of: description.transport(of: offered))
    }

    /// Answers an offer, the first or a later one.
    ///
    /// On error nothing changes and no identifier is allocated. `policy` returns the reason for
    /// which the client may not send on an m-line, or `nil` if it may. `audioBitrate` returns the
    /// most bits a second of audio that it may send there, or `nil`. Both are called again for each
    /// offer.
    package mutating func answer(
        _ offer: String,
        identifiers: inout WorkerIdentifiers,
        random: inout some RandomNumberGenerator,
        policy: (OfferedMedia) -> String?,
        audioBitrate: (OfferedMedia) -> Int? = { _ in nil },
        simulcast: (OfferedMedia) -> Bool = { _ in true }
    ) throws(SDPError) -> Answer {
        let description = try SessionDescription(offer)
        var offered = try OfferedLines(description)
        offered.refuseSimulcast(unless: simulcast)
        try checkContinuity(description, offered)
        var session = try nextSession(description, offered, random: &random)

        var mediaDirections = MediaDirections(previous: lines, offered: offered, policy: policy)
        try mediaDirections.allocate(from: &identifiers, ssrcs: &session.ssrcs)

        let answered = AnsweredSession(
            local: local,
            identifier: session.identifier,
            version: session.version,
            transport: session.transport,
            offer: description,
            offered: offered,
            mediaDirections: mediaDirections,
            audioBitrates: offered.lines.enumerated().map { index, line in
                guard mediaDirections.directions[index].sends, line.content?.kind == .audio else {
                    return nil
                }
                return audioBitrate(OfferedMedia(mid: line.mid, kind: .audio))
            }
        )
        let isICERestart =
            self.session.map { $0.transport.ice != session.transport.ice } ?? false
        let ended = mediaDirections.ended(of: lines)
        session.offered = description.identifier
        self.session = session
        lines = mediaDirections.lines
        return Answer(
            sdp: answered.description.text,
            configuration: answered.configuration,
            media: answered.media,
            endedPublications: ended.publications,
            endedSlots: ended.slots,
            isICERestart: isICERestart
        )
    }

    /// Checks that m-lines keep their positions (RFC 3264 §8).
    private func checkContinuity(
        _ description: SessionDescription,
        _ offered: OfferedLines
    ) throws(SDPError) {
        guard offered.lines.count >= lines.count else {
            throw SDPError(
                line: description.lineCount,
                cause: "fewer m-lines than in the offer before"
            )
        }
        for (index, line) in lines.enumerated() {
            try line.check(offered.lines[index], index: index)
        }
    }

    private func nextSession(
        _ description: SessionDescription,
        _ offered: OfferedLines,
        random: inout some RandomNumberGenerator
    ) throws(SDPError) -> Session {
        if var session, offered.lines.allSatisfy({ $0.content == nil }) {
            // No accepted m-line describes the transport, so it stays unchanged.
            session.version += 1
            return session
        }
        let transport = try NegotiatedTransport(
            description.transport(of: offered),
            line: offered.lines[offered.tagged].media.line,
            previous: session?.transport,
            random: &random
        )
        guard var session else {
            return Session(
                // Positive in 64 bits (RFC 8829 §5.2.1).
                identifier: random.next() >> 1,
                version: 1,
                transport: transport,
                ssrcs: SSRCGenerator(random: &random)
            )
        }
        session.version += 1
        session.transport = transport
        return session
    }
}

extension SessionDescription {
    /// Attributes of the transport that carries the bundle.
    fileprivate func transport(of offered: OfferedLines) -> TransportAttributes {
        let tagged = offered.lines[offered.tagged].media
        let first = bundles.first?.mids.first
        var attributes = tagged.transport.completed(by: transport)
        if let suggested = media.first(where: { $0.mid == first }) {
            attributes = attributes.completed(by: suggested.transport)
        }
        return attributes
    }
}
