import CKernel
import RTP
import Testing

@testable import RTPForward
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Plain RTP output up to the sockets, in virtual time.
@Suite struct RoomOutputTests {
    private static let publication = PublicationID(index: 1, generation: 1)
    private static let track = OutputTrack(
        publication: publication,
        participant: "a",
        name: "",
        stream: "str-1",
        source: .camera,
        kind: .video
    )

    private var now = Instant(nanoseconds: 1_000_000_000)
    private var number: Int64 = 10

    private static func output(to address: Address, codec: Codec = .vp8) -> RTPForwarder {
        let line = RTPForwardTarget.Line(
            kind: .video,
            address: address,
            codec: codec,
            ssrc: SSRC(rawValue: 7),
            firstNumber: 1,
            firstTimestamp: 0
        )
        let output = RTPForwardTarget(stream: "str-1", lines: [line])
        let setup = OutputSetup(
            id: 1,
            name: "tap-1",
            room: "r",
            directory: "",
            started: 0,
            purpose: .output(output)
        )
        var room = RTPForwarder(setup, output)
        room.attach(track)
        return room
    }

    private mutating func packet(isKeyframe: Bool = false, codec: Codec = .vp8) -> TapPacket {
        now = now.advanced(milliseconds: 40)
        number += 1
        var packet = TapPacket(
            publication: Self.publication,
            codec: codec,
            number: number,
            timestamp: UInt32(truncatingIfNeeded: number * 3_600),
            arrival: now,
            payload: [0x10, isKeyframe ? 0x10 : 0x11, 0, 0, UInt8(number)]
        )
        packet.isKeyframeStart = isKeyframe
        return packet
    }

    /// Reads all datagrams in a socket's queue.
    private static func datagrams(_ socket: UDPSocket) -> [[UInt8]] {
        var found: [[UInt8]] = []
        while true {
            var bytes = [UInt8](repeating: 0, count: 1_500)
            var places = bytes.mutableSpan
            let count = kernel_read(socket.descriptor, &places)
            guard count > 0 else { return found }
            found.append(Array(bytes.prefix(Int(count))))
        }
    }

    @Test mutating func `E-3 packets go out as long as the gate is open`() throws {
        let socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { socket.close() }
        var output = Self.output(to: socket.address)
        #expect(output.expire(at: now, unixNanoseconds: 0).isEmpty, "nothing has come")
        output.receive(packet(), at: now)
        let wishes = output.expire(at: now, unixNanoseconds: 0)
        #expect(wishes.count == 1 && wishes.first?.position == 0)
        #expect(output.expire(at: now, unixNanoseconds: 0).isEmpty, "asked once a second")
        output.receive(packet(isKeyframe: true), at: now)
        output.receive(packet(), at: now)
        let sent = Self.datagrams(socket)
        #expect(sent.map(\.last) == [12, 13])
        #expect(output.counts.packets == 2 && output.counts.bytes == 34)
        output.gate(Self.publication, open: false)
        output.receive(packet(), at: now)
        #expect(Self.datagrams(socket).isEmpty)
        #expect(output.takeCounts()?.packets == 2)
        #expect(output.takeCounts() == nil, "told already")
    }

    @Test mutating func `a new receiver gets a keyframe`() throws {
        let socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        let address = socket.address
        socket.close()
        var output = Self.output(to: address)
        output.receive(packet(isKeyframe: true), at: now)
        for _ in 0..<40 { output.receive(packet(), at: now) }
        #expect(output.counts.refused >= 15 && output.counts.packets >= 15)
        #expect(output.expire(at: now, unixNanoseconds: 0).isEmpty, "nobody would get it")
        let listener = try UDPSocket.open(address)
        defer { listener.close() }
        // The last refusal is reported with the first packet.
        for _ in 0..<10 { output.receive(packet(), at: now) }
        #expect(Self.datagrams(listener).count >= 9)
        #expect(output.expire(at: now, unixNanoseconds: 0).count == 1)
        output.receive(packet(), at: now)
        let later = now.advanced(milliseconds: 2_000)
        #expect(output.expire(at: later, unixNanoseconds: 0).isEmpty, "it was asked for")
    }

    @Test mutating func `another codec ends it`() throws {
        let socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        defer { socket.close() }
        var output = Self.output(to: socket.address)
        output.receive(packet(isKeyframe: true), at: now)
        #expect(output.failure == nil)
        output.receive(packet(isKeyframe: true, codec: .vp9), at: now)
        #expect(output.failure == "codec-changed")
        #expect(Self.datagrams(socket).count == 1)
    }

    @Test func `an unreachable destination ends it`() {
        // Broadcast requires a permission that the socket does not have.
        let output = Self.output(to: Address(ipv4: 0xffff_ffff, port: 9))
        #expect(output.failure == "unreachable")
    }
}
