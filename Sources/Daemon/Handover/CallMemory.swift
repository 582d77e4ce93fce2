import CKernel
import Kernel
import RTP
import SFU

/// This life's memory of its calls, and what the life before has left of them.
///
/// Two names alternate, so that the memory of two lives can be kept for a moment.
final class CallMemory {
    private static let names = ["calls.0", "calls.1"]
    /// Epoch of the fences that end the resumption; the control plane counts its own from 1.
    static let fenceEpoch = UInt64.max

    let current: LifeMemory
    private(set) var previous: PreviousLife?
    private let handover: Handover
    private var previousName: String?
    /// Workers that have not yet resumed their transports.
    private var resuming: Set<Int> = []

    /// Opens what the life before has left, if this one can go on from it, and makes new memory.
    init(
        _ shape: LifeMemory.Shape,
        _ handover: Handover,
        _ log: Log,
        at now: Instant
    ) throws(SystemError) {
        self.handover = handover
        for name in Self.names {
            guard
                let memory = handover.adopt(name, { descriptor in
                    SharedMemory(adopting: descriptor, isWritable: true)
                })
            else { continue }
            do throws(PreviousLife.Refusal) {
                let found = try PreviousLife(memory, shape, at: now)
                if let other = previous, other.life > found.life {
                    handover.discard(memory.descriptor, name)
                } else {
                    if let previousName, let other = previous {
                        handover.discard(other.memory.descriptor, previousName)
                    }
                    previous = found
                    previousName = name
                }
            } catch {
                if error != .nothing {
                    log.warning("calls are not continued", [("reason", error.words)])
                }
                handover.discard(memory.descriptor, name)
            }
        }
        current = try LifeMemory(
            shape,
            life: (previous?.life ?? 0) + 1,
            suspicion: previous?.suspicion ?? 0,
            at: now
        )
    }

    /// Makes this life the only one that may use its indexes; call it before anything is sent.
    func takeOver(workers: Int) {
        previous?.consume()
        if let previous, let previousName {
            handover.discard(previous.memory.descriptor, previousName)
            resuming = Set(0..<workers)
        } else {
            current.publish(.usable)
        }
        previousName = nil
        let name = Self.names[Int(current.life % 2)]
        handover.keep(current.memory.descriptor, as: name)
    }

    /// Notes that a worker has resumed its transports; from the last one on the next life may go on
    /// from this one's memory.
    func noteResumed(_ worker: Int) {
        guard resuming.remove(worker) != nil, resuming.isEmpty else { return }
        previous = nil
        current.publish(.usable)
    }

    /// Says that the daemon ends because a part of it has failed.
    func noteFault() { current.noteFault() }

    /// Says that this life ends in order, to be continued.
    func handOver() { current.publish(.handedOver) }

    /// Says that there is nothing to continue: all rooms have ended.
    func end() { current.publish(.consumed) }
}

extension PreviousLife.Refusal {
    var words: String {
        switch self {
        case .nothing: "nothing to continue"
        case .otherFormat: "written by a release that this one cannot read"
        case .otherConfiguration: "workers, limits or addresses have changed"
        case .poison: "lives in a row ended soon after they went on"
        case .damaged: "damaged"
        }
    }
}
