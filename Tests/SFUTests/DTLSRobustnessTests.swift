import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

@Suite("DTLS robustness")
struct DTLSRobustnessTests {
    let here: DTLSIdentity
    let there: DTLSIdentity

    init() throws {
        here = try DTLSIdentity()
        there = try DTLSIdentity()
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `mutated datagrams do no harm`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var link = try DTLSLink(client: there, server: here)
        link.run { _, datagram in
            var datagram = datagram
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                let place = Int.random(in: 0..<datagram.count, using: &random)
                datagram[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1:
                datagram.removeLast(Int.random(in: 0...datagram.count, using: &random))
            case 2:
                let start = Int.random(in: 0..<datagram.count, using: &random)
                for place in start..<min(start + 40, datagram.count) {
                    datagram[place] = UInt8.random(in: 0...255, using: &random)
                }
            case 3: datagram += random.bytes(20)
            default: break
            }
            return datagram
        }
        // Either side may have failed; if both are connected, their keys agree.
        if let client = link.clientEnd.keys, let server = link.serverEnd.keys {
            let mirrored = Digest.equal(client.local, server.remote)
            #expect(mirrored)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `noise does no harm and no more than noise`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var link = try DTLSLink(client: there, server: here)
        for _ in 0..<200 {
            var noise = random.bytes(Int.random(in: 0..<1_500, using: &random))
            if noise.count >= 13, Bool.random(using: &random) {
                let head = hex("16 feff 0000 0000000000")
                for place in head.indices { noise[place] = head[place] }
                noise[11] = UInt8((noise.count - 13) >> 8)
                noise[12] = UInt8((noise.count - 13) & 0xff)
                noise[0] = UInt8.random(in: 20...25, using: &random)
            }
            _ = link.server.receive(noise.span, at: link.now)
        }
        while takeDatagram(&link.server) != nil {}
    }

    @Test func `a ClientHello in one-byte fragments is reassembled`() throws {
        var link = try DTLSLink(client: there, server: here)
        let takenWhole = takeDatagram(&link.client)
        let whole = try #require(takenWhole)
        let body = whole.count - 25
        var order = Array(0..<body)
        var random = SeededRandom(seed: 4)
        order.shuffle(using: &random)
        for (number, offset) in order.enumerated() {
            var fragment = hex("16 feff 0000") + [0, 0, 0, 0] + [UInt8(number >> 8)]
            fragment += [UInt8(number & 0xff), 0, 13] + whole[13..<19]
            fragment += [0, UInt8(offset >> 8), UInt8(offset & 0xff), 0, 0, 1, whole[25 + offset]]
            link.serverEnd.note(link.server.receive(fragment.span, at: link.now))
        }
        // The forged records have higher numbers than the client's own, so the handshake ends here.
        let flight = takeDatagram(&link.server)
        #expect(flight?[13] == 2)
    }

    /// Sends a ClientHello in fragments of one to forty bytes, some empty, most of them invalid.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `B2 fragments that contradict each other are answered once at most`(seed: UInt64) throws {
        var link = try DTLSLink(client: there, server: here)
        let takenWhole = takeDatagram(&link.client)
        let whole = try #require(takenWhole)
        let body = whole.count - 25
        var random = SeededRandom(seed: seed)
        var flights = 0
        for number in 0..<400 {
            let from = Int.random(in: 0...body, using: &random)
            let count = min(body - from, Int.random(in: 0...40, using: &random))
            var fragment = hex("16 feff 0000 00000000") + [UInt8(number >> 8), UInt8(number & 255)]
            fragment += [0, UInt8(12 + count)] + whole[13..<19]
            fragment += [0, UInt8(from >> 8), UInt8(from & 255), 0, 0, UInt8(count)]
            fragment += whole[25 + from..<25 + from + count].map {
                Bool.random(using: &random) ? $0 : $0 ^ UInt8.random(in: 0...255, using: &random)
            }
            link.serverEnd.note(link.server.receive(fragment.span, at: link.now))
            var said = false
            while takeDatagram(&link.server) != nil { said = true }
            flights += said ? 1 : 0
        }
        #expect(flights <= 1)
        #expect(link.serverEnd.keys == nil)
    }

    @Test func `DTLS 1.0 alone is refused`() throws {
        var link = try DTLSLink(client: there, server: here)
        let takenHello = takeDatagram(&link.client)
        var hello = try #require(takenHello)
        #expect(hello[25] == 0xfe && hello[26] == 0xfd)
        hello[26] = 0xff
        link.serverEnd.note(link.server.receive(hello.span, at: link.now))
        #expect(link.serverEnd.reason == .handshakeFailed)
        let takenAlert = takeDatagram(&link.server)
        let alert = try #require(takenAlert)
        #expect(alert[0] == 21)
    }

    /// Suites of RFC 5246, 4492 and 4279, and an unassigned one.
    static let weakSuites: [(name: String, value: [UInt8])] = [
        ("no encryption", [0x00, 0x02]), ("RC4", [0xc0, 0x07]), ("3DES", [0xc0, 0x08]),
        ("no forward secrecy", [0x00, 0x9c]), ("CBC", [0xc0, 0x09]),
        ("CBC, SHA-256", [0xc0, 0x23]), ("nobody authenticated", [0xc0, 0x18]),
        ("a shared secret", [0x00, 0xa8]), ("unknown", [0x7a, 0x7a]),
    ]

    @Test(arguments: weakSuites.indices)
    func `B5 a hello with nothing but a weak suite is refused`(row: Int) throws {
        var link = try DTLSLink(client: there, server: here)
        let takenHello = takeDatagram(&link.client)
        var hello = try #require(takenHello)
        // Record header, handshake header, version and random; then two lengths and the suites.
        let session = 13 + 12 + 34
        let cookie = session + 1 + Int(hello[session])
        let start = cookie + 1 + Int(hello[cookie])
        let count = Int(hello[start]) << 8 | Int(hello[start + 1])
        let suite = Self.weakSuites[row].value
        for place in 0..<count { hello[start + 2 + place] = suite[place % 2] }
        link.serverEnd.note(link.server.receive(hello.span, at: link.now))
        #expect(link.serverEnd.reason == .handshakeFailed, "\(Self.weakSuites[row].name)")
        let takenAlert = takeDatagram(&link.server)
        let alert = try #require(takenAlert)
        #expect(alert[0] == 21)
    }

    @Test func `a last flight that was lost is sent again`() throws {
        var link = try DTLSLink(client: there, server: here)
        // ClientHello, flight, the client's Finished, and then the server's, lost twice.
        link.exchange { number, datagram in number == 4 ? nil : datagram }
        #expect(link.serverEnd.profile == .aeadAes128Gcm)
        #expect(link.clientEnd.isOpen)
        var lost = 1
        link.run { _, datagram in
            // ChangeCipherSpec and Finished, 14 and 61 bytes.
            guard datagram.count == 75, datagram[0] == 20, lost > 0 else { return datagram }
            lost -= 1
            return nil
        }
        #expect(link.clientEnd.profile == .aeadAes128Gcm)
    }

    @Test func `a client's repeated hello is no second association`() throws {
        var link = try DTLSLink(client: there, server: here)
        let takenHello = takeDatagram(&link.client)
        let hello = try #require(takenHello)
        for _ in 0..<5 { link.serverEnd.note(link.server.receive(hello.span, at: link.now)) }
        link.exchange { _, datagram in datagram }
        _ = link.client.expire(at: link.now)
        link.run()
        #expect(link.serverEnd.profile != nil)
        link.serverEnd.note(link.server.receive(hello.span, at: link.now))
        #expect(link.serverEnd.profile != nil)
    }

    @Test(arguments: SRTPProfile.allCases)
    func `the keys drive SRTP both ways`(profile: SRTPProfile) throws {
        var link = try DTLSLink(client: try DTLSIdentity(profiles: [profile]), server: here)
        link.run()
        let context = SRTPContext()
        let clientKeys = try #require(link.clientEnd.keys)
        let serverKeys = try #require(link.serverEnd.keys)
        var client = try SRTPSession(profile: profile, keys: clientKeys, context: context)
        var server = try SRTPSession(profile: profile, keys: serverKeys, context: context)
        let up = try roundTrip(from: &client, to: &server, context)
        let down = try roundTrip(from: &server, to: &client, context)
        #expect(up && down)
    }

    private func roundTrip(
        from sender: inout SRTPSession,
        to receiver: inout SRTPSession,
        _ context: SRTPContext
    ) throws -> Bool {
        let packet = rtpPacket(17)
        var wire = packet + Array(repeating: 0, count: sender.profile.rtpOverhead)
        let payload = Array(packet[12...])
        var span = wire.mutableSpan
        let length = try sender.protectRTP(
            &span,
            headerLength: 12,
            prefixLength: 0,
            rest: payload.span,
            index: 17
        )
        context.finish()
        var back = Array(repeating: 0 as UInt8, count: length)
        var backSpan = back.mutableSpan
        let clear = try receiver.unprotectRTP(wire.span, into: &backSpan)
        return Array(back[..<clear]) == packet
    }

    /// Fragments whose claims would make us allocate memory.
    static let claims: [(name: String, records: [String], admitted: Int)] = [
        (
            "a modest message", ["16 feff 0000 000000000000 000d 01 000100 0000 000000 000001 aa"],
            26
        ),
        ("16 MB", ["16 feff 0000 000000000000 000d 01 ffffff 0000 000000 000001 aa"], 0),
        ("a thousand ahead", ["16 feff 0000 000000000000 000d 01 000100 03e8 000000 000001 aa"], 0),
        ("a record past the end", ["16 feff 0000 000000000000 00ff 01 000100"], 0),
        ("half a header", ["16 feff 0000 0000"], 0),
        (
            "three of the next epoch",
            Array(
                repeating:
                    "16fefd0001000000000000 0018 010203040506070801020304050607080102030405060708",
                count: 3
            ),
            74
        ),
        (
            "of the next epoch, and too short",
            ["16 fefd 0001 000000000000 0017 0001020304050607 08090a0b0c0d0e0f 10111213141516"], 0
        ),
        (
            "two messages of 16 kB",
            [
                "16 feff 0000 000000000000 000d 0b 003f00 0001 000000 000001 aa",
                "16 feff 0000 000000000000 000d 0b 003f00 0002 000000 000001 aa",
            ], 26
        ),
    ]

    @Test(arguments: claims)
    func `a budget is kept`(name: String, records: [String], admitted: Int) {
        var budget = DTLSBudget()
        let datagram = records.flatMap(hex)
        let count = budget.admit(datagram.span)
        #expect(count == admitted, "\(name)")
    }
}
