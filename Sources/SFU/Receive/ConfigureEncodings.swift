import RTP
import WorkerInterface

/// Creation and removal of a publication's encodings, as its offers demand.
extension Receiver {
    mutating func addEncodings(to publication: PublicationIndex, _ transports: inout Transports) {
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
            publications[publication].encodings.append(id.place)
        }
        declare(from: [], of: publication, &transports)
        bindFormerSSRCs(publication, &transports)
    }

    /// Binds the SSRCs that this m-line had before it stopped sending.
    private mutating func bindFormerSSRCs(
        _ publication: PublicationIndex,
        _ transports: inout Transports
    ) {
        guard let transport = publications[publication].transport else { return }
        let mid = publications[publication].configuration.mid
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            let rid = publications[publication].configuration.encodings[position].rid
            for isRetransmission in [false, true] {
                let known =
                    isRetransmission
                    ? encodings[encoding].rtxSSRC : encodings[encoding].ssrc
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
                    transport: transport,
                    &transports
                )
            }
        }
    }

    /// Binds the SSRCs that the offer names and did not name before.
    private mutating func declare(
        from old: [EncodingConfiguration],
        of publication: PublicationIndex,
        _ transports: inout Transports
    ) {
        guard let transport = publications[publication].transport else { return }
        let wanted = publications[publication].configuration.encodings
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            let before = position < old.count ? old[position] : EncodingConfiguration()
            if let ssrc = wanted[position].ssrc, ssrc != before.ssrc {
                declare(
                    ssrc,
                    encoding: encoding,
                    isRetransmission: false,
                    transport: transport,
                    &transports
                )
            }
            if let ssrc = wanted[position].rtxSSRC, ssrc != before.rtxSSRC {
                declare(
                    ssrc,
                    encoding: encoding,
                    isRetransmission: true,
                    transport: transport,
                    &transports
                )
            }
        }
    }

    private mutating func declare(
        _ ssrc: SSRC,
        encoding: EncodingIndex,
        isRetransmission: Bool,
        transport: TransportIndex,
        _ transports: inout Transports
    ) {
        guard transports[transport].stream(of: ssrc) == nil,
            transports[transport].streams.count < limits.streamsPerTransport
        else { return }
        let stream = Transport.Stream(
            ssrc: ssrc,
            encoding: encoding,
            isRetransmission: isRetransmission
        )
        bind(stream, transport: transport, &transports)
    }

    /// Binds the SSRCs that a new offer names, if its encodings have the names of those before;
    /// returns whether they have.
    mutating func redeclare(
        from old: [EncodingConfiguration],
        of publication: PublicationIndex,
        _ transports: inout Transports
    ) -> Bool {
        let new = publications[publication].configuration.encodings
        guard old.count == new.count, zip(old, new).allSatisfy({ $0.rid == $1.rid }) else {
            return false
        }
        declare(from: old, of: publication, &transports)
        return true
    }

    /// Removes all encodings of a publication, whose packets must not be in the batch.
    ///
    /// `names` describes them as the offer that created them did.
    mutating func removeEncodings(
        of publication: PublicationIndex,
        named names: [EncodingConfiguration],
        _ transports: inout Transports
    ) {
        precondition(!publications[publication].isQueued, "the batch holds packets of it")
        let mid = publications[publication].configuration.mid
        while !publications[publication].encodings.isEmpty {
            let encoding = publications[publication].encodings.removeLast()
            if let transport = publications[publication].transport {
                let position = encodings[encoding].position
                let rid = position < names.count ? names[position].rid : nil
                keepSSRCs(of: encoding, mid: mid, rid: rid, transport: transport, &transports)
                removeStreams(of: encoding, transport: transport, &transports)
            }
            encodings[encoding].history.removeAll(from: &pool)
            encodingIDs.release(encodings.handle(at: encoding))
            _ = encodings.remove(at: encoding)
        }
        publications[publication].options.removeAll()
    }

    /// Keeps the SSRCs of an encoding, for an m-line that sends again later.
    private mutating func keepSSRCs(
        of encoding: EncodingIndex,
        mid: String,
        rid: String?,
        transport: TransportIndex,
        _ transports: inout Transports
    ) {
        if let ssrc = encodings[encoding].ssrc {
            transports[transport].former.keep(ssrc, mid: mid, rid: rid, isRetransmission: false)
        }
        if let ssrc = encodings[encoding].rtxSSRC {
            transports[transport].former.keep(ssrc, mid: mid, rid: rid, isRetransmission: true)
        }
    }

    private mutating func removeStreams(
        of encoding: EncodingIndex,
        transport: TransportIndex,
        _ transports: inout Transports
    ) {
        var index = 0
        while index < transports[transport].streams.count {
            if transports[transport].streams[index].encoding == encoding {
                transports[transport].removeStream(at: index)
            } else {
                index += 1
            }
        }
    }

    /// Removes stored packets that are too old to be requested, also for publishers that have
    /// stopped sending.
    mutating func trimHistories(
        of transport: TransportIndex,
        at now: Instant,
        _ transports: borrowing Transports
    ) {
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            for position in 0..<publications[publication].encodings.count {
                let encoding = publications[publication].encodings[position]
                encodings[encoding].history.trim(at: now, pool: &pool)
                if encodings[encoding].kind == .audio { encodings[encoding].rate.measure(at: now) }
            }
        }
    }

    /// Returns a new identifier for the sequence numbering of an incoming stream.
    ///
    /// It must be unique: with a repeated one, packets of two streams could get the same SRTP
    /// packet index.
    mutating func takeEpoch() -> UInt32 {
        lastEpoch &+= 1
        return lastEpoch
    }
}
