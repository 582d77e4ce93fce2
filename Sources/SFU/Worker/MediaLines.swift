import RTP
import WorkerInterface

/// Creation and removal of a transport's publications and slots, as its offers demand.
extension Core {
    mutating func configurePublications(of transport: TransportIndex, at now: Instant) {
        let wanted = transports[transport].configuration.publications
        var index = 0
        while index < transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            let id = receiver.publications.handle(at: publication)
            if wanted.contains(where: { $0.id == id }) {
                index += 1
            } else {
                remove(publication: publication)
            }
        }
        for configuration in wanted {
            if receiver.publications.contains(configuration.id) {
                update(configuration, at: now)
            } else {
                add(configuration, transport: transport)
            }
        }
    }

    private mutating func add(_ configuration: PublicationConfiguration, transport: TransportIndex)
    {
        let index = configuration.id.place
        let publication = Publication(configuration, origin: .transport(transport))
        receiver.publications.insert(publication, at: configuration.id)
        transports[transport].publications.append(index)
        receiver.addEncodings(to: index, &transports)
    }

    /// Applies an offer's changes; subscribers, and encodings that stay the same, continue.
    mutating func update(_ configuration: PublicationConfiguration, at now: Instant) {
        let index = configuration.id.place
        let old = receiver.publications[index].configuration
        receiver.publications[index].configuration = configuration
        receiver.applyRateLimits(to: index)
        receiver.publications[index].formats.removeAll()
        for format in configuration.formats { receiver.publications[index].formats.append(format) }
        forwarder.forgetPayloadTypes(ofViewersOf: index, receiver)
        guard old.encodings != configuration.encodings else {
            if old.cap != configuration.cap {
                allocator.applyCap(to: index, at: now, &transports, &receiver, &forwarder)
            } else if old.isScreen != configuration.isScreen {
                allocator.refreshLayers(of: index, at: now, &transports, &receiver, &forwarder)
            }
            return
        }
        guard !receiver.redeclare(from: old.encodings, of: index, &transports) else { return }
        endEncodings(of: index, named: old.encodings)
        receiver.addEncodings(to: index, &transports)
    }

    /// Removes all encodings of a publication; its subscribers wait for others.
    private mutating func endEncodings(
        of publication: PublicationIndex,
        named names: [EncodingConfiguration]
    ) {
        precondition(
            !receiver.publications[publication].isQueued || !forwarder.isFlushing,
            "a batch is let out before commands are carried out"
        )
        receiver.discardArrivals(of: publication)
        receiver.removeEncodings(of: publication, named: names, &transports)
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            forwarder.loseSource(of: slot)
            allocator.forgetShare(of: slot, forwarder)
        }
    }

    mutating func remove(publication: PublicationIndex) {
        forwarder.cancelReplays(of: publication)
        endEncodings(
            of: publication,
            named: receiver.publications[publication].configuration.encodings
        )
        forwarder.loseViewers(of: publication, transports, receiver)
        relays.removeRelays(of: publication, &receiver)
        if receiver.publications[publication].lease != nil { receiver.leased.remove(publication) }
        if let transport = receiver.publications[publication].transport {
            transports[transport].publications.remove(publication)
        }
        _ = receiver.publications.remove(at: publication)
    }

    mutating func configureSlots(of transport: TransportIndex, _ wanted: [SlotConfiguration]) {
        var index = 0
        while index < transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            let id = forwarder.slots.handle(at: slot)
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
            if forwarder.slots.contains(configuration.id) {
                forwarder.configure(configuration)
            } else {
                addSlot(configuration, transport: transport)
            }
        }
    }

    private mutating func addSlot(_ configuration: SlotConfiguration, transport: TransportIndex) {
        let first = transports.random.next()
        let rtx = transports.random.next()
        forwarder.add(configuration, transport: transport, random: first, rtxRandom: rtx)
        allocator.addShare(configuration.id, of: configuration.kind)
        transports[transport].slots.append(configuration.id.place)
    }

    mutating func remove(slot: SlotIndex) {
        allocator.removeShare(of: slot)
        forwarder.removeSlot(slot, &transports, &receiver)
    }
}
