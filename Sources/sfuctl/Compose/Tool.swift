import Foundation
import Kernel

/// A program that is run, with its arguments as they are: no shell reads them.
struct Tool: Sendable {
    var url: URL

    /// How a run ended.
    struct Ending {
        var status: Int32
        /// The last of what it wrote to standard error.
        var complaint: String

        var isSuccess: Bool { status == 0 }

        /// Whether it failed for the disk, and not for what it was given to read.
        var isOutOfSpace: Bool {
            ["No space left", "quota exceeded", "File too large"].contains {
                complaint.contains($0)
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

    /// Runs the program to its end, and hands on each line of its standard output.
    ///
    /// - Throws: `ComposeError` where it cannot be started, `Interrupted` where we were.
    func run(
        _ arguments: [String],
        in directory: URL? = nil,
        interruption: Interruption,
        onLine: (Substring) -> Void = { _ in }
    ) throws -> Ending {
        let process = Process()
        process.executableURL = url
        process.arguments = arguments
        if let directory { process.currentDirectoryURL = directory }
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        let complaint = Tail()
        errors.fileHandleForReading.readabilityHandler = { file in
            let data = file.availableData
            if data.isEmpty {
                file.readabilityHandler = nil
                complaint.finish()
            } else {
                complaint.add(data)
            }
        }
        try interruption.whileRunning(process) {
            try Self.readLines(output.fileHandleForReading, onLine)
            process.waitUntilExit()
        }
        return Ending(
            status: process.terminationReason == .exit ? process.terminationStatus : -1,
            complaint: complaint.text()
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

/// The last bytes that a program wrote.
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

    /// The last few lines, once there are no more.
    func text() -> String {
        // A program that left children behind may hold the pipe open: what is there is enough.
        _ = end.wait(timeout: .now() + 1)
        let lines = bytes.withLock { String(decoding: $0, as: UTF8.self) }
            .split(separator: "\n")
        return lines.suffix(3).map { Table.printable(String($0)) }.joined(separator: "; ")
    }
}

/// The user wants it to stop.
struct Interrupted: Error {}

/// Listens to SIGINT and SIGTERM, and ends the program that runs at that time.
final class Interruption: Sendable {
    private struct State {
        var isInterrupted = false
        var running: Int32?
        var sources: [any DispatchSourceSignal] = []
    }

    private let state = Locked(State())

    init() {
        let sources = [SIGINT, SIGTERM].map { number in
            // By default these would end us before the source hears of them.
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
            // What it has made so far is of no use.
            if let running = state.running { kill(running, SIGKILL) }
        }
    }

    /// Starts `process` and calls `body`, which waits for its end.
    ///
    /// - Throws: `Interrupted` where that was the cause of the end, or nothing was started.
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
