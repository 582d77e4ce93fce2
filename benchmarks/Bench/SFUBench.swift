import CKernel
import Foundation

/// Load generator that acts as real clients of an SFU, and measures the SFU's cost.
@main
struct SFUBench {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "floor" { exit(runFloor(arguments.last == "runs")) }
        // Called before any other thread exists, because new threads inherit the signal mask.
        let signals = kernel_signals_open()
        let work = Task.detached { exit(await start(arguments)) }
        interrupt(work, on: signals)
        // Neither `dispatchMain` nor an asynchronous `main`: their main thread takes all signals.
        while true { pause() }
    }

    private static func runFloor(_ segments: Bool) -> Int32 {
        do { try Floor.run(segments: segments) } catch {
            complain("\(error)")
            return 71
        }
    }

    /// Cancels the work at the first signal, and ends the process at the second.
    private static func interrupt(_ work: Task<Never, Never>, on signals: Int32) {
        let thread = Thread { @Sendable in
            let epoll = kernel_epoll_create()
            _ = kernel_epoll_add(epoll, signals, UInt32(KERNEL_READABLE), 0)
            var ready = [kernel_readiness(token: 0, events: 0)]
            var count = 0
            while true {
                var places = ready.mutableSpan
                guard kernel_epoll_wait(epoll, &places, -1) > 0 else { continue }
                while kernel_signals_next(signals) > 0 { count += 1 }
                if count > 1 {
                    Child.endAll()
                    exit(130)
                }
                work.cancel()
            }
        }
        thread.start()
    }

    private static func start(_ arguments: [String]) async -> Int32 {
        do {
            if arguments.first == "load" {
                return try await LoadCommand.run(Array(arguments.dropFirst()))
            }
            let options = try Options(arguments)
            guard !options.wantsHelp else {
                print(Options.help)
                return 0
            }
            return try await run(options)
        } catch let error as UsageError {
            complain("\(error.message)\nTry sfu-bench --help")
            return 2
        } catch is CancellationError {
            return 130
        } catch {
            if Task.isCancelled { return 130 }
            complain("\(error)")
            return 69
        }
    }

    private static func run(_ options: Options) async throws -> Int32 {
        let bench = try Bench(options)
        defer { bench.progress.clear() }
        try await bench.run()
        let report = Report(bench)
        if let folder = options.report { try report.write(to: folder) }
        bench.progress.clear()
        if !options.printsJSON { print(report.summary, terminator: "") }
        for failure in bench.failures {
            let load = "\(failure.scenario) \(failure.size) \(failure.note)"
            complain("a check failed: \(load): \(failure.faults.joined(separator: ", "))")
        }
        return bench.failures.isEmpty ? 0 : 1
    }

    static func complain(_ text: String) {
        FileHandle.standardError.write(Data("sfu-bench: \(text)\n".utf8))
    }
}
