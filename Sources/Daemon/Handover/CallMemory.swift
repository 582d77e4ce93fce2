import ControlPlane
import Kernel
import RTP
import Records
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
    private let log: Log
    private var previousName: String?
    private var records: RecordLog?
    /// Workers that have not yet resumed their transports.
    private var resuming: Set<Int> = []
    /// Whether transports of other homes' rooms are resumed later, from what the life before left.
    var isPostponed = false

    /// Opens what the life before has left, if this one can go on from it, and makes new memory.
    init(
        _ shape: LifeMemory.Shape,
        _ handover: Handover,
        _ log: Log,
        at now: Instant
    ) throws(SystemError) {
        self.handover = handover
        self.log = log
        for name in Self.names {
            let found = handover.adopt(name) { SharedMemory(adopting: $0, isWritable: true) }
            guard let memory = found else { continue }
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
        records = unsafe RecordLog(formatting: current.rooms, free: SharedMemory.release)
    }

    /// Rooms that the life before has saved.
    var savedRooms: [String: [UInt8]] {
        guard let previous else { return [:] }
        do throws(SavedRecords.Failure) {
            let saved = unsafe try SavedRecords(reading: previous.rooms)
            if saved.lost > 0 {
                log.error("saved rooms are damaged", [("rooms", "\(saved.lost)")])
            }
            var rooms: [String: [UInt8]] = [:]
            for records in saved.scopes.values {
                for (key, value) in records {
                    rooms[String(decoding: key.bytes, as: UTF8.self)] = value
                }
            }
            return rooms
        } catch {
            log.error("saved rooms cannot be read", [("reason", error.rawValue)])
            return [:]
        }
    }

    /// Saves changes of rooms, before anybody hears of them.
    ///
    /// The changes of one room are saved as one, so that damage costs that room alone.
    func save(_ changes: [SavedChange]) {
        for (scope, changes) in changes.byScope where records?.isUsable == true {
            var group = RecordGroup(scope: scope)
            group.changes = changes.map { change in
                RecordChange(RecordKey(Array(change.key.utf8)), change.value)
            }
            guard records?.append(group) == false else { continue }
            log.error("rooms are no longer saved", [("reason", "the memory for them is full")])
        }
    }

    /// Keeps this life's memory for the next one; call it when the rooms are saved in it.
    ///
    /// Until all workers have resumed their transports the next life would go on from the memory
    /// that this one goes on from: nothing has been sent yet.
    func takeOver(workers: Int) {
        if previous == nil { current.publish(.usable) } else { resuming = Set(0..<workers) }
        handover.keep(current.memory.descriptor, as: Self.names[Int(current.life % 2)])
    }

    /// Notes that a worker has resumed its transports; returns whether it was the last.
    ///
    /// From then on this life alone may use its indexes, so the workers may send.
    func noteResumed(_ worker: Int) -> Bool {
        guard resuming.remove(worker) != nil, resuming.isEmpty else { return false }
        // If the process dies between the two, the next one takes the later life.
        current.publish(.usable)
        previous?.consume()
        if let previous, let previousName {
            handover.discard(previous.memory.descriptor, previousName)
        }
        (previous, previousName) = (nil, nil)
        return true
    }

    /// Reason for which the next life could not go on with the calls now; `nil` if it could.
    var obstacle: String? {
        if !resuming.isEmpty || isPostponed {
            return "the calls of the life before are still being resumed"
        }
        return records?.isUsable == true ? nil : "rooms are no longer saved"
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
