import Foundation
import Synchronization

/// A process that the bench starts and stops; its output goes to a file.
final class Child: @unchecked Sendable {
    // Only `Process` is not `Sendable` here, and one task at a time uses it: the adapter that owns
    // it calls `start` once, then `stop` once.
    private let process = Process()
    /// Path of the file with its standard output and standard error.
    let log: String

    var pid: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }

    /// Starts `executable`, which is a path or a name in `PATH`.
    init(
        _ executable: String,
        _ arguments: [String],
        log: String,
        environment: [String: String] = [:],
        input: Pipe? = nil
    ) throws {
        self.log = log
        guard let path = Self.find(executable) else {
            throw AdapterError("\(executable): no such executable")
        }
        guard FileManager.default.createFile(atPath: log, contents: nil),
            let output = FileHandle(forWritingAtPath: log)
        else { throw AdapterError("\(log) cannot be written") }
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = output
        process.standardInput = input ?? FileHandle.nullDevice
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        do {
            try Self.takingSIGTERM { try process.run() }
        } catch {
            throw AdapterError("\(path) does not start: \(error)")
        }
        let pid = pid
        Self.running.withLock { _ = $0.insert(pid) }
    }

    /// Processes that were started and not stopped.
    private static let running = Mutex<Set<Int32>>([])

    /// Kills all of them without waiting, for an immediate end of the bench.
    static func endAll() {
        for pid in running.withLock({ $0 }) { kill(pid, SIGKILL) }
    }

    /// Runs `body` with SIGTERM unblocked.
    ///
    /// A child inherits the signal mask of the thread that starts it, and the threads of Swift's
    /// pools block all signals; `stop` sends SIGTERM.
    private static func takingSIGTERM(_ body: () throws -> Void) rethrows {
        var allowed = sigset_t()
        var before = sigset_t()
        unsafe sigemptyset(&allowed)
        unsafe sigaddset(&allowed, SIGTERM)
        unsafe pthread_sigmask(SIG_UNBLOCK, &allowed, &before)
        defer { _ = unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        try body()
    }

    /// Sends SIGTERM, and SIGKILL if it still runs after `seconds`.
    func stop(within seconds: Double = 3) async {
        let pid = pid
        defer { Self.running.withLock { _ = $0.remove(pid) } }
        guard process.isRunning else { return }
        process.terminate()
        let deadline = Date.now.addingTimeInterval(seconds)
        while process.isRunning, Date.now < deadline { await Self.pause(milliseconds: 20) }
        if process.isRunning { kill(pid, SIGKILL) }
        process.waitUntilExit()
    }

    /// Waits until `accept` takes a line of the output, and returns the result.
    ///
    /// - Throws: `AdapterError` with the end of the output if the process ends or `seconds` pass
    ///   before.
    func awaitLine<Value>(
        within seconds: Double = 10,
        _ accept: (Substring) -> Value?
    ) async throws -> Value {
        let deadline = Date.now.addingTimeInterval(seconds)
        while true {
            let isLast = !process.isRunning || Date.now >= deadline || Task.isCancelled
            let text = output
            for line in text.split(separator: "\n") {
                if let value = accept(line) { return value }
            }
            if isLast { throw AdapterError("\(name) did not get ready: \(text.suffix(300))") }
            await Self.pause(milliseconds: 20)
        }
    }

    /// Complete output until now.
    var output: String {
        String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
    }

    /// Waits, even if the task is cancelled.
    static func pause(milliseconds: Int) async {
        await Task.detached { try? await Task.sleep(for: .milliseconds(milliseconds)) }.value
    }

    private var name: String { process.executableURL?.lastPathComponent ?? "?" }

    /// Returns the path of `executable`, which is a path or a name in `PATH`.
    static func find(_ executable: String) -> String? {
        if executable.contains("/") {
            return FileManager.default.isExecutableFile(atPath: executable) ? executable : nil
        }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        return path.split(separator: ":").map { "\($0)/\(executable)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
