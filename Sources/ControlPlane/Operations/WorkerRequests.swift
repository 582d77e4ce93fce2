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

/// Pending `subscription.explain` request.
struct ExplanationRequest {
    var caller: Caller
    var room: String
    var subscription: String
    /// Worker that is asked.
    var worker: Int?
}

/// Requests that wait for answers of workers, by token.
struct WorkerRequests {
    private var reports: [UInt64: StatisticsReport] = [:]
    private var explanations: [UInt64: ExplanationRequest] = [:]
    private var lastToken: UInt64 = 0
    /// Subscriptions to statistics.
    var feeds = StatisticsFeeds()

    var reportCount: Int { reports.count }
    var explanationCount: Int { explanations.count }

    mutating func nextToken() -> UInt64 {
        lastToken += 1
        return lastToken
    }

    mutating func add(_ report: StatisticsReport) -> UInt64 {
        lastToken += 1
        reports[lastToken] = report
        return lastToken
    }

    mutating func add(_ request: ExplanationRequest) -> UInt64 {
        lastToken += 1
        explanations[lastToken] = request
        return lastToken
    }

    /// Adds a worker's statistics to a report, and takes the report if it was the last awaited.
    mutating func collect(
        _ statistics: WorkerStatistics,
        _ token: UInt64,
        from worker: Int
    ) -> StatisticsReport? {
        guard var report = reports[token], report.waiting.remove(worker) != nil else { return nil }
        report.answers[worker] = statistics
        reports[token] = report.waiting.isEmpty ? nil : report
        return report.waiting.isEmpty ? report : nil
    }

    /// Tokens of the requests that wait for a worker.
    func reports(awaiting worker: Int) -> [UInt64] {
        (reports.filter { $0.value.waiting.contains(worker) }.keys + feeds.tokens(awaiting: worker))
            .sorted()
    }

    func explanations(awaiting worker: Int) -> [UInt64] {
        explanations.filter { $0.value.worker == worker }.keys.sorted()
    }

    mutating func takeExplanation(_ token: UInt64) -> ExplanationRequest? {
        explanations.removeValue(forKey: token)
    }

    /// Drops the requests and the subscription of a closed connection.
    mutating func drop(from connection: ConnectionID) {
        feeds.unsubscribe(connection)
        reports = reports.filter { $0.value.caller.connection != connection }
        explanations = explanations.filter { $0.value.caller.connection != connection }
    }
}

extension ControlPlane {
    mutating func stats(_ params: StatsGet.Params, for caller: Caller) throws(IPCError) {
        let entry = try entry(params.room)
        _ = try Page.cursor(params.after)
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
            case .room(let params):
                Set((rooms[params.room]?.room.workers ?? []).filter { mayPass($0) })
            }
        let token = workerRequests.add(
            StatisticsReport(question: question, caller: caller, waiting: workers)
        )
        for worker in workers.sorted() {
            let command =
                switch question {
                case .server: WorkerCommand.report(token: token)
                case .room(let params):
                    WorkerCommand.reportTransports(
                        rooms[params.room]?.room.transports(in: worker) ?? [],
                        token: token
                    )
                }
            tell(worker, [command])
        }
    }

    mutating func collect(_ statistics: WorkerStatistics, _ token: UInt64, from worker: Int) {
        if let turn = workerRequests.feeds.collect(statistics, token, from: worker) {
            return tell(turn)
        }
        guard let report = workerRequests.collect(statistics, token, from: worker) else { return }
        switch report.question {
        case .server: answer(serverStatistics(report.answers), to: report.caller)
        case .room(let params):
            guard let entry = rooms[params.room] else {
                return refuse(.noSuchRoom(params.room), to: report.caller)
            }
            let figures = ReportedFigures(report.answers, clock)
            answer(RoomStatistics(entry.room, figures).page(params), to: report.caller)
        }
    }

    /// Asks the worker that sends a subscription's video; the reply follows the worker's answer.
    mutating func explain(
        _ params: SubscriptionExplain.Params,
        for caller: Caller
    ) throws(IPCError) {
        let entry = try entry(params.room)
        let subscription: Room.Subscription
        do throws(CallError) {
            subscription = try entry.room.subscription(params.subscription.rawValue)
            try entry.room.check(params.by?.rawValue, actsFor: subscription.participant)
        } catch {
            throw IPCError(error)
        }
        let token = workerRequests.add(
            ExplanationRequest(
                caller: caller,
                room: params.room.rawValue,
                subscription: subscription.id,
                worker: entry.room.videoSeat(of: subscription)?.worker
            )
        )
        guard let seat = entry.room.videoSeat(of: subscription), mayPass(seat.worker) else {
            return explained(nil, token)
        }
        let question = WorkerCommand.explain(seat.slot, token: token)
        tell(seat.worker, [question])
    }

    mutating func explained(_ found: LayerExplanation?, _ token: UInt64) {
        guard let request = workerRequests.takeExplanation(token) else { return }
        guard let room = rooms[request.room]?.room else {
            return refuse(.noSuchRoom(RoomID(request.room)), to: request.caller)
        }
        do throws(CallError) {
            let subscription = try room.subscription(request.subscription)
            let stream = try room.stream(subscription.stream)
            let clock = clock
            let result = SubscriptionExplain.Result(
                explaining: subscription,
                of: stream,
                isAdmitted: try room.participant(subscription.participant).admitted,
                found
            ) { clock.unixTime(at: $0) }
            answer(result, to: request.caller)
        } catch {
            refuse(IPCError(error), to: request.caller)
        }
    }
}
