import RTP
import WorkerInterface

/// Stream identifiers in a packet's header extensions.
///
/// MID and RID are stored as offset and length in the packet, and compared in place.
struct StreamLabels: BitwiseCopyable {
    var mid = PacketInfo.Element()
    var rid = PacketInfo.Element()
    var repairedRID = PacketInfo.Element()
    var transportSequence: SequenceNumber?

    /// Parses the header extensions once, for the stream identifiers and for the elements to
    /// forward.
    mutating func read(_ packet: borrowing Packet, map: ExtensionMap, into info: inout PacketInfo) {
        var elements = packet.extensions
        while let element = elements.next() {
            guard let kind = map.kind(of: element.id), element.length > 0 else { continue }
            let place = PacketInfo.Element(
                offset: UInt16(truncatingIfNeeded: element.offset),
                length: UInt8(truncatingIfNeeded: element.length)
            )
            switch kind {
            case .mid: mid = place
            case .rid: rid = place
            case .repairedRID: repairedRID = place
            case .transportSequenceNumber where element.length >= 2:
                transportSequence = SequenceNumber(rawValue: packet.bytes.u16(at: element.offset))
            // Elements of a length other than specified are not forwarded.
            case .audioLevel where element.length == 1: info.audioLevel = place
            case .videoOrientation where element.length == 1: info.videoOrientation = place
            case .absoluteCaptureTime where element.length == 8 || element.length == 16:
                info.absoluteCaptureTime = place
            case .dependencyDescriptor: info.dependencyDescriptor = place
            case .videoLayersAllocation: info.layersAllocation = place
            case .audioLevel, .videoOrientation, .playoutDelay, .absoluteCaptureTime,
                .absoluteSendTime, .transportSequenceNumber:
                break
            }
        }
    }
}

extension PacketInfo {
    /// Reads the fixed RTP header.
    mutating func describe(_ packet: borrowing Packet) {
        sequence = packet.sequenceNumber
        timestamp = packet.timestamp
        payloadType = packet.payloadType.rawValue
        if packet.marker {
            flags.insert(.marker)
            marks = .all
        }
        payloadOffset = UInt16(truncatingIfNeeded: packet.headerLength)
        payloadLength = UInt16(
            truncatingIfNeeded: packet.bytes.count - packet.headerLength - packet.paddingLength
        )
    }
}

/// Association of SSRCs with m-lines and encodings (RFC 8843 §9.2, RFC 8852).
extension Receiver {
    /// Finds the packet's stream, and binds a new SSRC to one if necessary.
    mutating func bindStream(
        of packet: inout ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) {
        let stream: Transport.Stream
        do throws(DropReason) {
            stream = try find(packet, &transports)
        } catch {
            transports[packet.transport].noteUnsignalledSSRC(packet.ssrc)
            throw error
        }
        packet.encoding = stream.encoding
        packet.publication = encodings[packet.encoding].publication
        packet.isRetransmission = stream.isRetransmission
        packet.info.encoding = stream.encoding
    }

    private mutating func find(
        _ packet: borrowing ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) -> Transport.Stream {
        let transport = packet.transport
        let ssrc = packet.ssrc
        if let stream = transports[transport].stream(of: ssrc) { return stream }
        transports[transport].noteNewSSRC(ssrc, at: packet.info.arrival)
        guard let publication = publication(of: packet, transports) else { throw .unknownStream }
        guard let mapping = publications[publication].mapping(of: packet.info.payloadType) else {
            throw .unknownPayloadType
        }
        let isRetransmission = mapping.rtxPayloadType == packet.info.payloadType
        let labels = packet.labels
        let rid =
            isRetransmission && labels.repairedRID.length > 0 ? labels.repairedRID : labels.rid
        guard let encoding = encoding(of: publication, rid: rid, place: packet.place) else {
            throw .unknownStream
        }
        guard transports[transport].streams.count < limits.streamsPerTransport else {
            throw .streamLimit
        }
        let stream = Transport.Stream(
            ssrc: ssrc,
            encoding: encoding,
            isRetransmission: isRetransmission
        )
        bind(stream, transport: transport, &transports)
        return stream
    }

    /// Binds `stream` to its encoding, in place of the SSRC bound before.
    mutating func bind(
        _ stream: Transport.Stream,
        transport: TransportIndex,
        _ transports: inout Transports
    ) {
        let encoding = stream.encoding
        let old =
            stream.isRetransmission ? encodings[encoding].rtxSSRC : encodings[encoding].ssrc
        if let old { forget(old, transport: transport, &transports) }
        if stream.isRetransmission {
            encodings[encoding].rtxSSRC = stream.ssrc
        } else {
            let epoch = takeEpoch()
            encodings[encoding].restart(with: stream.ssrc, epoch: epoch, pool: &pool)
        }
        transports[transport].bind(stream)
        saveBindings(of: transport, &transports)
    }

    /// Stores the encodings of all SSRCs for the next process.
    mutating func saveBindings(of transport: TransportIndex, _ transports: inout Transports) {
        guard transports.savesState else { return }
        var bindings = UncountedArray<SavedTransport.Binding>()
        for index in 0..<transports[transport].streams.count {
            let stream = transports[transport].streams[index]
            let publication = publications.handle(at: encodings[stream.encoding].publication)
            bindings.append(
                SavedTransport.Binding(
                    base: base(of: stream, transports.savedIndex(of: stream.ssrc, transport)),
                    ssrc: stream.ssrc.rawValue,
                    publication: publication.index,
                    generation: publication.generation,
                    epoch: encodings[stream.encoding].epoch,
                    position: UInt8(clamping: encodings[stream.encoding].position),
                    isRetransmission: stream.isRetransmission ? 1 : 0
                )
            )
        }
        transports.save(bindings, of: transport)
    }

    /// Returns the distance of the numbers of a stream's packets from their SRTP indexes; `.min` if
    /// it is not known yet.
    private func base(of stream: Transport.Stream, _ newest: UInt64?) -> Int64 {
        guard !stream.isRetransmission, let newest,
            let highest = encodings[stream.encoding].window.highest
        else { return .min }
        // Both end in a sequence number, and may be those of different packets.
        let distance = Int64(highest) &- Int64(truncatingIfNeeded: newest)
        return ((distance &+ 1 << 15) >> 16) << 16
    }

    private mutating func forget(
        _ ssrc: SSRC,
        transport: TransportIndex,
        _ transports: inout Transports
    ) {
        for index in 0..<transports[transport].streams.count
        where transports[transport].streams[index].ssrc == ssrc {
            return transports[transport].removeStream(at: index)
        }
    }

    /// Finds the m-line by MID, or else by a payload type that only one m-line has; returns
    /// `nil` if none.
    private func publication(
        of packet: borrowing ReceivedPacket,
        _ transports: borrowing Transports
    ) -> PublicationIndex? {
        let mid = packet.labels.mid
        let transport = packet.transport
        var found: PublicationIndex?
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            if mid.length > 0 {
                let name = publications[publication].configuration.mid
                if equals(mid, name, place: packet.place) { return publication }
            } else if publications[publication].mapping(of: packet.info.payloadType) != nil {
                // Two m-lines have the payload type: ambiguous without a MID.
                guard found == nil else { return nil }
                found = publication
            }
        }
        return mid.length > 0 ? nil : found
    }

    private func encoding(
        of publication: PublicationIndex,
        rid: PacketInfo.Element,
        place: PacketPlace
    ) -> EncodingIndex? {
        let count = publications[publication].encodings.count
        guard rid.length > 0 else {
            return count == 1 ? publications[publication].encodings[0] : nil
        }
        for position in 0..<count {
            let name = publications[publication].configuration.encodings[position].rid
            if let name, equals(rid, name, place: place) {
                return publications[publication].encodings[position]
            }
        }
        // A single encoding may carry a RID that the offer does not name.
        return count == 1 ? publications[publication].encodings[0] : nil
    }

    private func equals(_ element: PacketInfo.Element, _ text: String, place: PacketPlace) -> Bool {
        let bytes = pool.packets.bytes(at: place, count: Int(element.offset) + Int(element.length))
        guard text.utf8.count == Int(element.length) else { return false }
        var offset = Int(element.offset)
        for byte in text.utf8 {
            guard bytes[offset] == byte else { return false }
            offset += 1
        }
        return true
    }
}
