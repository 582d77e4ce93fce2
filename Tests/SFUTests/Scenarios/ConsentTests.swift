import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Consent to receive (RFC 7675).
///
/// Media is sent only to a peer that has proven its address, and stops when the peer stops
/// answering.
struct ConsentTests {
    private static let victim = Path.from(port: 443, host: 0xc000_0201)

    /// Makes a publisher (0), and two viewers (1 and 2) of its video.
    private static func call() throws -> Call {
        var call = try PathMoveTests.call()
        _ = call.takeEvents()
        return call
    }

    /// Lets the publisher send for a while, ten packets a second.
    private static func play(
        _ call: inout Call,
        seconds: Int,
        each: (inout Call, Int) -> Void = { _, _ in }
    ) {
        let first = call.peers[2].received.count
        for step in 0..<seconds * 10 {
            each(&call, step)
            let number = UInt16(truncatingIfNeeded: first + step + 1)
            call.sendVideo(sequence: number, pictureID: number, isKeyframe: false)
            call.run(milliseconds: 100)
        }
    }

    /// Sends a peer's packet from an address that is not its own and that gets no answers.
    private static func spoof(_ call: inout Call, from index: Int, as path: Path, rtcp: Bool) {
        let own = call.peers[index].path
        var sent = Batch(capacity: 4)
        if rtcp {
            call.peers[index].peer.sendRTCP(into: &sent) { output in
                PictureLossIndication(sender: SSRC(rawValue: 1), media: SSRC(rawValue: 2)).encode(
                    into: &output
                )
            }
        } else {
            call.peers[index].peer.check(at: call.now, into: &sent)
        }
        for position in 0..<sent.count {
            call.inject(sent[position].indices.map { sent[position][$0] }, on: path)
        }
        call.settle()
        call.peers[index].path = own
    }

    enum Aim: String, CaseIterable, CustomTestStringConvertible {
        case packets = "checks and packets with good keys"
        case silence = "checks, and silence of its own address"
        case quiet = "one check and silence"

        var testDescription: String { rawValue }
    }

    @Test(arguments: Aim.allCases)
    func `a participant cannot aim media at an address that answers nothing`(aim: Aim) throws {
        var call = try Self.call()
        if aim != .packets {
            call.loses = { toCore, datagram in toCore && datagram[0] == 1 && datagram[1] == 1 }
        }
        var checks = 0
        Self.play(&call, seconds: 60) { call, step in
            switch aim {
            case .packets:
                Self.spoof(&call, from: 1, as: Self.victim, rtcp: step % 2 == 1)
                checks += 1
            case .silence:
                Self.spoof(&call, from: 1, as: Self.victim, rtcp: false)
                checks += 1
            case .quiet:
                guard step == 0 else { return }
                Self.spoof(&call, from: 1, as: Self.victim, rtcp: false)
                checks += 1
            }
        }
        #expect(call.misdirectedMedia == 0)
        // At most an answer and a check of ours for each forged datagram, none over 128 bytes.
        #expect(call.misdirected <= 2 * checks)
        #expect(call.misdirectedBytes <= call.misdirected * 128)
        #expect(call.peers[2].received.count == 601, "the other viewer has missed nothing")
    }

    @Test func `a handshake that ends at another address than it began proves neither`() throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        call.bind(slot: 5, publication: 1)
        // All packets of the third peer after its ClientHello seem to come from the victim.
        let own = call.peers[2].path
        var hellos = 0
        call.loses = { toCore, datagram in
            if toCore, (20...63).contains(datagram[0]) { hellos += 1 }
            return toCore && hellos > 1
        }
        call.connect(2)
        call.loses = { _, _ in false }
        Self.spoof(&call, from: 2, as: Self.victim, rtcp: false)
        var sent = Batch(capacity: 16)
        for _ in 0..<5 {
            call.now = call.now.advanced(milliseconds: 1_500)
            call.peers[2].peer.expire(at: call.now, into: &sent)
        }
        for position in 0..<sent.count {
            call.inject(sent[position].indices.map { sent[position][$0] }, on: Self.victim)
        }
        call.settle()
        for step in 0..<20 as Range<UInt16> {
            call.sendVideo(sequence: step + 2, pictureID: step + 2, isKeyframe: step == 0)
            call.run(milliseconds: 50)
        }
        let isDone = call.core.transports[2].srtp != nil
        #expect(isDone, "the handshake has to end, or this proves nothing")
        #expect(call.misdirectedMedia == 0)
        #expect(call.peers[2].path == own)
    }

    @Test func `a handshake that has sent its share sends no more`() throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        let own = call.peers[2].path
        for _ in 0..<HandshakeFlights.limit {
            let isOpen = call.core.transports[2].flights.isOpen
            #expect(isOpen)
            call.core.transports[2].flights.note(own)
        }
        call.connect(2)
        let isOpen = call.core.transports[2].flights.isOpen
        let isConnected = call.core.transports[2].srtp != nil
        #expect(!isOpen && !isConnected)
    }

    @Test func `flights that went to two addresses prove neither`() {
        let own = Path.from(port: 1)
        var flights = HandshakeFlights()
        #expect(!flights.provesAddress(of: own))
        flights.note(own)
        flights.note(own)
        #expect(flights.provesAddress(of: own) && !flights.provesAddress(of: Self.victim))
        flights.note(Self.victim)
        #expect(!flights.provesAddress(of: own) && !flights.provesAddress(of: Self.victim))
    }

    @Test(arguments: [0, 200])
    func `before its handshake a participant can aim a bounded number of flights`(
        repeats: Int
    ) throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        var sent = Batch(capacity: 16)
        call.peers[2].peer.connect(
            fragment: "core2",
            password: "corepassword2-0123456789",
            fingerprint: call.identity.fingerprint,
            at: call.now,
            into: &sent
        )
        // Its check seems to have been answered, so it begins the handshake.
        let success: [UInt8] =
            [1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + Array(repeating: 0, count: 12)
        _ = call.peers[2].peer.receive(success.span, at: call.now, into: &sent)
        let forged = (0..<sent.count).map { place in
            sent[place].indices.map { sent[place][$0] }
        }
        for datagram in forged { call.inject(datagram, on: Self.victim) }
        call.settle()
        call.run(milliseconds: repeats == 0 ? 60_000 : 1_000)
        #expect(call.misdirectedMedia == 0)
        #expect((2...10).contains(call.misdirected), "\(call.misdirected) datagrams")
        #expect(call.misdirectedBytes <= 8_000)
        // A repeated ClientHello causes the flight to be sent again, up to a limit.
        let hello = try #require(forged.last)
        for _ in 0..<repeats {
            call.inject(hello, on: Self.victim)
            call.settle()
        }
        call.run(milliseconds: 40_000)
        #expect(call.misdirected <= HandshakeFlights.limit + 2)
    }

    @Test func `media stops 30 s after the last answer, and comes back with the next`() throws {
        var call = try Self.call()
        // The first viewer does not answer our checks.
        let key = call.peers[1].path
        call.answers = { path in path != key }
        var last = 0
        Self.play(&call, seconds: 45) { call, step in
            if call.peers[1].received.count > last { last = call.peers[1].received.count }
            if step % 5 == 0 { call.check(from: 1) }
        }
        #expect((290...310).contains(last), "ten packets a second, for 30 s: \(last)")
        let lost = call.takeEvents().filter {
            if case .transport(_, .reconnecting) = $0 { true } else { false }
        }
        #expect(lost.count == 1)
        let ended = call.statistics().consentsEnded
        #expect(ended == 1)
        #expect(call.peers[2].received.count == 451, "the other viewer has missed nothing")
        let agree = call.destinationsAgree
        #expect(agree)

        call.answers = { _ in true }
        call.check(from: 1)
        let found = call.takeEvents().filter {
            if case .transport(_, .reconnected) = $0 { true } else { false }
        }
        #expect(found.count == 1)
        let before = call.peers[1].received.count
        Self.play(&call, seconds: 1)
        #expect(call.peers[1].received.count >= before + 9)
    }

    @Test func `a peer that answers is checked each five seconds, and gets everything`() throws {
        var call = try Self.call()
        var asked = 0
        let path = call.peers[1].path
        call.inspects = { peer, datagram in
            if peer.path == path, datagram[0] == 0, datagram[1] == 1 { asked += 1 }
        }
        Self.play(&call, seconds: 120)
        #expect((20...30).contains(asked), "\(asked)")
        #expect(call.peers[1].received.count == 1_201)
    }

    @Test(arguments: Extent.seeds(20, short: 5))
    func `an honest peer whose address changes has its media back within a second`(
        seed: UInt64
    ) throws {
        var call = try Self.call()
        var noise = SeededRandom(seed: seed)
        call.peers[1].path = .from(port: 6_666, host: 0x0a00_0001)
        // A third is lost in each direction; the client checks each 200 ms and sends feedback each
        // 50.
        call.loses = { _, _ in noise.next() % 3 == 0 }
        let before = call.peers[1].datagrams
        var back: Int64?
        let moved = call.now
        for step in 0..<40 where back == nil {
            if step % 4 == 0 { call.check(from: 1) }
            call.nack(9_999, from: 1, ssrc: 0xaaaa)
            call.run(milliseconds: 50)
            if call.core.transports[1].path == call.peers[1].path {
                back = call.now.milliseconds(since: moved)
            }
        }
        #expect(call.peers[1].datagrams > before)
        #expect(try #require(back) <= 1_000)
        #expect(call.misdirectedMedia == 0)
    }

    @Test func `an ICE restart that is not completed leaves media where it is`() throws {
        var call = try Self.call()
        // The answer never reached the client: it knows its old credentials only.
        call.reconfigure(1) { configuration in
            configuration.ice = ICECredentials(
                localFragment: "again",
                localPassword: "corepassword-again-0123456789",
                remoteFragment: "unused",
                remotePassword: "peerpassword-unused-0123456789"
            )
        }
        Self.play(&call, seconds: 60)
        let ended = call.statistics().consentsEnded
        #expect(ended == 0)
        #expect(call.peers[1].received.count == 601)
    }

    @Test(arguments: Extent.seeds(4, short: 2))
    func `on a line that loses a third each way consent does not end`(seed: UInt64) throws {
        var call = try Self.call()
        var noise = SeededRandom(seed: seed)
        call.loses = { _, _ in noise.next() % 3 == 0 }
        call.run(milliseconds: 600_000)
        let ended = call.statistics().consentsEnded
        #expect(ended == 0)
    }

    @Test func `consent of long ago does not bring media back where a connection ends`() throws {
        var call = try Self.call()
        let connection = Path(
            remote: Address(ipv4: 0x7f00_0001, port: 9_000),
            local: Path.firstConnection
        )
        call.peers[1].path = connection
        call.check(from: 1)
        Self.play(&call, seconds: 40)
        #expect(call.peers[1].received.count == 401)
        call.core.lose(connection, at: call.now)
        call.silent.insert(1)
        Self.play(&call, seconds: 20)
        #expect(call.misdirectedMedia == 0)
    }

    @Test func `a TCP connection gets no consent checks`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.join(slots: [Media.slot(0)])
        call.peers[1].path = Path(
            remote: Address(ipv4: 0x7f00_0001, port: 9_000),
            local: Path.firstConnection
        )
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        var asked = 0
        let path = call.peers[1].path
        call.inspects = { peer, datagram in
            if peer.path == path, datagram[0] == 0, datagram[1] == 1 { asked += 1 }
        }
        for step in 0..<400 as Range<UInt16> {
            call.sendVideo(sequence: step + 2, pictureID: step + 2, isKeyframe: false)
            call.run(milliseconds: 100)
        }
        #expect(asked == 0)
        #expect(call.peers[1].received.count == 401)
    }

    @Test func `nonces are unpredictable from one another`() {
        let seeds = SplitMix(seed: 1)
        var known = seeds
        var secret = SecretNumbers(key: Array(repeating: 7, count: 32))
        var other = SecretNumbers(key: Array(repeating: 8, count: 32))
        let numbers = (0..<100).map { _ in secret.next() }
        #expect(Set(numbers).count == 100)
        #expect(Set(numbers).isDisjoint(with: (0..<100).map { _ in other.next() }))
        #expect(Set(numbers).isDisjoint(with: (0..<1_000).map { _ in known.next() }))
    }
}
