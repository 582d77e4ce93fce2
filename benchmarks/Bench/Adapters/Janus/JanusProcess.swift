import Foundation
import JSON

/// A Janus process started by the bench, with a connection to its API.
struct JanusProcess: Sendable {
    let child: Child
    let connection: JanusConnection
    let version: String

    /// Starts Janus in the launch's folder, with several attempts.
    ///
    /// Janus has a race at its start: its socket thread ends, and Janus with it, if the thread
    /// reads a flag before the flag is set.
    ///
    /// - Throws: `AdapterError` if Janus is not installed, or with the end of its log.
    init(_ launch: Launch, eventLoops: Int) async throws {
        let executable = launch.executable ?? "janus"
        guard Child.find(executable) != nil else {
            throw AdapterError("\(executable) is not installed: apt-get install janus")
        }
        let configuration = JanusConfiguration(
            folder: launch.directory,
            eventLoops: eventLoops
        )
        try configuration.write()
        let environment = ["LD_PRELOAD": try Self.loopbackOnly()]
        for attempt in 1...Self.maximumStarts {
            let child = try Child(
                executable,
                configuration.arguments,
                log: launch.directory + "/janus-\(attempt).log",
                environment: environment
            )
            if let (connection, version) = await Self.greet(child, at: configuration.socket) {
                self.child = child
                self.connection = connection
                self.version = version
                return
            }
            await child.stop()
            guard attempt == Self.maximumStarts || Task.isCancelled else { continue }
            let lines = child.output.split(separator: "\n").suffix(5)
            throw AdapterError("janus did not start:\n" + lines.joined(separator: "\n"))
        }
        preconditionFailure("the last attempt returns or throws")
    }

    func stop() async {
        connection.close()
        await child.stop()
    }

    /// Connects as soon as Janus listens, and asks for its version; returns `nil` on failure.
    private static func greet(
        _ child: Child,
        at path: String
    ) async -> (JanusConnection, String)? {
        let deadline = ContinuousClock.now + .seconds(10)
        while child.isRunning, ContinuousClock.now < deadline, !Task.isCancelled {
            if let connection = JanusConnection(path: path) {
                let reply = try? await connection.call("info")
                return reply.map { (connection, $0["version_string"]?.string ?? "?") }
            }
            await Child.pause(milliseconds: 20)
        }
        return nil
    }

    /// Returns the path of the library that lets Janus use loopback; it is built beside the bench.
    private static func loopbackOnly() throws -> String {
        let bench = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        let library = bench.deletingLastPathComponent().appending(path: "libloopback-only.so").path
        guard FileManager.default.fileExists(atPath: library) else {
            throw AdapterError("no \(library): swift build -c release --product loopback-only")
        }
        return library
    }

    private static let maximumStarts = 8
}
