import LoadPeer
import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// A round with a recording port, and a peer that sends one audio stream and receives it thrice.
struct RoundBench: ~Copyable {
    var round: WorkerRound
    var port = RecordingPort()
    private var peer: LoadPeer
    private var output = Batch(capacity: 64)
    private let identity: DTLSIdentity

    static let transport = TransportID(index: 0, generation: 1)
    static let opus = FormatMapping(format: MediaFormat(codec: .opus), payloadType: 111)
    static let publication = PublicationConfiguration(
        id: PublicationID(index: 0, generation: 1),
        mid: "0",
        kind: .audio,
        formats: [opus],
        extensions: ExtensionMap(),
        encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: 0x1111))]
    )
    static let slots = (0..<3 as Range<UInt32>).map { index in
        SlotConfiguration(
            id: SlotID(index: index, generation: 1),
            mid: "\(index + 1)",
            kind: .audio,
            ssrc: SSRC(rawValue: 0x2222 + index),
            rtxSSRC: nil,
            formats: [opus],
            extensions: ExtensionMap()
        )
    }

    init() throws {
        identity = try DTLSIdentity()
        let core = Core(limits: .default, seed: 1, identity: identity, engine: .best)
        round = WorkerRound(core: core, at: port.now, cpu: 0, turnNanoseconds: 0)
        peer = LoadPeer(
            identity: identity,
            context: SRTPContext(engine: .best),
            path: RecordingPort.path,
            seed: 1
        )
        peer.connect(
            fragment: LoadPeer.workerFragment,
            password: LoadPeer.workerPassword,
            fingerprint: identity.fingerprint,
            at: port.now,
            into: &output
        )
        output.removeAll()
    }

    /// Commands that make the transport and open all that it may receive.
    var configuration: [WorkerCommand] {
        let configuration = peer.workerTransport(identity, [Self.publication], Self.slots)
        let binding = Binding(publication: Self.publication.id, subscription: 1, open: true)
        return [
            .configure(Self.transport, configuration), .gate(Self.publication.id, open: true),
        ] + Self.slots.map { .bind($0.id, binding) }
    }

    /// Runs one round; returns its steps.
    @discardableResult
    mutating func run(
        applying commands: [WorkerCommand]
    ) -> (isOpen: Bool, steps: [RecordingPort.Step]) {
        port.mailbox = commands
        let isOpen = round.run(through: &port)
        return (isOpen, port.takeSteps())
    }

    /// Returns a new connectivity check of the peer.
    mutating func check() -> [UInt8] {
        peer.check(at: port.now, into: &output)
        return takeOutput().last ?? []
    }

    /// Returns the record that ends the peer's association.
    mutating func goodbye() -> [UInt8] {
        peer.close(into: &output)
        return takeOutput().last ?? []
    }

    /// Completes ICE and DTLS.
    mutating func connect() throws {
        port.arrived = [check()]
        for _ in 0..<100 where !peer.isConnected {
            run(applying: [])
            for datagram in port.takeSent() {
                _ = peer.receive(datagram.span, at: port.now, into: &output)
            }
            peer.expire(at: port.now, into: &output)
            port.arrived = takeOutput()
        }
        let isConnected = peer.isConnected
        try #require(isConnected)
        run(applying: [])
        _ = port.takeSent()
    }

    /// Returns an encrypted audio packet with this number.
    mutating func media(_ number: UInt16) -> [UInt8] {
        var packet: [UInt8] = [0x80, 111, UInt8(number >> 8), UInt8(number & 0xff)]
        packet += [0, 0, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, 0x11, 0x11]
        packet += [UInt8(number >> 8), UInt8(number & 0xff)] + Array(repeating: 0x5a, count: 80)
        peer.sendRTP(packet.span, index: UInt64(number), into: &output)
        return takeOutput().last ?? []
    }

    /// Returns the numbers of the packets of one stream, in the order in which they were sent.
    mutating func numbers(in sent: [[UInt8]], of ssrc: SSRC) -> [Int] {
        var numbers: [Int] = []
        for datagram in sent {
            guard case .rtp(let bytes) = Datagram(datagram.span),
                bytes.u32(at: 8) == ssrc.rawValue,
                case .rtp(let length) = peer.receive(datagram.span, at: port.now, into: &output)
            else { continue }
            let clear = peer.clear(length: length)
            numbers.append(Int(clear.span.u16(at: 12)))
        }
        return numbers
    }

    private mutating func takeOutput() -> [[UInt8]] {
        defer { output.removeAll() }
        return (0..<output.count).map { position in
            let datagram = output[position]
            return datagram.indices.map { datagram[$0] }
        }
    }
}

extension LoadPeer {
    static let workerFragment = "worker"
    static let workerPassword = "workerpassword-0123456789"

    /// The worker's side of a transport to this peer, which has the certificate of `identity`.
    func workerTransport(
        _ identity: DTLSIdentity,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration]
    ) -> TransportConfiguration {
        TransportConfiguration(
            ice: ICECredentials(
                localFragment: Self.workerFragment,
                localPassword: Self.workerPassword,
                remoteFragment: localFragment,
                remotePassword: localPassword
            ),
            dtlsRole: .server,
            fingerprints: [identity.fingerprint],
            reducedSizeRTCP: true,
            cname: "sfud",
            publications: publications,
            slots: slots
        )
    }
}
