import RTP
import WorkerInterface

/// Answer to an offer, in the forms for the client, the worker and the control plane.
struct AnsweredSession {
    let local: LocalParameters
    let identifier: UInt64
    let version: UInt64
    let transport: NegotiatedTransport
    let offer: SessionDescription
    let offered: OfferedLines
    let mediaDirections: MediaDirections
    /// Most bits a second that the client may send on each m-line as audio; `nil`: not limited.
    let audioBitrates: [Int?]

    /// SDP answer for the client.
    var description: SessionDescription {
        var answer = SessionDescription()
        answer.identifier = identifier
        answer.version = version
        answer.isICELite = true
        answer.iceOptions = ["ice2"]  // RFC 8445 §10
        answer.mixesExtensionForms = offer.mixesExtensionForms
        answer.media = offered.lines.indices.map { index in
            if let content = offered.lines[index].content {
                accepted(offered.lines[index], content, at: index)
            } else {
                rejected(offered.lines[index])
            }
        }
        if !offered.bundle.isEmpty {
            let accepted = Set(offered.lines.filter { $0.content != nil }.map(\.mid))
            let bundle = offered.bundle.filter(accepted.contains)
            if !bundle.isEmpty { answer.bundles = [BundleGroup(mids: bundle)] }
        }
        return answer
    }

    /// Returns a rejected m-line: as offered, with port 0 (RFC 8829 §5.3.1).
    private func rejected(_ line: OfferedLine) -> MediaDescription {
        var media = MediaDescription(
            media: line.media.media,
            port: 0,
            transportProtocol: line.media.transportProtocol
        )
        media.formats = line.media.formats.map { FormatDescription(payloadType: $0.payloadType) }
        media.otherFormats = line.media.otherFormats
        media.address = "0.0.0.0"
        media.mid = line.media.mid
        media.direction = .inactive
        return media
    }

    private func accepted(
        _ line: OfferedLine,
        _ content: OfferedLine.Content,
        at index: Int
    ) -> MediaDescription {
        let first = local.candidates.first
        var media = MediaDescription(
            media: line.media.media,
            port: first?.port ?? 9,
            transportProtocol: line.media.transportProtocol
        )
        media.address = first?.address ?? "0.0.0.0"
        media.mid = line.mid
        media.direction = mediaDirections.directions[index].mirrored
        media.transport = transportAttributes
        // Candidates are on each m-line, because aiortc reads those of the last one that shares a
        // transport.
        media.candidates = candidates
        media.multiplexesRTCP = true
        media.reducedSizeRTCP = line.media.reducedSizeRTCP
        media.receiverRoundTrip = line.media.receiverRoundTrip
        media.mixesExtensionForms = line.media.mixesExtensionForms
        media.formats = content.formats.descriptions(limitedTo: audioBitrates[index])
        media.extensions = content.extensions.attributes
        if mediaDirections.directions[index].sends, !content.encodings.rids.isEmpty {
            media.rids = content.encodings.rids
            media.simulcast = SimulcastAttribute(receive: media.rids.map { [$0.id] })
        }
        if let slot = mediaDirections.lines[index].slot { describe(slot, content, in: &media) }
        return media
    }

    /// Adds the slot's MSID and SSRCs to an m-line on which the client receives.
    private func describe(
        _ slot: NegotiatedMediaLine.Slot,
        _ content: OfferedLine.Content,
        in media: inout MediaDescription
    ) {
        media.streams = StreamAttribute(
            stream: "slots-\(slot.pair)",
            track: "slot-\(media.mid ?? "")"
        )
        media.sources = [SourceAttribute(ssrc: slot.ssrc, cname: local.cname)]
        if content.formats.repairs, let rtx = slot.rtxSSRC {
            media.sources.append(SourceAttribute(ssrc: rtx, cname: local.cname))
            media.sourceGroups = [
                SourceGroupAttribute(semantics: "FID", ssrcs: [slot.ssrc, rtx])
            ]
        }
    }

    private var transportAttributes: TransportAttributes {
        var attributes = TransportAttributes()
        attributes.fragment = transport.ice.localFragment
        attributes.password = transport.ice.localPassword
        attributes.fingerprints = [
            FingerprintAttribute(
                hash: local.fingerprint.algorithm.name,
                digest: local.fingerprint.digest
            )
        ]
        attributes.setup = transport.role == .server ? .passive : .active
        return attributes
    }

    /// Host candidates for RTP and RTCP together, the most preferred first (RFC 8445 §5.1.2.1).
    private var candidates: [CandidateAttribute] {
        local.candidates.prefix(255).enumerated().map { index, candidate in
            let preference: UInt32 =
                switch candidate.transport {
                case .udp: 65_535 - UInt32(index)
                // Direction preference 4 is for passive candidates (RFC 6544 §4.2), and ranks below
                // all UDP.
                case .tcpPassive: 4 << 13 | (8_191 - UInt32(index))
                }
            return CandidateAttribute(
                foundation: "\(index + 1)",
                priority: 126 << 24 | preference << 8 | 255,
                address: candidate.address,
                port: candidate.port,
                transport: candidate.transport
            )
        }
    }
}

extension AnsweredSession {
    /// Transport configuration for the worker.
    var configuration: TransportConfiguration {
        let accepted = offered.lines.filter { $0.content != nil }
        var configuration = TransportConfiguration(
            ice: transport.ice,
            dtlsRole: transport.role,
            fingerprints: transport.fingerprints,
            // One m-line that requires compound RTCP requires it for the whole transport.
            reducedSizeRTCP: accepted.allSatisfy { $0.media.reducedSizeRTCP },
            cname: local.cname
        )
        configuration.slots.reserveCapacity(mediaDirections.lines.count { $0.slot != nil })
        for (index, line) in offered.lines.enumerated() {
            guard let content = line.content else { continue }
            let agreed = mediaDirections.lines[index]
            if let publication = agreed.publication {
                configuration.publications.append(
                    PublicationConfiguration(
                        id: publication,
                        mid: line.mid,
                        kind: content.kind,
                        formats: content.formats.mappings,
                        extensions: content.extensions.incoming,
                        encodings: content.encodings.encodings
                    )
                )
            }
            if let slot = agreed.slot {
                configuration.slots.append(
                    SlotConfiguration(
                        id: slot.id,
                        mid: line.mid,
                        kind: content.kind,
                        ssrc: slot.ssrc,
                        rtxSSRC: content.formats.repairs ? slot.rtxSSRC : nil,
                        formats: content.formats.mappings,
                        extensions: content.outgoingExtensions
                    )
                )
            }
        }
        return configuration
    }

    /// Result for each m-line, for the control plane.
    var media: [AnsweredMedia] {
        offered.lines.indices.map { index in
            AnsweredMedia(
                mid: offered.lines[index].mid,
                kind: offered.lines[index].kind,
                direction: mediaDirections.directions[index],
                publication: mediaDirections.lines[index].publication,
                slot: mediaDirections.lines[index].slot?.id,
                pair: mediaDirections.lines[index].slot?.pair,
                refused: mediaDirections.refusals[index],
                isRejected: offered.lines[index].content == nil,
                lacksCodec: offered.lines[index].lacksCodec
            )
        }
    }
}

extension Fingerprint.Algorithm {
    /// Name in `a=fingerprint`.
    var name: String {
        switch self {
        case .sha256: "sha-256"
        case .sha384: "sha-384"
        case .sha512: "sha-512"
        }
    }
}
