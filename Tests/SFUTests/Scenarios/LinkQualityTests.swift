import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Quality of the paths, as a worker reports it for some transports and at the end of one.
struct LinkQualityTests {
    /// Sends a viewer's report on its video, with the echo of our last report.
    private func report(
        _ call: inout Call,
        roundTrip milliseconds: Int64,
        lost: UInt8,
        jitter: UInt32
    ) {
        let then = call.core.transports.ntp(at: call.now.advanced(milliseconds: -milliseconds))
        var report = ReceptionReport(ssrc: SSRC(rawValue: 0xaaaa))
        report.lastSenderReport = then.compact
        report.fractionLost = lost
        report.jitter = jitter
        let reports = [report]
        call.sendRTCP(from: 1) { output in
            ReceiverReport.encode(
                sender: SSRC(rawValue: 1),
                reports: reports.span,
                into: &output
            )
        }
    }

    @Test func `a closed transport tells mean and worst of all reports`() throws {
        var call = try ForwardingTests.call()
        call.core.setWallClock(offsetNanoseconds: 1_700_000_000_000_000_000)
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        call.core.transports[1].bandwidth?.estimator.current = 400_000
        report(&call, roundTrip: 20, lost: 64, jitter: 900)
        call.core.transports[1].bandwidth?.estimator.current = 900_000
        report(&call, roundTrip: 60, lost: 0, jitter: 1_800)
        _ = call.takeEvents()
        let id = call.peers[1].id
        call.apply(.close(id))
        var told: LinkQuality?
        for case .closed(id, let quality) in call.takeEvents() { told = quality }
        let quality = try #require(told)
        let mean = try #require(quality.roundTrip.mean)
        #expect(abs(mean - 0.040) < 0.001 && abs(quality.roundTrip.worst - 0.060) < 0.001)
        #expect(quality.sent.loss.mean == 0.125 && quality.sent.loss.worst == 0.25)
        #expect(quality.sent.jitter.mean == 0.015 && quality.sent.jitter.worst == 0.02)
        #expect(quality.received.loss.mean == nil)
        let estimate = try #require(quality.estimate)
        let average = try #require(estimate.mean)
        let lowest = try #require(estimate.lowest)
        #expect(lowest < 500_000 && average > 500_000 && average < 900_000)
    }

    @Test func `what a publisher sends has our own reports' quality`() throws {
        var call = try ForwardingTests.call()
        for sequence in 0..<40 as Range<UInt16> where sequence % 4 != 3 {
            call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: sequence == 0)
        }
        call.run(milliseconds: 1_500)
        #expect(call.statistics().publications.flatMap(\.encodings).map(\.fractionLost) != [0])
        call.apply(.close(call.peers[0].id))
        var told: LinkQuality?
        for case .closed(_, let quality) in call.takeEvents() { told = quality }
        let quality = try #require(told)
        #expect(quality.received.loss.worst > 0.1)
        #expect(quality.received.jitter.mean != nil)
        #expect(quality.sent.loss.mean == nil && quality.roundTrip.mean == nil)
        #expect(quality.estimate == nil)
    }

    @Test func `a report of some transports has these alone`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        let unknown = TransportID(index: 7, generation: 1)
        call.apply(.reportTransports([call.peers[1].id, unknown], token: 9))
        var told: WorkerStatistics?
        for case .statistics(9, let statistics) in call.takeEvents() { told = statistics }
        let viewer = try #require(told)
        #expect(viewer.transports.map(\.id) == [call.peers[1].id])
        #expect(viewer.transports.map(\.isTCP) == [false])
        #expect(viewer.slots.count == 2 && viewer.publications.isEmpty)
        #expect(viewer.time == call.now && viewer.datagramsIn == 0)

        call.apply(.reportTransports([call.peers[0].id], token: 10))
        for case .statistics(10, let statistics) in call.takeEvents() { told = statistics }
        let publisher = try #require(told)
        #expect(publisher.publications.count == 2 && publisher.slots.isEmpty)
        let whole = call.statistics()
        #expect(whole.transports.count == 2)
        #expect(whole.slots == viewer.slots)
        #expect(whole.publications == publisher.publications)
    }
}
