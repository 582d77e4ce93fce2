import RTP
import WorkerInterface

/// Creation and removal of a transport's publications and slots, as its offers demand.
extension Core {
    mutating func configurePublications(of transport: Int, at now: Instant) {
        let wanted = transports[transport].configuration.publications
        var index = 0
        while index < transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            let id = publications.handle(at: publication)
            if wanted.contains(where: { $0.id == id }) {
                index += 1
            } else {
                remove(publication: publication)
            }
        }
        for configuration in wanted {
            if publications.contains(configuration.id) {
                update(configuration, at: now)
            } else {
                add(configuration, transport: transport)
            }
        }
    }

    private mutating func add(_ configuration: PublicationConfiguration, transport: Int) {
        let index = Int(configuration.id.index)
        let publication = Publication(configuration, origin: .transport(transport))
        publications.insert(publication, at: configuration.id)
        transports[transport].publications.append(Int32(index))
        addEncodings(to: index)
    }

    /// Applies an offer's changes; subscribers, and encodings that stay the same, continue.
    mutating func update(_ configuration: PublicationConfiguration, at now: Instant) {
        let index = Int(configuration.id.index)
        let old = publications[index].configuration
        publications[index].configuration = configuration
        limitRate(of: index)
        publications[index].formats.removeAll()
        for format in configuration.formats { publications[index].formats.append(format) }
        for position in 0..<publications[index].subscribers.count {
            slots[Int(publications[index].subscribers[position])].incomingPayloadType = 0xff
        }
        guard old.encodings != configuration.encodings else {
            if old.cap != configuration.cap || old.isScreen != configuration.isScreen {
                refreshLayers(of: index, at: now)
            }
            return
        }
        let isSameShape =
            old.encodings.count == configuration.encodings.count
            && zip(old.encodings, configuration.encodings).allSatisfy { $0.rid == $1.rid }
        if isSameShape {
            declare(from: old.encodings, of: index)
        } else {
            removeEncodings(of: index, named: old.encodings)
            addEncodings(to: index)
        }
    }

    mutating func addEncodings(to publication: Int) {
        let configuration = publications[publication].configuration
        for position in configuration.encodings.prefix(Publication.maximumEncodings).indices {
            guard let id = encodingIDs.allocate() else { return }
            let encoding = Encoding(
                publication: publication,
                position: position,
                kind: configuration.kind,
                epoch: takeEpoch(),
                limits: configuration.rateLimits(most: limits.publicationBitrate)
            )
            encodings.insert(encoding, at: id)
            publications[publication].encodings.append(Int32(bitPattern: id.index))
        }
        declare(from: [], of: publication)
        bindFormerSSRCs(publication)
    }

    /// Binds the SSRCs that this m-line had before it stopped sending.
    private mutating func bindFormerSSRCs(_ publication: Int) {
        guard let transport = publications[publication].transport else { return }
        let mid = publications[publication].configuration.mid
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            let rid = publications[publication].configuration.encodings[position].rid
            for isRetransmission in [false, true] {
                let known =
                    isRetransmission
                    ? encodings[Int(encoding)].rtxSSRC : encodings[Int(encoding)].ssrc
                guard known == nil,
                    let ssrc = transports[transport].former.ssrc(
                        mid: mid,
                        rid: rid,
                        isRetransmission: isRetransmission
                    )
                else { continue }
                declare(
                    ssrc,
                    encoding: encoding,
                    isRetransmission: isRetransmission,
                    transport: transport
                )
            }
        }
    }

    /// Binds the SSRCs that the offer names and did not name before.
    private mutating func declare(from old: [EncodingConfiguration], of publication: Int) {
        guard let transport = publications[publication].transport else { return }
        let wanted = publications[publication].configuration.encodings
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            let before = position < old.count ? old[position] : EncodingConfiguration()
            if let ssrc = wanted[position].ssrc, ssrc != before.ssrc {
                declare(ssrc, encoding: encoding, isRetransmission: false, transport: transport)
            }
            if let ssrc = wanted[position].rtxSSRC, ssrc != before.rtxSSRC {
                declare(ssrc, encoding: encoding, isRetransmission: true, transport: transport)
            }
        }
    }

    private mutating func declare(
        _ ssrc: SSRC,
        encoding: Int32,
        isRetransmission: Bool,
        transport: Int
    ) {
        guard transports[transport].stream(of: ssrc) == nil,
            transports[transport].streams.count < limits.streamsPerTransport
        else { return }
        let stream = Transport.Stream(
            ssrc: ssrc,
            encoding: encoding,
            isRetransmission: isRetransmission
        )
        bind(stream, transport: transport)
    }

    /// Removes all encodings of a publication.
    ///
    /// `names` describes them as the offer that created them did.
    private mutating func removeEncodings(
        of publication: Int,
        named names: [EncodingConfiguration]
    ) {
        discardArrivals(of: publication)
        let mid = publications[publication].configuration.mid
        while !publications[publication].encodings.isEmpty {
            let encoding = Int(publications[publication].encodings.removeLast())
            if let transport = publications[publication].transport {
                let position = encodings[encoding].position
                let rid = position < names.count ? names[position].rid : nil
                if let ssrc = encodings[encoding].ssrc {
                    transports[transport].former
                        .keep(ssrc, mid: mid, rid: rid, isRetransmission: false)
                }
                if let ssrc = encodings[encoding].rtxSSRC {
                    transports[transport].former
                        .keep(ssrc, mid: mid, rid: rid, isRetransmission: true)
                }
                removeStreams(of: encoding, transport: transport)
            }
            encodings[encoding].history.removeAll(from: &pool)
            encodingIDs.release(encodings.handle(at: encoding))
            _ = encodings.remove(at: encoding)
        }
        publications[publication].options.removeAll()
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            if slots[slot].isOpen { slots[slot].source = .waiting }
            slotRecords[slot].target = .nothing
            forgetShare(of: slot)
            forgetLayer(of: slot)
        }
    }

    private mutating func removeStreams(of encoding: Int, transport: Int) {
        var index = 0
        while index < transports[transport].streams.count {
            if Int(transports[transport].streams[index].encoding) == encoding {
                transports[transport].removeStream(at: index)
            } else {
                index += 1
            }
        }
    }

    mutating func remove(publication: Int) {
        cancelReplays(of: publication)
        removeEncodings(
            of: publication,
            named: publications[publication].configuration.encodings
        )
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            revokeRight(of: slot)
            slots[slot].publication = -1
            slots[slot].source = .idle
            slots[slot].isOpen = false
        }
        setMirrors(of: publication, to: [])
        switch publications[publication].origin {
        case .transport(let transport):
            transports[transport].publications.remove(Int32(publication))
        case .mirror: mirrors.remove(Int32(publication))
        }
        _ = publications.remove(at: publication)
    }

    mutating func configureSlots(of transport: Int, _ wanted: [SlotConfiguration]) {
        var index = 0
        while index < transports[transport].slots.count {
            let slot = Int(transports[transport].slots[index])
            let id = slots.handle(at: slot)
            if wanted.contains(where: { $0.id == id }) {
                index += 1
            } else {
                remove(slot: slot)
            }
        }
        var formats: [MediaKind: [FormatMapping]] = [:]
        for var configuration in wanted {
            // Equal lists share one array: with many slots they would take most of the memory.
            let list = formats[configuration.kind] ?? configuration.formats
            if list == configuration.formats { configuration.formats = list }
            formats[configuration.kind] = list
            if slots.contains(configuration.id) {
                slots[Int(configuration.id.index)].configure(configuration)
                slotRecords[Int(configuration.id.index)].configuration = configuration
            } else {
                add(configuration, transport: transport)
            }
        }
    }

    private mutating func add(_ configuration: SlotConfiguration, transport: Int) {
        let index = Int(configuration.id.index)
        let slot = Slot(configuration, transport: transport, random: transports.random.next())
        slots.insert(slot, at: configuration.id)
        slotRecords.insert(
            SlotRecord(configuration, rtxRandom: transports.random.next()),
            at: configuration.id
        )
        egressOrder.insert(index, transport: transport)
        aside.egressOrder.insert(index, transport: transport)
        transports[transport].slots.append(Int32(index))
    }

    mutating func remove(slot: Int) {
        revokeRight(of: slot)
        let publication = Int(slots[slot].publication)
        if publication >= 0 { publications[publication].subscribers.remove(sorted: Int32(slot)) }
        transports[slots[slot].transport].slots.remove(Int32(slot))
        _ = slots.remove(at: slot)
        _ = slotRecords.remove(at: slot)
    }
}
