import RTP
import TestSupport
import WorkerInterface

@testable import SFU

/// Memory of a core that outlives it, and the state that its commands have made.
///
/// A crash may come between any two datagrams: what the core does after it, it never did.
final class Life {
    let limits: CoreLimits
    let engine: SRTPEngine
    private(set) var memory: SavedMemory
    private var region: SavedRegion
    private var configurations: [TransportID: TransportConfiguration] = [:]
    private var gates: [PublicationID: Bool] = [:]
    private var bindings: [SlotID: Binding] = [:]
    /// Datagrams until the crash; `nil` if none is to come.
    private var countdown: Int?
    /// The memory as it was at the crash.
    private var snapshot: SavedRegion?
    private(set) var crashes = 0

    init(limits: CoreLimits, engine: SRTPEngine) {
        self.limits = limits
        self.engine = engine
        region = SavedRegion(transports: 128, slots: 256)
        memory = region.makeMemory()
    }

    func note(_ command: WorkerCommand) {
        switch command {
        case .configure(let id, let configuration): configurations[id] = configuration
        case .close(let id): configurations[id] = nil
        case .gate(let id, let isOpen): gates[id] = isOpen
        case .bind(let id, let binding): bindings[id] = binding
        default: break
        }
    }

    /// Lets the process die after so many further datagrams.
    func crash(after datagrams: Int) { countdown = datagrams }

    var isDead: Bool { snapshot != nil }

    /// Whether a datagram leaves before the crash.
    func letsOut() -> Bool {
        guard snapshot == nil else { return false }
        guard let left = countdown else { return true }
        guard left > 0 else {
            die()
            return false
        }
        countdown = left - 1
        return true
    }

    func die() {
        countdown = nil
        snapshot = snapshot ?? SavedRegion(copying: region)
    }

    /// Overwrites one byte of a saved element.
    func damage(byteOf section: SavedMemory.Section, element: Int, at offset: Int) {
        die()
        guard let snapshot else { return }
        unsafe snapshot.bytes[start(of: section) + element * section.stride + offset] = 0xee
    }

    /// Overwrites some bytes of the header and of the first records.
    func scramble(_ noise: inout SeededRandom) {
        die()
        guard let snapshot else { return }
        for _ in 0..<noise.next() % 40 {
            let section = SavedMemory.Section.allCases.randomElement(using: &noise) ?? .slots
            let start = start(of: section)
            let inHeader = Bool.random(using: &noise)
            let place = inHeader ? Int(noise.next() % 120) : start + Int(noise.next() % 3_000)
            unsafe snapshot.bytes[place] = UInt8(truncatingIfNeeded: noise.next())
        }
    }

    private func start(of section: SavedMemory.Section) -> Int {
        unsafe memory.elements(of: section) - region.start
    }

    /// Returns the next process's core.
    func restart(seed: UInt64, identity: DTLSIdentity) -> Core {
        die()
        let old = snapshot
        snapshot = nil
        crashes += 1
        region = SavedRegion(transports: 128, slots: 256)
        memory = region.makeMemory()
        return Core(
            limits: limits,
            seed: seed,
            identity: identity,
            engine: engine,
            memory: memory,
            previous: old?.state
        )
    }

    /// Commands that build the present state from nothing.
    var commands: [WorkerCommand] {
        transportCommands { _ in true } + routing + [.endResumption]
    }

    /// Commands that build transports, and continue them.
    func transportCommands(of isWanted: (TransportID) -> Bool) -> [WorkerCommand] {
        var commands: [WorkerCommand] = []
        for (id, configuration) in configurations.sorted(by: { $0.key.index < $1.key.index })
        where isWanted(id) {
            commands.append(.configure(id, configuration))
            commands.append(.resume(id, wasConnected: true))
        }
        return commands
    }

    /// Commands about what the transports carry.
    var routing: [WorkerCommand] {
        var commands: [WorkerCommand] = []
        commands += gates.map { .gate($0.key, open: $0.value) }
        commands += bindings.map { .bind($0.key, $0.value) }
        return commands
    }
}

extension Call {
    /// Lets the process die, if it has not yet, and the next one go on after a while.
    mutating func restart(after milliseconds: Int64) {
        restart(after: milliseconds, life?.commands ?? [])
    }

    /// The same, with other commands for the next process.
    mutating func restart(after milliseconds: Int64, _ commands: [WorkerCommand]) {
        guard let life else { return }
        life.die()
        output.removeAll()
        now = now.advanced(milliseconds: milliseconds)
        core = life.restart(seed: UInt64(life.crashes) &+ 77, identity: identity)
        core.setWallClock(offsetNanoseconds: 1_700_000_000_000_000_000)
        for command in commands { apply(command) }
    }
}
