import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Viewers that ask for a packet every 100 ms, as browsers do that do not know their round trip,
/// whether or not a repetition can have arrived.
struct RepeatedNACKTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Milliseconds, with the wait of the feedback.
        var roundTrip: Int64
        /// Packets sent for each request.
        var answers: [UInt64]
    }

    static let rows = [
        Row(testDescription: "a short path", roundTrip: 40, answers: [1, 1, 1, 1, 1, 1]),
        Row(testDescription: "a request later", roundTrip: 180, answers: [1, 1, 1, 1, 1, 1]),
        Row(testDescription: "a long path", roundTrip: 300, answers: [1, 0, 0, 1, 0, 0]),
        Row(testDescription: "a very long path", roundTrip: 1_400, answers: [1, 0, 0, 0, 1, 0]),
    ]

    @Test(arguments: rows, [true, false])
    func `a packet is not repeated while its last repetition is on its way`(
        _ row: Row,
        hasRTX: Bool
    ) throws {
        var call = try Self.call(hasRTX: hasRTX)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.run(milliseconds: row.roundTrip)
        report(row.roundTrip, in: &call, hasRTX: hasRTX)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let number = try #require(call.numbers(at: 1).last)
        var answers: [UInt64] = []
        for _ in row.answers {
            let before = call.statistics().rtxOut
            call.nack(number, from: 1, ssrc: 0xaaaa)
            answers.append(call.statistics().rtxOut - before)
            call.run(milliseconds: 100)
        }
        #expect(answers == row.answers)
        let statistics = call.statistics()
        #expect(statistics.rtxInFlight == UInt64(row.answers.count) - row.answers.reduce(0, +))
        #expect(statistics.rtxOverBudget == 0)
    }

    @Test(arguments: [1, 3] as [UInt16])
    func `a repetition that is lost is replaced without another request`(times: UInt16) throws {
        var call = try Self.call(hasRTX: true)
        var reports = ArrivalReports(of: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.run(milliseconds: 300)
        reports.report(in: &call)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let number = try #require(call.numbers(at: 1).last)
        call.loses = { toCore, datagram in !toCore && datagram.u32(8) == 0xaaab }
        call.nack(number, from: 1, ssrc: 0xaaaa)
        #expect(call.statistics().rtxOut == 1)
        call.run(milliseconds: 20)
        for turn in 1...times as ClosedRange<UInt16> {
            if turn == times { call.loses = { _, _ in false } }
            call.sendVideo(sequence: 2 + turn, pictureID: 2 + turn, isKeyframe: false)
            reports.report(in: &call)
            #expect(call.statistics().rtxOut == 1 + UInt64(turn))
        }
        // The last one has arrived.
        call.sendVideo(sequence: 9, pictureID: 9, isKeyframe: false)
        reports.report(in: &call)
        #expect(call.statistics().rtxOut == 1 + UInt64(times))
        #expect(call.statistics().rtxInFlight == 0)
    }

    /// A keyframe has come since, so the picture goes on without the packet.
    @Test func `a repetition that is lost and no longer missed tells of no freeze`() throws {
        var call = try Self.call(hasRTX: true)
        var reports = ArrivalReports(of: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        reports.report(in: &call)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let number = try #require(call.numbers(at: 1).last)
        call.loses = { toCore, datagram in !toCore && datagram.u32(8) == 0xaaab }
        call.nack(number, from: 1, ssrc: 0xaaaa)
        for step in 3..<23 as Range<UInt16> {
            call.run(milliseconds: 50)
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 3)
            reports.report(in: &call)
        }
        let account = call.core.explain(SlotID(index: 0, generation: 1), at: call.now)?.freezes
        #expect(try #require(account).recent.isEmpty)
        let left = call.statistics()
        #expect(left.rtxInFlight == 0)
        #expect(left.rtxOverBudget == 0)
    }

    @Test func `a slot without credit repeats nothing that was lost`() throws {
        var call = try Self.call(hasRTX: true)
        var reports = ArrivalReports(of: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        reports.report(in: &call)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        let number = try #require(call.numbers(at: 1).last)
        call.loses = { toCore, datagram in !toCore && datagram.u32(8) == 0xaaab }
        call.nack(number, from: 1, ssrc: 0xaaaa)
        call.core.forwarder.slots[SlotIndex(0)].retransmissionCredit = 2
        call.sendVideo(sequence: 3, pictureID: 3, isKeyframe: false)
        reports.report(in: &call)
        #expect(call.statistics().rtxOut == 1)
    }

    @Test func `the cost of a wide path's repairs is soon forgotten on a narrow one`() {
        let start = Instant(nanoseconds: 5_000_000_000)
        var path = PathBandwidth(at: start)
        path.resume(10_000_000, at: start)
        path.receiveLoss(fraction: 26, roundTripMilliseconds: 20, at: start)
        var sent = 0
        while path.takeRetransmission(bytes: 1_200, at: start), sent < 1_000 { sent += 1 }
        #expect((50...500).contains(sent))
        path.resume(300_000, at: start)
        path.receiveLoss(fraction: 26, roundTripMilliseconds: 20, at: start)
        let soon = path.takeRetransmission(bytes: 1_200, at: start.advanced(milliseconds: 100))
        #expect(!soon)
        let later = path.takeRetransmission(bytes: 1_200, at: start.advanced(milliseconds: 900))
        #expect(later)
    }

    @Test func `other packets are sent meanwhile`() throws {
        var call = try Self.call(hasRTX: true)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.run(milliseconds: 300)
        report(300, in: &call, hasRTX: true)
        for step in 2..<6 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: false)
        }
        let last = try #require(call.numbers(at: 1).last)
        call.nack(last, from: 1, ssrc: 0xaaaa)
        call.run(milliseconds: 100)
        call.nack((last - 3)..<(last + 1), from: 1, ssrc: 0xaaaa)
        let statistics = call.statistics()
        #expect(statistics.rtxOut == 4)
        #expect(statistics.rtxInFlight == 1)
    }

    @Test func `requests beyond the budget are counted`() throws {
        var call = try Self.call(hasRTX: false)
        for step in 1..<100 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 1)
        }
        // A tenth is lost.
        call.core.transports[1].bandwidth?
            .receiveLoss(fraction: 26, roundTripMilliseconds: 20, at: call.now)
        let first = try #require(call.numbers(at: 1).first)
        call.nack(first..<(first + 99), from: 1, ssrc: 0xaaaa)
        let statistics = call.statistics()
        // At 300 kbit/s or less, a quarter of a second of half of it is less than the least burst.
        #expect((20...30).contains(statistics.rtxOut))
        #expect(statistics.rtxOut + statistics.rtxOverBudget == 99)
        #expect(statistics.rtxInFlight == 0)
    }

    private static func call(hasRTX: Bool) throws -> Call {
        var slot = Media.slot(0)
        if !hasRTX {
            slot.formats[0].rtxPayloadType = nil
            slot.formats[0].feedback = [.nack, .pictureLoss, .remb]
            slot.rtxSSRC = nil
        }
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.join(slots: [slot])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        return call
    }

    /// Tells the core the viewer's round trip in milliseconds: by feedback, or as if by a receiver
    /// report where packets carry no number for it.
    private func report(_ roundTrip: Int64, in call: inout Call, hasRTX: Bool) {
        if hasRTX {
            var reports = ArrivalReports(of: 1)
            reports.report(in: &call)
        } else {
            call.core.transports[1].bandwidth?
                .receiveLoss(fraction: 0, roundTripMilliseconds: Int(roundTrip), at: call.now)
        }
    }
}
