import Kernel
import LoadPeer
import RTP
import SFU
import WorkerInterface

/// Abusive traffic from clients with valid keys, or from peers that know their addresses.
///
/// Each name ends with the rows of docs/reliability.md.
enum Attack: String, CaseIterable, Sendable {
    case damaged = "packets and reports with wrong tags, C2"
    case repeated = "packets that were sent before, F1"
    case nonsense = "nonsense with the right keys, C4"
    case stolen = "packets under the SSRCs of others, F7"
    case asking = "NACKs for all there was and requests for keyframes, G9 and G11"
    case moving = "checks and packets from ever new addresses, F4"
    case reporting = "feedback by the dozen in a datagram, 5,000 a second of one, C12"

    /// Datagrams that each attacker sends every five milliseconds.
    var burst: Int {
        switch self {
        case .damaged, .repeated, .stolen, .nonsense: 10
        case .asking: 4
        case .moving: 1
        case .reporting: 25
        }
    }

    /// Most clients that take part.
    var attackers: Int {
        switch self {
        case .damaged, .repeated, .stolen, .nonsense, .asking, .moving: .max
        case .reporting: 1
        }
    }
}

/// A client that attacks, with a source of randomness.
struct Attacker {
    let client: Client
    /// SSRCs that other participants publish under.
    let victims: [UInt32]
    private var random = SystemRandomNumberGenerator()

    init(_ client: Client, victims: [UInt32]) {
        self.client = client
        self.victims = victims
    }

    /// Queues one or two datagrams; returns their source if it is not the client's own address.
    mutating func send(_ attack: Attack, into output: inout Batch) -> Address? {
        switch attack {
        case .damaged: damage(into: &output)
        case .repeated: client.publisher?.sendAgain(&client.wire, &random, into: &output)
        case .nonsense: sendRandomPackets(into: &output)
        case .stolen: sendRTP(ssrc: victims.randomElement(using: &random) ?? 1, into: &output)
        case .asking: ask(into: &output)
        case .moving: return move(into: &output)
        case .reporting: report(into: &output)
        }
        return nil
    }

    private mutating func damage(into output: inout Batch) {
        let isReport = Bool.random(using: &random)
        let ssrc = ownSSRC()
        let length = Int.random(in: 20...1_100, using: &random) & ~3
        var random = random
        output.append(to: client.wire.peer.path) { bytes in
            bytes.append(isReport ? 0x81 : 0x80)
            bytes.append(isReport ? RTCPType.receiverReport : 96)
            if isReport {
                bytes.append(bigEndian: UInt16(length / 4 - 1))
            } else {
                bytes.append(bigEndian: UInt16.random(in: 0...(.max), using: &random))
                bytes.append(bigEndian: UInt32.random(in: 0...(.max), using: &random))
            }
            bytes.append(bigEndian: ssrc)
            while bytes.count < length { bytes.append(.random(in: 0...255, using: &random)) }
        }
    }

    /// Queues random RTP that decrypts correctly, or such an RTCP compound.
    private mutating func sendRandomPackets(into output: inout Batch) {
        guard Bool.random(using: &random) else {
            let known = Bool.random(using: &random)
            let ssrc = known ? ownSSRC() : UInt32.random(in: 0...(.max), using: &random)
            return sendRTP(ssrc: ssrc, into: &output)
        }
        let ssrcs = [ownSSRC(), client.slots.randomElement(using: &random)?.ssrc ?? 0]
        var random = random
        client.wire.sendRTCP(into: &output) { bytes in
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let words = Int.random(in: 1...40, using: &random)
                let isTrue = Int.random(in: 0..<4, using: &random) > 0
                bytes.append(0x80 | .random(in: 0...0x3f, using: &random))
                bytes.append(.random(in: 200...207, using: &random))
                bytes.append(
                    bigEndian: isTrue ? UInt16(words) : .random(in: 0...99, using: &random)
                )
                bytes.append(bigEndian: ssrcs[0])
                for _ in 1..<words {
                    let isKnown = Int.random(in: 0..<4, using: &random) == 0
                    let word = UInt32.random(in: 0...(.max), using: &random)
                    bytes.append(bigEndian: isKnown ? ssrcs[1] : word)
                }
            }
        }
    }

    private mutating func sendRTP(ssrc: UInt32, into output: inout Batch) {
        let index = UInt64(SentTrack.firstSequence + sentPackets(ssrc))
        var packet: [UInt8] = []
        let hasExtensions = Bool.random(using: &random)
        let hasSources = Int.random(in: 0..<4, using: &random) == 0
        let sources: UInt8 = hasSources ? .random(in: 1...15, using: &random) : 0
        packet.append(0x80 | (hasExtensions ? 0x10 : 0) | sources)
        let types = [client.publisher?.format.audio, client.publisher?.format.video]
        let known = types.compactMap { $0?.payloadType }.randomElement(using: &random)
        packet.append(known ?? .random(in: 0...255, using: &random))
        packet.append(UInt64(index & 0xffff), bytes: 2)
        packet.append(.random(in: 0...(.max), using: &random), bytes: 4)
        packet.append(UInt64(ssrc), bytes: 4)
        packet.append(contentsOf: chance(4 * Int(sources)))
        if hasExtensions {
            let words = Int.random(in: 0...8, using: &random)
            packet += Bool.random(using: &random) ? [0xbe, 0xde] : [0x10, 0x00]
            packet.append(UInt64(words), bytes: 2)
            packet.append(contentsOf: chance(4 * words))
        }
        packet.append(contentsOf: chance(.random(in: 0...1_000, using: &random)))
        client.wire.sendRTP(packet.span, index: index, into: &output)
    }

    /// Queues a compound with a NACK for a thousand packets, a PLI and a FIR.
    private mutating func ask(into output: inout Batch) {
        guard let slot = client.slots.randomElement(using: &random) else { return }
        let (own, media) = (SSRC(rawValue: ownSSRC()), SSRC(rawValue: slot.ssrc))
        let first = SequenceNumber(rawValue: .random(in: 0...(.max), using: &random))
        let lost = (0..<1_000).map { first.advanced(by: $0) }
        let number = UInt8.random(in: 0...255, using: &random)
        let none: [ReceptionReport] = []
        client.wire.sendRTCP(into: &output) { bytes in
            ReceiverReport.encode(sender: own, reports: none.span, into: &bytes)
            GenericNACK.encode(sender: own, media: media, lost: lost.span, into: &bytes)
            PictureLossIndication(sender: own, media: media).encode(into: &bytes)
            let entry = FullIntraRequest.Entry(media: media, number: number)
            FullIntraRequest.encode(sender: own, entry: entry, into: &bytes)
        }
    }

    /// Queues 36 blocks of transport-wide feedback, each on 65,535 packets that were not received.
    private mutating func report(into output: inout Batch) {
        let own = ownSSRC()
        let base = UInt16.random(in: 0...(.max), using: &random)
        client.wire.sendRTCP(into: &output) { bytes in
            for _ in 0..<36 {
                bytes.append(0x8f)
                bytes.append(RTCPType.transportFeedback)
                bytes.append(bigEndian: UInt16(9))
                bytes.append(bigEndian: own)
                bytes.append(bigEndian: own)
                bytes.append(bigEndian: base)
                bytes.append(bigEndian: UInt16.max)
                bytes.append(bigEndian: UInt32(0))
                // Eight runs of 8,191 and a ninth that is cut off.
                for _ in 0..<9 { bytes.append(bigEndian: UInt16(0x1fff)) }
                bytes.append(bigEndian: UInt16(0))
            }
        }
    }

    /// Queues a valid check and an invalid packet; returns a source address in 127.3.0.0/16.
    private mutating func move(into output: inout Batch) -> Address {
        client.wire.peer.check(at: .monotonic(), into: &output)
        damage(into: &output)
        return Address(ipv4: 0x7f03_0000 | .random(in: 1...0xfffe, using: &random), port: 0)
    }

    private mutating func ownSSRC() -> UInt32 { ownTrack()?.ssrc ?? 1 }

    private mutating func ownTrack() -> SentTrack? {
        client.publisher.flatMap {
            ($0.tracks(.audio) + $0.layers).randomElement(using: &random)
        }
    }

    /// Returns the number of packets sent on an own stream, plus a random number.
    ///
    /// The sum gives a sequence number that is new and near.
    private mutating func sentPackets(_ ssrc: UInt32) -> Int64 {
        let tracks = client.publisher.map { $0.tracks(.audio) + $0.layers } ?? []
        let count = tracks.first { $0.ssrc == ssrc }?.count ?? 0
        return count + .random(in: 0..<500, using: &random)
    }

    private mutating func chance(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in .random(in: 0...255, using: &random) }
    }
}

extension Publisher {
    /// Sends an earlier packet again with its original sequence number.
    fileprivate func sendAgain(
        _ wire: inout ClientTransport,
        _ random: inout SystemRandomNumberGenerator,
        into output: inout Batch
    ) {
        guard let layer = layers.indices.randomElement(using: &random), let line = format.video,
            let sent = layers[layer].packet(
                layers[layer].count - .random(in: 1...2_000, using: &random)
            )
        else { return }
        send(sent, of: layers[layer], rid: rids[layer], line, &wire, into: &output)
    }
}

extension MediaLoop {
    /// Makes every client attack; returns the number of datagrams sent.
    mutating func attack(_ attack: Attack, victims: [UInt32]) -> Int {
        (0..<attack.burst).reduce(0) { sent, _ in
            var turn = 0
            return sent
                + sendForAll { client, output in
                    turn += 1
                    guard turn <= attack.attackers else { return nil }
                    var attacker = Attacker(client, victims: victims)
                    return attacker.send(attack, into: &output)
                }
        }
    }
}
