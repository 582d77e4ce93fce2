import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// First picture of a new viewer without a keyframe request to the publisher.
struct WarmPictureTests {
    /// A publisher of one encoding, and viewers of whom none watches.
    private static func call(
        viewers: Int = 2,
        limits: CoreLimits = .default
    ) throws -> Call {
        var call = try Call(limits: limits)
        var other = Media.video(2, ssrc: 0x3333)
        other.mid = "2"
        call.join(publications: [Media.video(1, ssrc: 0x2222), other])
        for index in 0..<UInt32(viewers) {
            call.join(slots: [Media.slot(index, ssrc: 0xa000 + 2 * index)])
        }
        for index in 0...viewers { call.connect(index) }
        return call
    }

    /// Sends frames, 30 a second, the first of them a keyframe.
    private static func send(
        _ numbers: Range<UInt16>,
        to call: inout Call,
        keyframe: UInt16? = 0,
        ssrc: UInt32 = 0x2222
    ) {
        for number in numbers {
            call.sendVideo(
                ssrc: ssrc,
                sequence: number,
                pictureID: number,
                isKeyframe: number == keyframe
            )
            call.run(milliseconds: 33)
        }
    }

    private static func watch(
        _ call: inout Call,
        _ viewer: Int = 1,
        _ publication: UInt32? = 1
    ) -> [Packet.Copy] {
        call.peers[viewer].received = []
        call.bind(slot: UInt32(viewer - 1), publication: publication)
        return packets(call, viewer)
    }

    private static func packets(_ call: borrowing Call, _ viewer: Int = 1) -> [Packet.Copy] {
        call.peers[viewer].received.filter { $0.ssrc & 1 == 0 }.map(Packet.Copy.init)
    }

    @Test func `a newcomer has the last picture at once, and nobody asks the publisher`() throws {
        var call = try Self.call()
        Self.send(0..<60, to: &call)
        let first = Self.watch(&call)
        #expect(first.count == 60)
        #expect(first.first?.isKeyframe == true)
        #expect(first.map(\.number).isContiguous && first.map(\.picture).isContiguous)
        let steps = zip(first, first.dropFirst()).map { $1.timestamp &- $0.timestamp }
        #expect(steps.allSatisfy { $0 == 90 })
        Self.send(60..<80, to: &call)
        let all = Self.packets(call)
        #expect(all.count == 80)
        #expect(all.map(\.number).isContiguous && all.map(\.picture).isContiguous)
        let later = zip(all.dropFirst(59), all.dropFirst(60)).map { $1.timestamp &- $0.timestamp }
        #expect(later.allSatisfy { $0 == 3_000 })
        #expect(call.keyframeRequests(at: 0) == 0)
    }

    @Test func `a slot that follows talkers goes back and forth without a request`() throws {
        var call = try Self.call()
        var number: UInt16 = 0
        var last: Packet.Copy?
        for round in 0..<8 {
            call.peers[1].received = []
            call.bind(slot: 0, publication: round % 2 == 0 ? 1 : 2)
            for _ in 0..<5 {
                Self.send(number..<number + 1, to: &call, ssrc: 0x2222)
                Self.send(number..<number + 1, to: &call, ssrc: 0x3333)
                number += 1
            }
            let packets = Self.packets(call)
            let all = (last.map { [$0] } ?? []) + packets
            #expect(all.map(\.number).isContiguous && all.map(\.picture).isContiguous)
            #expect(packets.count >= 5 * (round + 1))
            let steps = zip(all, all.dropFirst()).map {
                Int32(bitPattern: $1.timestamp &- $0.timestamp)
            }
            #expect(steps.allSatisfy { $0 > 0 && $0 < 9_000 })
            last = packets.last
        }
        #expect(call.keyframeRequests(at: 0) == 0)
    }

    @Test func `a picture over its bounds is not kept, and the publisher is asked`() throws {
        var call = try Self.call()
        Self.send(0..<UInt16(WarmPicture.packetLimit) + 1, to: &call)
        #expect(Self.watch(&call).isEmpty)
        call.run(milliseconds: 5)
        #expect(call.keyframeRequests(at: 0) == 1)
        call.run(milliseconds: 4_000)
        #expect(call.core.receiver.pool.warmCount == 0)
    }

    @Test func `a picture that is too old is not sent`() throws {
        var call = try Self.call()
        Self.send(0..<5, to: &call)
        for _ in 0..<8 {
            call.run(milliseconds: 1_990)
            Self.send(5..<6, to: &call)
        }
        #expect(Self.watch(&call).isEmpty)
    }

    @Test func `a picture with a gap is not sent until the gap is filled`() throws {
        var call = try Self.call(viewers: 3)
        Self.send(0..<5, to: &call)
        Self.send(6..<8, to: &call)
        #expect(Self.watch(&call, 1).isEmpty)
        Self.send(5..<6, to: &call)
        Self.send(8..<9, to: &call)
        #expect(Self.watch(&call, 2).count == 9)
    }

    @Test func `what the newcomer loses of it is sent again`() throws {
        var call = try Self.call()
        Self.send(0..<70, to: &call)
        let first = Self.watch(&call)
        try #require(first.count == 70)
        for lost in [0, 30, 69] {
            call.nack(first[lost].number, from: 1, ssrc: 0xa000)
            let rtx = try #require(call.peers[1].received.last)
            let packet = try Packet(rtx.span)
            #expect(packet.ssrc.rawValue == 0xa001)
            let payload = Array(rtx[(packet.headerLength + 2)...])
            #expect(payload == first[lost].payload)
        }
        #expect(call.keyframeRequests(at: 0) == 0)
    }

    @Test(arguments: ["mute", "unpublish", "unbind", "rebind"])
    func `a right that is lost cancels it`(cause: String) throws {
        var call = try Self.call()
        Self.send(0..<30, to: &call)
        Self.send(0..<30, to: &call, ssrc: 0x3333)
        call.peers[1].received = []
        let slot = SlotID(index: 0, generation: 1)
        let publication = PublicationID(index: 1, generation: 1)
        func binding(_ index: UInt32) -> Binding {
            Binding(
                publication: PublicationID(index: index, generation: 1),
                subscription: 9,
                open: true
            )
        }
        call.core.apply(.bind(slot, binding(1)), at: call.now, into: &call.output)
        switch cause {
        case "mute":
            call.core.apply(.gate(publication, open: false), at: call.now, into: &call.output)
        case "unpublish":
            call.peers[0].configuration.publications.removeFirst()
            call.core.apply(
                .configure(call.peers[0].id, call.peers[0].configuration),
                at: call.now,
                into: &call.output
            )
        case "unbind": call.core.apply(.bind(slot, nil), at: call.now, into: &call.output)
        default: call.core.apply(.bind(slot, binding(2)), at: call.now, into: &call.output)
        }
        call.settle()
        call.run(milliseconds: 100)
        let payloads = Self.packets(call).map(\.payload)
        if cause == "rebind" {
            #expect(payloads.count == 30)
        } else {
            #expect(payloads.isEmpty)
        }
    }

    @Test func `what waits for the newcomer's path is dropped with its right`() throws {
        var call = try Self.call()
        Self.send(0..<2, to: &call)
        _ = Self.watch(&call)
        // Feedback, after which packets are paced.
        call.sendRTCP(from: 1) { output in
            let arrivals: [Int64] = [0, 1_000_000]
            _ = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 0xa000),
                feedbackCount: 0,
                base: SequenceNumber(rawValue: 1),
                arrivals: arrivals.span,
                into: &output
            )
        }
        Self.send(0..<30, to: &call, ssrc: 0x3333)
        let sent = Self.watch(&call, 1, 2).count
        #expect(sent > 0 && sent < 30)
        call.apply(.gate(PublicationID(index: 2, generation: 1), open: false))
        call.run(milliseconds: 100)
        #expect(Self.packets(call).count == sent)
    }

    @Test func `a full pool keeps no picture, and live packets have all of it`() throws {
        var limits = CoreLimits.default
        limits.packetPool = 64
        var call = try Self.call(limits: limits)
        Self.send(0..<12, to: &call)
        #expect(call.core.receiver.pool.warmCount == 12)
        Self.send(12..<40, to: &call)
        #expect(call.core.receiver.pool.warmCount == 0)
        #expect(Self.watch(&call).isEmpty)
        #expect(call.statistics().drops[DropReason.bufferFull.index] == 0)
    }

    @Test func `a viewer whose path does not take it gets a keyframe instead`() throws {
        var call = try Self.call(viewers: 1)
        call.peers[1].configuration.slots += (1..<8).map {
            Media.slot($0, ssrc: 0xa000 + 2 * $0)
        }
        call.reconfigure(1) { _ in }
        Self.send(0..<90, to: &call)
        for slot in 0..<8 as Range<UInt32> { call.bind(slot: slot, publication: 1) }
        let starts = Set(call.peers[1].received.map(\.ssrc))
        // 25 kB each, and 98 kB at most within half a second.
        #expect(starts.count == 3)
        call.run(milliseconds: 5)
        #expect(call.keyframeRequests(at: 0) == 1)
    }

    @Test func `a viewer whose path is full gets a keyframe instead`() throws {
        var call = try Self.call(viewers: 1)
        Self.send(0..<60, to: &call)
        call.core.transports[1].bandwidth?.estimator.detectors.make(Detectors())
        for (second, wait) in [20, 520].enumerated() {
            let sent = Int64(second) * 1_000_000_000
            call.core.transports[1].bandwidth?.estimator.detectors.value.noteArrival(
                SentPackets.Entry(time: sent, bytes: 1_200, state: .inFlight),
                sent + Int64(wait) * 1_000_000
            )
        }
        let isFull = call.core.transports[1].bandwidth?.isFull()
        #expect(isFull == true)
        #expect(Self.watch(&call).isEmpty)
        call.run(milliseconds: 5)
        #expect(call.keyframeRequests(at: 0) == 1)
    }

    /// Forty viewers join a publisher of three encodings within 20 s.
    @Test(arguments: [false, true])
    func `40 newcomers in 20 s have a picture at once and cost 10 keyframes`(
        makesAll: Bool
    ) throws {
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1, rids: ["q", "h", "f"])])
        for index in 0..<40 as Range<UInt32> {
            call.join(slots: [Media.slot(index, ssrc: 0xa000 + 2 * index)])
        }
        for index in 0...40 { call.connect(index) }
        var source = LayeredSource(
            rates: [150e3, 400e3, 1.5e6],
            framesPerSecond: 30,
            at: call.now.nanoseconds,
            seed: 5
        )
        var asked: [Int] = []
        var waits: [Int] = []
        var joined: [Int: Int] = [:]
        var widths: [Int?] = []
        for time in 0..<23_001 {
            // Each stays for two and a half seconds, which is enough to see the largest picture.
            if time >= 3_500, time % 500 == 0 {
                let viewer = widths.count + 1
                widths.append(Self.packets(call, viewer).last { $0.isKeyframe }?.width)
                call.bind(slot: UInt32(viewer - 1), publication: nil)
            }
            if time >= 1_000, time < 21_000, time % 500 == 0 {
                let viewer = (time - 1_000) / 500
                joined[viewer] = time
                call.bind(slot: UInt32(viewer), publication: 1)
            }
            for (viewer, start) in joined where !call.peers[viewer + 1].received.isEmpty {
                waits.append(time - start)
                joined[viewer] = nil
            }
            call.run(milliseconds: 1)
            let requests = call.peers[0].takeKeyframeRequests()
            if !requests.isEmpty, time < 21_000 { asked.append(time) }
            for ssrc in requests {
                source.ask(ssrc, at: call.now.nanoseconds)
                guard makesAll else { continue }
                for other in 0..<3 as Range<UInt32> {
                    source.ask(0x5000 + other, at: call.now.nanoseconds)
                }
            }
            let packets = source.packets(at: call.now.nanoseconds)
            if !packets.isEmpty { call.send(packets, from: 0) }
        }
        #expect(waits.count == 40)
        #expect(asked.count <= (makesAll ? 10 : 12), "\(asked)")
        // Nearly all at once; where only the encoding in question gets a keyframe, the lowest one's
        // becomes too old now and then.
        #expect(waits.count { $0 == 0 } >= (makesAll ? 39 : 34), "\(waits)")
        #expect((waits.max() ?? .max) <= 1_000)
        #expect(widths.count == 40 && widths.allSatisfy { $0 == 1_280 })
    }
}

extension Packet {
    /// Copy of a packet's fields; its payload is VP8's.
    fileprivate struct Copy {
        let number: UInt16
        let timestamp: UInt32
        let payload: [UInt8]

        init(_ bytes: [UInt8]) {
            let header = bytes[0] & 0x10 == 0 ? 12 : 16 + 4 * Int(bytes.u16(14))
            let padding = bytes[0] & 0x20 == 0 ? 0 : Int(bytes[bytes.count - 1])
            number = bytes.u16(2)
            timestamp = bytes.u32(4)
            payload = Array(bytes[header..<bytes.count - padding])
        }

        var picture: UInt16 { payload.u16(2) & 0x7fff }
        var isKeyframe: Bool { payload[0] & 0x10 != 0 && payload[6] & 1 == 0 }
        var width: Int { Int(payload[12]) | Int(payload[13]) << 8 }
    }
}
