import Links
import RTP
import SFU
import TestSupport

@testable import ControlPlane
@testable import Rooms
@testable import Simulator
@testable import WorkerInterface

/// One node of a simulated daemon: its control thread, its workers, and in a cluster its link
/// thread.
final class SimulatedNode {
    /// A message of another node about participants.
    struct Mail {
        var due: Instant
        var from: String
        var isFromHome: Bool
        var bytes: [UInt8]
    }

    let index: Int
    private(set) var setup: ControlSetup
    var plane: ControlPlane
    var workers: [SimulatedWorker]
    /// `nil` without a cluster.
    var link: SimulatedLink?
    /// Calls that the control thread has yet to read, each with the node that it came by.
    var lines: [(line: [UInt8], by: String?)] = []
    var mail: [Mail] = []
    /// Fences that the recorder's thread, which does nothing else, is to pass.
    var recorderFences: [UInt64] = []
    /// Records that the control plane has saved for another process.
    private var saved: [String: [UInt8]] = [:]
    /// Those that other nodes may go on with.
    private(set) var journaled: [String: [UInt8]] = [:]
    var nextControl = Instant(nanoseconds: 0)
    /// Time until which its process stands still.
    var stoppedUntil = Instant(nanoseconds: 0)
    /// Whether its process has died, and another one is about to go on.
    var isDead = false
    /// Nodes that this process has yet to hear of after the death of one of them.
    var apart: Set<String> = []
    /// Homes whose process has begun again, whose first message is still to come.
    var returning: Set<String> = []
    /// Nodes whose process has begun again, which do not know this home's session with them.
    var disowned: Set<String> = []
    /// Whether transports of other homes' rooms are resumed later.
    private var isPostponed = false

    init(
        _ index: Int,
        _ setup: ControlSetup,
        identity: DTLSIdentity,
        at now: Instant,
        random: inout SeededRandom
    ) throws {
        self.index = index
        self.setup = setup
        plane = ControlPlane(setup)
        let threads = Self.threads(setup)
        workers = Self.workers(setup, threads, identity, at: now, &random)
        guard setup.node != nil else { return }
        link = SimulatedLink(threads, identity, seed: random.next(), at: now)
    }

    /// Rings between the workers, and in a cluster to the recorder's thread and the link thread.
    static func threads(_ setup: ControlSetup) -> RelayMesh {
        RelayMesh(workers: setup.workers + (setup.node == nil ? 0 : 2))
    }

    private static func workers(
        _ setup: ControlSetup,
        _ threads: RelayMesh,
        _ identity: DTLSIdentity,
        after previous: [SavedState?] = [],
        at now: Instant,
        _ random: inout SeededRandom
    ) -> [SimulatedWorker] {
        SimulatedWorker.mesh(
            of: setup.workers,
            in: threads,
            packetPool: 8_192,
            identity: identity,
            after: previous,
            at: now,
            random: &random
        )
    }

    var name: String { setup.node ?? "" }
    /// Number of the recorder's thread among the workers; the link thread's is the next one.
    var recorder: Int { setup.workers }

    /// Address of its link thread.
    var address: Address { Address(ipv4: 0x7f00_0001 + UInt32(index), port: 7_000) }

    func mayRun(at now: Instant) -> Bool { !isDead && stoppedUntil <= now }

    /// Runs the link thread once; returns what it sends.
    func runLink(at now: Instant) -> [LinkTransmit] {
        guard let link else { return [] }
        let sent = link.run(at: now)
        for (home, end) in link.media.takeLeaseEnds() {
            for worker in workers { worker.leaseEnds[home] = end }
        }
        return sent
    }

    /// Takes what the threads have to tell the control plane.
    func takeEvents(at now: Instant) {
        for worker in workers {
            let events = worker.events
            worker.events = []
            for event in events { plane.receive(event, from: worker.index, at: now) }
        }
        for event in link?.media.takeEvents() ?? [] {
            plane.receive(event, from: recorder + 1, at: now)
        }
        let fences = recorderFences
        recorderFences = []
        for epoch in fences {
            plane.receive(.fenced(epoch: epoch, at: now, packets: 0), from: recorder, at: now)
        }
    }

    /// Takes what has come of other nodes.
    func takeMail(at now: Instant, boot: (String) -> String) {
        let due = mail.filter { $0.due <= now }
        mail.removeAll { $0.due <= now }
        for message in due {
            if message.isFromHome {
                if returning.remove(message.from) != nil {
                    let life = boot(message.from)
                    plane.orphanGuests(of: message.from, life, isBack: true, at: now)
                }
                plane.receivePlaceCommands(
                    message.bytes,
                    from: message.from,
                    boot(message.from),
                    at: now
                )
            } else {
                plane.receivePlaceEvents(message.bytes, from: message.from, at: now)
            }
        }
    }

    /// Posts commands to one of its threads.
    func post(_ commands: [WorkerCommand], to worker: Int) {
        if worker < workers.count {
            workers[worker].mailbox += commands
        } else if worker == recorder {
            for case .fence(let epoch) in commands { recorderFences.append(epoch) }
        } else {
            link?.mailbox += commands
        }
    }
}

// Lives.
extension SimulatedNode {
    /// Lets another process go on from what the one before has saved.
    func beginAgain(
        identity: DTLSIdentity,
        at now: Instant,
        unixTime: Double,
        random: inout SeededRandom
    ) {
        isDead = false
        let (old, records) = (workers, saved)
        (saved, journaled, mail, recorderFences) = ([:], [:], [], [])
        let threads = Self.threads(setup)
        workers = Self.workers(setup, threads, identity, after: old.map(\.state), at: now, &random)
        for (worker, before) in zip(workers, old) { worker.arrived = before.arrived }
        link = SimulatedLink(threads, identity, seed: random.next(), at: now)
        plane = ControlPlane(setup, restoring: records, at: now, unixTime: unixTime)
    }

    /// Lets another life begin, which knows nothing.
    func beginAfresh(identity: DTLSIdentity, at now: Instant, random: inout SeededRandom) {
        setup.bootID += "+"
        for worker in workers { worker.arrived = [] }
        saved = [:]
        beginAgain(identity: identity, at: now, unixTime: 0, random: &random)
    }

    func save(_ changes: [SavedChange]) {
        for change in changes {
            saved[change.key] = change.value
            guard let shared = change.journaled else { continue }
            journaled[shared.key] = shared.value
        }
    }

    /// Lets the workers go on once they know their transports.
    func resume() {
        isPostponed = plane.awaitsHomes
        for worker in workers {
            worker.mailbox.append(isPostponed ? .postponeResumption : .endResumption)
        }
    }

    func endResumptionIfDue() {
        guard isPostponed, !plane.awaitsHomes else { return }
        isPostponed = false
        for worker in workers { worker.mailbox.append(.endResumption) }
    }

    /// Handles that are free, of each kind and thread.
    var free: [[Int]] {
        plane.shared.identifiers.prefix(recorder + 2).map {
            [$0.transports.available, $0.publications.available, $0.slots.available]
        }
    }
}
