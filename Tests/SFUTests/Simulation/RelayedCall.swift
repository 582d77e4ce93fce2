import RTP

@testable import SFU
@testable import WorkerInterface

/// Workers of one daemon, each a call of its own, that relay packets through real rings, in virtual
/// time.
struct RelayedCall {
    /// A worker and its peers.
    final class Worker {
        var call: Call

        init(_ call: consuming Call) { self.call = call }
    }

    let workers: [Worker]
    /// Workers that do not read their rings for now.
    var busy: Set<Int> = []
    /// Milliseconds that a message stays in a ring before it is read; 0: none.
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

    /// Returns the id of a publication's mirror in another worker, as `wire` sets it.
    static func mirrorID(_ publication: UInt32) -> PublicationID {
        PublicationID(index: 100 + publication, generation: 1)
    }

    /// Mirrors a publication in other workers, and tells all of them, as the control plane does.
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

    /// Lets every worker that is not busy read its rings, until they are empty.
    func exchange() {
        var isQuiet = false
        while !isQuiet {
            isQuiet = true
            for index in workers.indices where !busy.contains(index) {
                if workers[index].call.takeRelayed() { isQuiet = false }
            }
        }
    }

    /// Advances the clocks of all workers.
    mutating func run(milliseconds: Int64) {
        for _ in 0..<milliseconds {
            for worker in workers { worker.call.run(milliseconds: 1) }
            sinceExchange += 1
            guard sinceExchange >= lag else { continue }
            sinceExchange = 0
            exchange()
        }
    }

    /// Statistics of each worker.
    func statistics() -> [WorkerStatistics] { workers.map { $0.call.statistics() } }
}

extension Call {
    /// Reads the rings; returns whether there was anything in them.
    mutating func takeRelayed() -> Bool {
        guard relays.hasMessages() else { return false }
        while core.receive(from: &relays, at: now) { settle() }
        settle()
        return true
    }
}
