import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Answers to the reference times of receivers, from which viewers learn their round trip.
struct ReceiverTimeTests {
    private func send(
        _ reference: UInt64,
        of receiver: UInt32,
        in call: inout Call,
        from peer: Int = 1
    ) {
        let time = ReceiverReferenceTime(
            sender: SSRC(rawValue: receiver),
            ntp: NTPTime(rawValue: reference)
        )
        call.sendRTCP(from: peer) { output in
            ReceiverReport.encode(
                sender: SSRC(rawValue: receiver),
                reports: [ReceptionReport]().span,
                into: &output
            )
            time.encode(into: &output)
        }
    }

    /// Returns the answers to a receiver in what its peer has got, oldest first, and clears that.
    private func takeAnswers(
        to receiver: UInt32,
        in call: inout Call,
        at peer: Int = 1
    ) -> [LastReceiverTime] {
        let reports = call.peers[peer].reports
        call.peers[peer].reports = []
        return reports.compactMap { report in
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                let ssrc = SSRC(rawValue: receiver)
                if let found = try? LastReceiverTime.find(for: ssrc, in: block) { return found }
            }
            return nil
        }
    }

    @Test func `a receiver's clock is answered for six seconds, with the time it took`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        call.run(milliseconds: 1_000)
        call.peers[1].reports = []
        let sent = call.now
        send(0x1111_2222_3333_4444, of: 7, in: &call)
        var answers: [LastReceiverTime] = []
        while answers.isEmpty, call.now.nanoseconds(since: sent) < 2_000_000_000 {
            call.run(milliseconds: 1)
            answers = takeAnswers(to: 7, in: &call)
        }
        let answer = try #require(answers.first)
        #expect(answer.reference == 0x2222_3333)
        let passed = Double(call.now.nanoseconds(since: sent)) / 1e9
        #expect(passed > 0.1 && abs(Double(answer.delay) / 65_536 - passed) < 0.002)
        // Later answers tell that it took longer.
        call.run(milliseconds: 4_000)
        let later = takeAnswers(to: 7, in: &call)
        #expect(later.count >= 3 && later.allSatisfy { $0.reference == answer.reference })
        let delays = [answer.delay] + later.map(\.delay)
        #expect(zip(delays, delays.dropFirst()).allSatisfy { $1 > $0 + 50_000 })
        call.run(milliseconds: 2_500)
        call.peers[1].reports = []
        call.run(milliseconds: 2_500)
        #expect(takeAnswers(to: 7, in: &call).isEmpty)
    }

    /// Browsers look up the round trip of sound by the SSRC of its sender, and forget it with a
    /// report of it without an answer.
    @Test func `each sender of sound answers`() throws {
        let voices = (0..<11).map { 0xbb00 + UInt32($0) }
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(
            slots: [Media.slot(0)]
                + voices.enumerated().map {
                    Media.slot(UInt32($0 + 1), kind: .audio, ssrc: $1)
                }
        )
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        for slot in voices.indices { call.bind(slot: UInt32(slot + 1), publication: 0) }
        try LipSyncTests.send(1, 48_000, 90_000, at: NTPTime(rawValue: 1 << 62), in: &call)
        call.run(milliseconds: 900)
        call.peers[1].reports = []
        try LipSyncTests.send(
            2,
            96_000,
            180_000,
            at: NTPTime(rawValue: 1 << 62 + 1 << 32),
            in: &call
        )
        send(0x9_0000, of: 7, in: &call)
        call.run(milliseconds: 1_200)
        var heard: Set<UInt32> = []
        for report in call.peers[1].reports {
            var blocks = RTCPBlocks(report.span)
            var senders: Set<UInt32> = []
            var answering: Set<UInt32> = []
            while let block = blocks.next() {
                let ssrc = block.bytes.u32(at: 4)
                if block.type == RTCPType.senderReport { senders.insert(ssrc) }
                guard let answer = try? LastReceiverTime.find(for: SSRC(rawValue: 7), in: block)
                else { continue }
                #expect(answer.reference == 9)
                answering.insert(ssrc)
            }
            guard !answering.isEmpty else { continue }
            #expect(senders.intersection(voices) == answering)
            heard.formUnion(answering)
        }
        #expect(heard == Set(voices))
    }

    @Test func `the latest clock of each receiver counts, and nobody else is told`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        send(0x1_0000, of: 7, in: &call)
        send(0x2_0000, of: 8, in: &call)
        call.run(milliseconds: 10)
        send(0x3_0000, of: 7, in: &call)
        call.run(milliseconds: 1_500)
        let reports = call.peers[1].reports
        #expect(takeAnswers(to: 7, in: &call).map(\.reference).last == 3)
        call.peers[1].reports = reports
        #expect(takeAnswers(to: 8, in: &call).map(\.reference).last == 2)
        #expect(takeAnswers(to: 7, in: &call, at: 0).isEmpty)
    }

    @Test func `a publisher is answered with the reports on its streams`() throws {
        var call = try ForwardingTests.call()
        for sequence in 0..<5 as Range<UInt16> {
            call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: sequence == 0)
        }
        send(0x5_0000, of: 9, in: &call, from: 0)
        call.run(milliseconds: 1_500)
        #expect(takeAnswers(to: 9, in: &call, at: 0).map(\.reference).last == 5)
    }

    @Test func `of more receivers those heard last are answered`() {
        var times = ReceiverTimes()
        let start = Instant(nanoseconds: 1_000_000_000)
        for number in 0..<6 as Range<UInt32> {
            let time = ReceiverReferenceTime(
                sender: SSRC(rawValue: number),
                ntp: NTPTime(rawValue: UInt64(number) << 16)
            )
            times.note(time, at: start.advanced(milliseconds: Int64(number)))
        }
        let answers = times.answers(at: start.advanced(milliseconds: 1_000))
        let receivers = (0..<answers.count).map { answers[$0].receiver.rawValue }
        #expect(Set(receivers) == [2, 3, 4, 5] && receivers.count == ReceiverTimes.capacity)
        for index in 0..<answers.count {
            #expect(answers[index].reference == answers[index].receiver.rawValue)
            let milliseconds = (Int64(answers[index].delay) * 1_000) >> 16
            #expect(abs(milliseconds - (1_000 - Int64(receivers[index]))) <= 1)
        }
        let late = times.answers(at: start.advanced(milliseconds: 6_003)).count
        #expect(late == 2)
        let tooLate = times.answers(at: start.advanced(milliseconds: 6_005)).count
        #expect(tooLate == 0)
    }

    @Test(arguments: 0...ReceiverTimes.capacity, [0, 5, ReceiverReport.maximumReports])
    func `the largest report fits into a datagram`(answers: Int, reports: Int) {
        let answered = answers == 0 ? 0 : LastReceiverTime.encodedSize(answers: answers)
        let name = SourceDescription.encodedSize(cnameLength: Transport.longestName)
        let first = RTCPEndpoint.senderReports(
            in: RTCPEndpoint.roomBeside(reports: reports),
            answers: answers
        )
        let beside =
            ReceiverReport.encodedSize(reports: reports) + name + answered
            + ReceiverEstimatedBitrate.encodedSize(sources: RTCPEndpoint.estimatedSources)
        let each = SenderReport.encodedSize + answered
        #expect(first >= 2)
        #expect(beside + first * each <= RTCPEndpoint.maximumLength)
        let later = RTCPEndpoint.senderReports(
            in: RTCPEndpoint.roomBesideName,
            answers: answers
        )
        #expect(later == RTCPEndpoint.reportsPerDatagram)
        #expect(name + later * each <= RTCPEndpoint.maximumLength)
    }
}
