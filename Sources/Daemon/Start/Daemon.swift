import CKernel
import Foundation
import Kernel
import LiveStream
import RTP

/// The daemon's startup and shutdown.
package enum Daemon {
    /// Executes the command line; returns the exit status.
    package static func main(_ arguments: [String]) -> Int32 {
        kernel_fill_standard_descriptors()
        kernel_forbid_core_dumps()
        if arguments == [StreamerProcess.argument] { return Streamer.main() }
        do throws(ConfigurationError) {
            let defaults = Configuration.default()
            let invocation = try CommandLineOptions.invocation(arguments, defaults: defaults)
            switch invocation {
            case .help: say(CommandLineOptions.help(defaults))
            case .version: say("sfud \(ProgramVersion.text)\n")
            case .checkConfiguration: say("configuration ok\n")
            case .run(let configuration): return run(configuration)
            }
            return 0
        } catch {
            return fail(.configuration(error.key, error.reason))
        }
    }

    private static func run(_ configuration: Configuration) -> Int32 {
        let inherited = InheritedDescriptors.takeOver(reserving: configuration.handedDescriptors)
        // Signals are blocked before the first thread starts, so that only the control thread gets
        // them.
        let signals = kernel_signals_open()
        let log = Log(level: configuration.logLevel)
        defer { log.finish(milliseconds: logMilliseconds) }
        do throws(StartError) {
            guard signals >= 0 else {
                throw .system("signals", SystemError.text(-signals))
            }
            let manager = ServiceManager(
                environment: ProcessInfo.processInfo.environment,
                processID: ProcessInfo.processInfo.processIdentifier
            )
            let handover = Handover(inherited, manager, log)
            let socket = try IPCSocket.open(configuration.ipc, handover)
            try serve(configuration, socket, handover, signals: signals, log)
        } catch {
            return fail(error)
        }
    }

    private static func serve(
        _ configuration: Configuration,
        _ socket: IPCSocket,
        _ handover: Handover,
        signals: Int32,
        _ log: Log
    ) throws(StartError) -> Never {
        var loop: EventLoop
        do throws(StartError) {
            loop = try Assembly(configuration, handover, log).loop(socket, signals: signals)
        } catch {
            socket.close()
            throw error
        }
        let status = status(after: loop.run(), of: &loop, socket, log)
        log.finish(milliseconds: logMilliseconds)
        loop.exit(status)
    }

    private static func status(
        after outcome: EventLoop.Outcome,
        of loop: inout EventLoop,
        _ socket: IPCSocket,
        _ log: Log
    ) -> Int32 {
        switch outcome {
        case .stopped, .forced: loop.calls.end()
        case .workerLost, .workerStalled: loop.calls.noteFault()
        }
        guard outcome != .forced else {
            socket.close()
            return forcedStatus
        }
        loop.finish()
        log.info("stopped", [])
        switch outcome {
        case .stopped, .forced: return 0
        case .workerLost(let worker):
            return fail(.system("workers", "worker \(worker) has ended"))
        case .workerStalled(let worker):
            return fail(.system("workers", "worker \(worker) stands still"))
        }
    }

    /// Writes to standard output without buffering; errors are ignored, as nobody may be reading.
    static func say(_ text: String) { _ = kernel_write(1, Array(text.utf8).span) }

    /// Writes the reason for ending to standard error in one line; returns the exit status.
    private static func fail(_ error: StartError) -> Int32 {
        _ = kernel_write(2, Array("sfud: \(error)\n".utf8).span)
        return error.status
    }

    private static let logMilliseconds = 100
    /// Exit status after a second SIGTERM or SIGINT.
    private static let forcedStatus: Int32 = 130
}
