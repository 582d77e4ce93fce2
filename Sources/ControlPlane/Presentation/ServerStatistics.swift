import Contract
import RTP
import Rooms
import WorkerInterface

extension ControlPlane {
    /// Result of `server.stats`, from the answers of all workers.
    func serverStatistics(_ answers: [Int: WorkerStatistics]) -> ServerStats.Result {
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
