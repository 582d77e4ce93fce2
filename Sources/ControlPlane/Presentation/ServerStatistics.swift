import Contract
import RTP
import Rooms
import WorkerInterface

/// Pending statistics request, with the workers' answers so far.
struct StatisticsReport {
    enum Question {
        case server
        case room(StatsGet.Params)
    }

    var question: Question
    var caller: Caller
    var waiting: Set<Int>
    var answers: [Int: WorkerStatistics] = [:]
}

extension ControlPlane {
    mutating func stats(_ params: StatsGet.Params, for caller: Caller) throws(IPCError) {
        let entry = try entry(params.room)
        do throws(CallError) {
            if let id = params.participant { _ = try entry.room.participant(id.rawValue) }
            if let id = params.subscription { _ = try entry.room.subscription(id.rawValue) }
        } catch {
            throw IPCError(error)
        }
        report(.room(params), for: caller)
    }

    /// Asks the workers for statistics; the reply follows when all have answered.
    mutating func report(_ question: StatisticsReport.Question, for caller: Caller) {
        let workers: Set<Int> =
            switch question {
            case .server: Set(0..<setup.workers)
            case .room(let params): Set(rooms[params.room.rawValue]?.room.workers ?? [])
            }
        lastToken += 1
        reports[lastToken] = StatisticsReport(
            question: question,
            caller: caller,
            waiting: workers
        )
        for worker in workers.sorted() {
            output.append(.commands(worker: worker, [.report(token: lastToken)]))
        }
    }

    mutating func collect(_ statistics: WorkerStatistics, _ token: UInt64, from worker: Int) {
        guard var report = reports[token], report.waiting.remove(worker) != nil else { return }
        report.answers[worker] = statistics
        reports[token] = report
        guard report.waiting.isEmpty else { return }
        reports[token] = nil
        switch report.question {
        case .server: answer(serverStatistics(report.answers), to: report.caller)
        case .room(let params):
            guard let entry = rooms[params.room.rawValue] else {
                let line = IPCReply.encoded(
                    id: report.caller.request,
                    error: .noSuchRoom(params.room)
                )
                return output.append(.reply(report.caller.connection, line))
            }
            let selection = StatisticsSelection(params, entry.room, report.answers)
            answer(selection.result(), to: report.caller)
        }
    }

    private func serverStatistics(_ answers: [Int: WorkerStatistics]) -> ServerStats.Result {
        ServerStats.Result(
            workers: answers.sorted { $0.key < $1.key }.map { worker, statistics in
                WorkerInfo(
                    worker: worker,
                    load: statistics.load.isFinite ? statistics.load : 0,
                    transports: statistics.transports.count,
                    pressure: OverloadInfo(statistics.pressure),
                    counters: PacketCounters(statistics)
                )
            },
            rooms: roomCount,
            participants: participantCount,
            uptimeSeconds: shared.unixTime - setup.startTime,
            forwarding: ForwardingInfo(Array(answers.values)),
            joinsRefused: joinsRefused
        )
    }
}

extension ForwardingInfo {
    fileprivate init?(_ answers: [WorkerStatistics]) {
        let first = answers.reduce(into: ForwardingTimes()) { $0 += $1.firstCopies }
        let last = answers.reduce(into: ForwardingTimes()) { $0 += $1.lastCopies }
        guard let first = ForwardingTime(first), let last = ForwardingTime(last) else {
            return nil
        }
        self.init(first: first, last: last)
    }
}

extension ForwardingTime {
    fileprivate init?(_ times: ForwardingTimes) {
        guard let p50 = times.quantile(0.5), let p99 = times.quantile(0.99),
            let p999 = times.quantile(0.999)
        else { return nil }
        self.init(p50: p50 / 1e6, p99: p99 / 1e6, p999: p999 / 1e6)
    }
}

extension PacketCounters {
    init(_ statistics: WorkerStatistics) {
        self.init()
        datagramsIn = statistics.datagramsIn
        bytesIn = statistics.bytesIn
        stunIn = statistics.stunIn
        dtlsIn = statistics.dtlsIn
        rtcpIn = statistics.rtcpIn
        rtpIn = statistics.rtpIn
        rtpForwarded = statistics.rtpForwarded
        relayedOut = statistics.relayedOut
        relayedIn = statistics.relayedIn
        relayedForwarded = statistics.relayedForwarded
        datagramsOut = statistics.datagramsOut
        bytesOut = statistics.bytesOut
        rtpOut = statistics.rtpOut
        rtxOut = statistics.rtxOut
        paddingOut = statistics.paddingOut
        rtcpOut = statistics.rtcpOut
        kernelDrops = statistics.kernelDrops
        for (reason, count) in zip(DropReason.allCases, statistics.drops) {
            drops[reason.rawValue] = count
        }
        for (reason, count) in zip(DropReason.allCases, statistics.relayDrops) {
            relayDrops[reason.rawValue] = count
        }
    }
}
