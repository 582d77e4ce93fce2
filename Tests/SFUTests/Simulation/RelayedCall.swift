import RTP

@testable import SFU
@testable import WorkerInterface

/// Workers of one daemon, each a call of its own, that hand packets on through real rings, in
/// virtual time.
struct RelayedCall {
    /// One worker and the peers that live on it.
    final class Worker {
        var call: Call

        init(_ call: consuming Call) { self.call = call }
    }

    let workers: [Worker]
    /// Workers that do not look into their rings for now.
    var busy: Set<Int> = []
    /// How long a ring waits for its reader, in milliseconds; 0: not at all.
    var lag: Int64 = 0
    private var sinceExchange: Int64 = 0

    init(workers count: Int, seed: UInt64 = 1, limits: CoreLimits = .default) throws {
        let mesh = RelayMesh(workers: count)
        workers = try (0..<count).map { index in
            var call = try Call(seed: seed &* 64 &+ UInt64(index), limits: limits)
            call.relays = mesh.port(of: index)
            return Worker(call)
        }
    }

    /// The mirror of a publication in another worker, as `wire` names it.
    static func mirrorID(_ publication: UInt32) -> PublicationID {
        PublicationID(index: 100 + publication, generation: 1)
    }

    /// Mirrors a publication in other workers, and says so to all, as the control plane does.
    func wire(
        _ configuration: PublicationConfiguration,
        from home: Int,
        to others: [Int],
        open: Bool = true
    ) {
        var made = configuration
        made.id = Self.mirrorID(configuration.id.index)
        let source = RelayTarget(worker: home, publication: configuration.id)
        for other in others {
            let mirror = Mirror(configuration: made, home: source, open: open)
            workers[other].call.apply(.mirror(mirror))
        }
        let targets = others.map { RelayTarget(worker: $0, publication: made.id) }
        workers[home].call.apply(.relay(configuration.id, to: targets))
    }

    func gate(_ publication: UInt32, home: Int, open: Bool, to others: [Int]) {
        let id = PublicationID(index: publication, generation: 1)
        workers[home].call.apply(.gate(id, open: open))
        for other in others {
            workers[other].call.apply(.gate(Self.mirrorID(publication), open: open))
        }
    }

    /// Lets every worker that is not busy take what lies in its rings, until nothing is left.
    func exchange() {
        var isQuiet = false
        while !isQuiet {
            isQuiet = true
            for index in workers.indices where !busy.contains(index) {
                if workers[index].call.takeRelayed() { isQuiet = false }
            }
        }
    }

    /// Lets time pass, on all workers alike.
    mutating func run(milliseconds: Int64) {
        for _ in 0..<milliseconds {
            for worker in workers { worker.call.run(milliseconds: 1) }
            sinceExchange += 1
            guard sinceExchange >= lag else { continue }
            sinceExchange = 0
            exchange()
        }
    }

    /// What each worker has counted.
    func statistics() -> [WorkerStatistics] { workers.map { $0.call.statistics() } }
}

extension Call {
    /// Returns whether anything lay in the rings.
    mutating func takeRelayed() -> Bool {
        guard relays.hasNews() else { return false }
        while core.receive(from: &relays, at: now) { settle() }
        settle()
        return true
    }
}
