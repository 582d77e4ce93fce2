import Contract
import RTP
import Rooms
import WorkerInterface

/// Handling of the workers' load reports.
extension ControlPlane {
    /// Records a worker's load for admission, and announces a change of its overload step.
    mutating func take(_ pressure: WorkerOverload, transports: Int, of worker: Int) {
        let before = shared.load.note(pressure, transports: transports, of: worker)
        guard before.step != pressure.step else { return }
        let told = OverloadInfo(pressure)
        let previous = OverloadStep(before.step)
        let fields = [
            ("worker", "\(worker)"), ("previous", previous.rawValue),
            ("current", told.step.rawValue),
            ("busy", "\(pressure.busyPercent)%"), ("lag", "\(pressure.lagMilliseconds)ms"),
        ]
        let level: LogLevel = pressure.step > before.step ? .warning : .info
        output.append(.log(level, "overload", fields))
        let event = ServerOverload(worker: worker, previous: previous, now: told)
        announce(event)
    }
}

extension OverloadInfo {
    init(_ pressure: WorkerOverload) {
        self.init(
            step: OverloadStep(pressure.step),
            busy: Double(pressure.busyPercent) / 100,
            lagMilliseconds: pressure.lagMilliseconds,
            videoKept: Double(pressure.keptPermille) / 1_000
        )
    }
}

extension OverloadStep {
    init(_ step: WorkerOverload.Step) {
        self =
            switch step {
            case .none: .none
            case .joins: .joins
            case .layers: .layers
            case .video: .video
            }
    }
}
