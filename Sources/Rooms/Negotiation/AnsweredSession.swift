import RTP
import WorkerInterface

/// The answer to an offer, for the client, the worker and the control plane.
struct AnsweredSession {
    let local: LocalDescription
    let identifier: UInt64
    let version: UInt64
    let transport: AgreedTransport
    let offer: SessionDescription
    let offered: OfferedLines
    let halves: Halves

    /// For the client.
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

    /// RFC 8829 §5.3.1: as offered, with port 0.
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
        media.direction = halves.directions[index].mirrored
        media.transport = transportAttributes
        // On each m-line: aiortc reads those of the last one that shares its transport.
        media.candidates = candidates
        media.multiplexesRTCP = true
        media.reducedSizeRTCP = line.media.reducedSizeRTCP
        media.mixesExtensionForms = line.media.mixesExtensionForms
        media.formats = content.formats.descriptions
        media.extensions = content.extensions.attributes
        if halves.directions[index].sends, !content.encodings.rids.isEmpty {
            media.rids = content.encodings.rids
            media.simulcast = SimulcastAttribute(receive: media.rids.map { [$0.id] })
        }
        if let slot = halves.lines[index].slot { describe(slot, content, in: &media) }
        return media
    }

    /// The m-line on which the client receives.
    private func describe(
        _ slot: AgreedLine.Slot,
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

    /// Host candidates for RTP and RTCP together, the first the most preferred (RFC 8445 §5.1.2.1).
    private var candidates: [CandidateAttribute] {
        local.candidates.prefix(255).enumerated().map { index, candidate in
            let preference: UInt32 =
                switch candidate.transport {
                case .udp: 65_535 - UInt32(index)
                // 4 is the preference of passive ones (RFC 6544 §4.2): below all of UDP.
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
    /// For the worker.
    var configuration: TransportConfiguration {
        let accepted = offered.lines.filter { $0.content != nil }
        var configuration = TransportConfiguration(
            ice: transport.ice,
            dtlsRole: transport.role,
            fingerprints: transport.fingerprints,
            // One m-line that wants a report first wants it of the whole transport.
            reducedSizeRTCP: accepted.allSatisfy { $0.media.reducedSizeRTCP },
            cname: local.cname
        )
        configuration.slots.reserveCapacity(halves.lines.count { $0.slot != nil })
        for (index, line) in offered.lines.enumerated() {
            guard let content = line.content else { continue }
            let agreed = halves.lines[index]
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

    /// For the control plane.
    var media: [AnsweredMedia] {
        offered.lines.indices.map { index in
            AnsweredMedia(
                mid: offered.lines[index].mid,
                kind: offered.lines[index].kind,
                direction: halves.directions[index],
                publication: halves.lines[index].publication,
                slot: halves.lines[index].slot?.id,
                pair: halves.lines[index].slot?.pair,
                refused: halves.refusals[index],
                isRejected: offered.lines[index].content == nil
            )
        }
    }
}

extension Fingerprint.Algorithm {
    /// As `a=fingerprint` names it.
    var name: String {
        switch self {
        case .sha256: "sha-256"
        case .sha384: "sha-384"
        case .sha512: "sha-512"
        }
    }
}
