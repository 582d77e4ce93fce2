import Glibc
import SFU
import Simulator
import Synchronization

/// The program `sfu-simulate`: histories of whole rooms by seed, one after the other.
@main
enum Simulate {
    static func main() throws {
        hashAlikeEverywhere()
        guard let options = SimulateOptions(CommandLine.arguments.dropFirst()) else { exit(2) }
        tellOfTraps()
        let identity = try DTLSIdentity()
        if options.plants.isEmpty { exit(try prove(options, identity)) }
        exit(fish(options, identity))
    }

    /// Restarts the program with Swift's hash seeding disabled.
    ///
    /// Otherwise the order of dictionaries would give another history in each process.
    private static func hashAlikeEverywhere() {
        let name = "SWIFT_DETERMINISTIC_HASHING"
        guard unsafe getenv(name) == nil else { return }
        unsafe setenv(name, "1", 1)
        unsafe execv("/proc/self/exe", CommandLine.unsafeArgv)
    }

    /// The current seed, for the report of a trap.
    private static let seed = Atomic<UInt64>(0)

    /// Reports the seed when a trap ends the program.
    private static func tellOfTraps() {
        // Swift's own backtraces, where enabled, use the same signals.
        guard unsafe getenv("SWIFT_BACKTRACE") == nil else { return }
        for trap in [SIGILL, SIGTRAP, SIGSEGV] {
            signal(trap) { number in
                print("VIOLATION trap at seed \(Simulate.seed.load(ordering: .relaxed))")
                fflush(nil)
                // Returning from here traps again, and the process ends as it would have.
                signal(number, SIG_DFL)
            }
        }
    }

    /// Runs one seed after the other; returns the exit status.
    private static func prove(_ options: SimulateOptions, _ identity: DTLSIdentity) throws -> Int32
    {
        var progress = Progress()
        var status: Int32 = 0
        for seed in options.seeds {
            Self.seed.store(seed, ordering: .relaxed)
            let world = options.world(seed: seed, identity: identity)
            world.isVerbose = options.seeds.count == 1
            let violation = world.live(options.length)
            progress.note(world)
            if let violation {
                status = 1
                print("VIOLATION \(violation)\n  again: \(options.command(for: seed))")
            }
            if options.isRepeated {
                let again = options.world(seed: seed, identity: identity)
                _ = again.live(options.length)
                if again.trace.value != world.trace.value {
                    status = 1
                    print("VIOLATION two histories of one seed: \(options.command(for: seed))")
                }
            }
            if options.seeds.count == 1 { print("trace \(String(world.trace.value, radix: 16))") }
            if progress.isDue, seed != options.seeds.last { progress.show() }
            if violation != nil, options.endsWhenFound { break }
            if let hours = options.hours, progress.virtualHours >= hours { break }
        }
        progress.show()
        return status
    }

    /// Plants bugs and reports the seed that found each; returns the exit status.
    private static func fish(_ options: SimulateOptions, _ identity: DTLSIdentity) -> Int32 {
        var missed = 0
        for plant in options.plants {
            var found: String?
            for seed in options.seeds where found == nil {
                Self.seed.store(seed, ordering: .relaxed)
                let world = options.world(seed: seed, identity: identity, plant: plant)
                if let violation = world.live(options.length) {
                    found = "\(violation.invariant.rawValue) at seed \(seed): \(violation.text)"
                }
            }
            if found == nil { missed += 1 }
            print("| \(plant.rawValue) | \(plant.text) | \(found ?? "NOT FOUND") |")
            fflush(nil)
        }
        print("\(options.plants.count - missed) of \(options.plants.count) found")
        return missed == 0 ? 0 : 1
    }
}

/// Totals of all histories so far.
struct Progress {
    private(set) var virtualHours = 0.0
    private var seeds = 0
    private var violations = 0
    private var sums = World.Tally()
    private let start = Self.now
    private var shown = Self.now

    private static var now: Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    mutating func note(_ world: World) {
        seeds += 1
        virtualHours += world.seconds / 3_600
        if world.violation != nil { violations += 1 }
        sums.media += world.tally.media
        sums.frames += world.tally.frames
        sums.calls += world.tally.calls
        sums.events += world.tally.events
        sums.checks += world.tally.checks
        sums.alive += world.tally.alive
        sums.restarts += world.tally.restarts
        sums.rounds += world.tally.rounds
        sums.hostile += world.tally.hostile
        sums.listened += world.tally.listened
    }

    /// Whether it is time to report progress.
    var isDue: Bool { Self.now - shown > 10 }

    mutating func show() {
        shown = Self.now
        let hours = (shown - start) / 3_600
        print(
            "\(seeds) seeds, \(rounded(virtualHours)) virtual hours, "
                + "\(rounded(virtualHours / hours)) a real hour; \(violations) violations; "
                + "\(sums.media) packets, \(sums.frames) frames, \(sums.calls) calls, "
                + "\(sums.events) events, \(sums.rounds) rounds, \(sums.checks) sums, "
                + "\(sums.alive) alive, \(sums.restarts) restarts, "
                + "\(sums.hostile) hostile messages, "
                + "\(sums.listened) packets of sound awaited"
        )
        fflush(nil)
    }

    private func rounded(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}
