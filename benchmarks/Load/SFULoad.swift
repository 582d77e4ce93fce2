import CKernel
import Foundation
import SFUClient

/// The small load client: one publisher, many viewers, every packet counted.
@main
struct SFULoad {
    static func main() {
        // Here, before there is any other thread: those that come take over what is blocked.
        let signals = kernel_signals_open()
        Task.detached { exit(await start(signals)) }
        // Not `dispatchMain`, nor an asynchronous `main`: their main thread takes all signals.
        while true { pause() }
    }

    private static func start(_ signals: Int32) async -> Int32 {
        do throws(UsageError) {
            let options = try Options(Array(CommandLine.arguments.dropFirst()))
            guard !options.wantsHelp else {
                print(Options.help)
                return 0
            }
            return await run(options, signals)
        } catch {
            complain("\(error.message)\nTry sfu-load --help")
            return 2
        }
    }

    private static func run(_ options: Options, _ signals: Int32) async -> Int32 {
        let report: Report
        do {
            report = try await Load(options, signals: signals).run()
        } catch {
            complain("\(error)")
            return 69
        }
        if case .failed(let cause) = report.tally.end {
            complain(cause)
            return 1
        }
        print(report.text)
        if report.tally.end == .interrupted { return 130 }
        let faults = report.tally.faults(viewers: options.viewers)
        for fault in faults { complain(fault) }
        return options.checks && !faults.isEmpty ? 1 : 0
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data("sfu-load: \(text)\n".utf8))
    }
}
