import Foundation
import Kernel

/// An external program that is run without a shell.
struct ExternalProgram: Sendable {
    var url: URL

    /// Result of a run.
    struct RunResult {
        var status: Int32?
        /// Last lines of standard error.
        var errorOutput: String

        var isSuccess: Bool { status == 0 }

        /// Whether it failed for lack of disk space and not because of its input.
        var isOutOfSpace: Bool {
            ["No space left", "quota exceeded", "File too large"].contains {
                errorOutput.contains($0)
            }
        }
    }

    /// Finds a program on the search path.
    ///
    /// - Throws: `ComposeError` that names the program.
    init(named name: String) throws(ComposeError) {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        let found = path.split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        guard let found else {
            throw ComposeError("\(name) is not installed (Debian: apt-get install ffmpeg)")
        }
        url = URL(filePath: found)
    }

    /// Runs the program to its end and passes on each line of its standard output.
    ///
    /// - Throws: `ComposeError` if it cannot be started, `Interrupted` after a signal.
    func run(
        _ arguments: [String],
        in directory: URL? = nil,
        interruption: Interruption,
        onLine: (Substring) -> Void = { _ in }
    ) throws -> RunResult {
        let process = Process()
        process.executableURL = url
        process.arguments = arguments
        if let directory { process.currentDirectoryURL = directory }
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        let errorOutput = Tail()
        errors.fileHandleForReading.readabilityHandler = { file in
            let data = file.availableData
            if data.isEmpty {
                file.readabilityHandler = nil
                errorOutput.finish()
            } else {
                errorOutput.add(data)
            }
        }
        try interruption.whileRunning(process) {
            try Self.readLines(output.fileHandleForReading, onLine)
            process.waitUntilExit()
        }
        return RunResult(
            status: process.terminationReason == .exit ? process.terminationStatus : nil,
            errorOutput: errorOutput.text()
        )
    }

    private static func readLines(
        _ file: FileHandle,
        _ onLine: (Substring) -> Void
    ) throws {
        var rest: [UInt8] = []
        while let data = try file.read(upToCount: 1 << 16), !data.isEmpty {
            rest += data
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            for line in String(decoding: rest[...end], as: UTF8.self).split(separator: "\n") {
                onLine(line)
            }
            rest.removeFirst(end + 1)
        }
        if !rest.isEmpty { onLine(Substring(String(decoding: rest, as: UTF8.self))) }
    }
}

/// Last bytes of a program's standard error.
private final class Tail: Sendable {
    private static let limit = 8_192
    private let bytes = Locked<[UInt8]>([])
    private let end = DispatchSemaphore(value: 0)

    func add(_ data: Data) {
        bytes.withLock { bytes in
            bytes += data
            if bytes.count > 2 * Self.limit { bytes.removeFirst(bytes.count - Self.limit) }
        }
    }

    func finish() { end.signal() }

    /// Returns the last few lines after the end of the output.
    func text() -> String {
        // Child processes may keep the pipe open, so the wait is limited.
        _ = end.wait(timeout: .now() + 1)
        let lines = bytes.withLock { String(decoding: $0, as: UTF8.self) }
            .split(separator: "\n")
        return lines.suffix(3).map { Table.printable(String($0)) }.joined(separator: "; ")
    }
}

/// Error after SIGINT or SIGTERM.
struct Interrupted: Error {}

/// Handler of SIGINT and SIGTERM that kills the running program.
final class Interruption: Sendable {
    private struct State {
        var isInterrupted = false
        var running: Int32?
        var sources: [any DispatchSourceSignal] = []
    }

    private let state = Locked(State())

    init() {
        let sources = [SIGINT, SIGTERM].map { number in
            // The default action would end this process before the source is notified.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { [weak self] in self?.interrupt() }
            source.activate()
            return source
        }
        state.withLock { $0.sources = sources }
    }

    private func interrupt() {
        state.withLock { state in
            state.isInterrupted = true
            // Its partial result is not used.
            if let running = state.running { kill(running, SIGKILL) }
        }
    }

    /// Starts `process` and calls `body`, which waits for its end.
    ///
    /// - Throws: `Interrupted` if a signal ended it or prevented its start.
    func whileRunning(_ process: Process, _ body: () throws -> Void) throws {
        try state.withLock { state in
            guard !state.isInterrupted else { throw Interrupted() }
            do {
                try process.run()
            } catch {
                throw ComposeError("\(process.executableURL?.path ?? "") cannot be started")
            }
            state.running = process.processIdentifier
        }
        defer { state.withLock { $0.running = nil } }
        try body()
        guard !state.withLock({ $0.isInterrupted }) else { throw Interrupted() }
    }
}
