import RTP
import WorkerInterface

/// Received RTP packet on its way into the batch.
struct ReceivedPacket: BitwiseCopyable {
    let transport: TransportIndex
    /// Place in the pool of the decrypted packet.
    let place: PacketPlace
    let length: Int
    var info = PacketInfo()
    var labels = StreamLabels()
    var ssrc = SSRC(rawValue: 0)
    var encoding = EncodingIndex(0)
    var publication = PublicationIndex(0)
    var isRetransmission = false
    /// Effect of a video packet on the layers that are known.
    var layers = LayerNews()
    /// Whether it is the first packet dropped of a frame, so that the pictures after it are broken.
    var breaksPicture = false
}

/// Effect of a video packet on the layers that are known of its publication.
struct LayerNews: BitwiseCopyable {
    /// Whether the layers on offer may have changed.
    var mayChangeOffers = false
    /// Whether its encoding was silent before.
    var resumesEncoding = false
}

/// Steps of a received RTP packet, in their order; each throws the reason if it refuses the packet.
extension Receiver {
    /// Finds the transport that holds the packet's path.
    mutating func findTransport(
        of bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        _ transports: inout Transports
    ) throws(DropReason) -> TransportIndex {
        guard let transport = transports.paths[path] else { throw .unknownSource }
        guard transports[transport].srtp != nil else { throw .notConnected }
        counters.rtpIn &+= 1
        transports[transport].packetsIn &+= 1
        transports[transport].bytesIn &+= UInt64(bytes.count)

        guard bytes.count >= 12 else { throw .malformedRTP }
        let ssrc = SSRC(rawValue: bytes.u32(at: 8))
        guard transports[transport].admits(ssrc, limit: limits.newStreamsPerSecond, at: now)
        else { throw .streamRateLimited }
        return transport
    }

    /// Authenticates the packet and decrypts it into the pool.
    mutating func decrypt(
        _ bytes: Span<UInt8>,
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) throws(DropReason) -> ReceivedPacket {
        // Bounds the queue even if the caller forgets to flush.
        guard arrivalCount < Self.batchCapacity, let place = pool.allocate() else {
            throw .bufferFull
        }
        do throws(SRTPError) {
            var packets = pool.packets
            var clear = packets.mutableBytes(at: place)
            let length = try transports[transport].unprotectRTP(bytes, into: &clear)
            var packet = ReceivedPacket(transport: transport, place: place, length: length)
            packet.info.arrival = now
            return packet
        } catch {
            pool.release(place)
            throw DropReason(error)
        }
    }

    /// Reads the header and its extensions.
    mutating func parseHeader(
        of packet: inout ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) {
        let packets = pool.packets
        let transport = packet.transport
        do throws(PacketError) {
            let parsed = try Packet(packets.bytes(at: packet.place, count: packet.length))
            packet.ssrc = parsed.ssrc
            packet.info.describe(parsed)
            packet.labels.read(parsed, map: transports[transport].extensions, into: &packet.info)
        } catch {
            throw .malformedRTP
        }
        if let number = packet.labels.transportSequence {
            noteArrival(number, transport: transport, at: packet.info.arrival, &transports)
        }
        transports[transport].estimate.receive(bytes: packet.length)
    }

    private mutating func noteArrival(
        _ number: SequenceNumber,
        transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard transports[transport].sendsTransportFeedback else { return }
        if transports[transport].arrivals == nil { transports[transport].arrivals = ArrivalLog() }
        transports[transport].arrivals?.receive(number, at: now)
        guard transports[transport].feedbackDue == nil else { return }
        transports[transport].feedbackDue = now.advanced(
            milliseconds: ArrivalLog.intervalMilliseconds
        )
        transports.schedule(transport, at: now)
    }

    /// Removes the RTX header, which restores the original packet (RFC 4588 §4).
    mutating func restoreOriginal(of packet: inout ReceivedPacket) throws(DropReason) {
        guard packet.isRetransmission else { return }
        guard packet.info.payloadLength > 2 else { throw .padding }
        let end = Int(packet.info.payloadOffset) + 2
        let original = pool.packets.bytes(at: packet.place, count: end).u16(at: end - 2)
        guard let mapping = publications[packet.publication].mapping(of: packet.info.payloadType),
            mapping.rtxPayloadType == packet.info.payloadType
        else { throw .unknownPayloadType }
        packet.info.sequence = SequenceNumber(rawValue: original)
        packet.info.payloadOffset += 2
        packet.info.payloadLength -= 2
        packet.info.payloadType = mapping.payloadType
        packet.info.flags.insert(.repaired)
        encodings[packet.encoding].retransmissionsReceived &+= 1
    }
}

extension DropReason {
    init(_ error: SRTPError) {
        switch error {
        case .replay: self = .srtpReplay
        case .streamLimit: self = .streamLimit
        case .malformed: self = .malformedRTP
        case .authentication, .exhausted, .unavailable: self = .srtpAuthentication
        }
    }
}
