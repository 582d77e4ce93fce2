internal import RTP

/// Makes and ends a transport's publications and slots, as its offers say.
extension Core {
    mutating func configurePublications(of transport: Int) {
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
                update(configuration, transport: transport)
            } else {
                add(configuration, transport: transport)
            }
        }
    }

    private mutating func add(_ configuration: PublicationConfiguration, transport: Int) {
        let index = Int(configuration.id.index)
        publications.insert(Publication(configuration, transport: transport), at: configuration.id)
        transports[transport].publications.append(Int32(index))
        addEncodings(to: index)
    }

    private mutating func update(_ configuration: PublicationConfiguration, transport: Int) {
        let index = Int(configuration.id.index)
        let old = publications[index].configuration
        publications[index].configuration = configuration
        publications[index].formats.removeAll()
        for format in configuration.formats { publications[index].formats.append(format) }
        for position in 0..<publications[index].subscribers.count {
            slots[Int(publications[index].subscribers[position])].incomingPayloadType = 0xff
        }
        guard old.encodings != configuration.encodings else { return }
        let isSameShape =
            old.encodings.count == configuration.encodings.count
            && zip(old.encodings, configuration.encodings).allSatisfy { $0.rid == $1.rid }
        if isSameShape {
            declare(from: old.encodings, of: index)
        } else {
            removeEncodings(of: index)
            addEncodings(to: index)
        }
    }

    private mutating func addEncodings(to publication: Int) {
        let configuration = publications[publication].configuration
        for position in configuration.encodings.prefix(Publication.maximumEncodings).indices {
            guard let id = encodingIDs.allocate() else { return }
            let encoding = Encoding(
                publication: publication,
                position: position,
                kind: configuration.kind,
                epoch: takeEpoch()
            )
            encodings.insert(encoding, at: id)
            publications[publication].encodings.append(Int32(bitPattern: id.index))
        }
        declare(from: [], of: publication)
    }

    /// Binds the SSRCs that the offer names, but for those that it named before.
    private mutating func declare(from old: [EncodingConfiguration], of publication: Int) {
        let transport = publications[publication].transport
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

    private mutating func removeEncodings(of publication: Int) {
        let transport = publications[publication].transport
        discardArrivals(of: publication)
        while !publications[publication].encodings.isEmpty {
            let encoding = Int(publications[publication].encodings.removeLast())
            var index = 0
            while index < transports[transport].streams.count {
                let stream = transports[transport].streams[index]
                guard Int(stream.encoding) == encoding else {
                    index += 1
                    continue
                }
                transports[transport].removeStream(at: index)
            }
            encodings[encoding].history.removeAll(from: &pool)
            encodingIDs.release(encodings.handle(at: encoding))
            _ = encodings.remove(at: encoding)
        }
        publications[publication].best = -1
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            if slots[slot].isOpen { slots[slot].source = .waiting }
            slots[slot].encodingSent = .max
        }
    }

    mutating func remove(publication: Int) {
        let transport = publications[publication].transport
        packetsUnderLostRights &+= publications[publication].forwarded
        removeEncodings(of: publication)
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            noteLost(slot: slot)
            slots[slot].publication = -1
            slots[slot].source = .idle
            slots[slot].isOpen = false
        }
        transports[transport].publications.remove(Int32(publication))
        _ = publications.remove(at: publication)
    }

    mutating func configureSlots(of transport: Int) {
        let wanted = transports[transport].configuration.slots
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
        for configuration in wanted {
            if slots.contains(configuration.id) {
                slots[Int(configuration.id.index)].configure(configuration)
            } else {
                let slot = Slot(
                    configuration,
                    transport: transport,
                    random: random.next(),
                    rtxRandom: random.next()
                )
                slots.insert(slot, at: configuration.id)
                transports[transport].slots.append(Int32(configuration.id.index))
            }
        }
    }

    mutating func remove(slot: Int) {
        if slots[slot].isOpen { packetsUnderLostRights &+= slots[slot].forwarded }
        noteLost(slot: slot)
        let publication = Int(slots[slot].publication)
        if publication >= 0 { publications[publication].subscribers.remove(Int32(slot)) }
        transports[slots[slot].transport].slots.remove(Int32(slot))
        _ = slots.remove(at: slot)
    }
}
