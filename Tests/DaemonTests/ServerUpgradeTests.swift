import CKernel
import ControlPlane
import Foundation
import JSON
import Kernel
import RTP
import Testing

@testable import Contract
@testable import Daemon

/// Calls and signals that replace the program.
struct ServerUpgradeTests {
    @Test func `the reply waits for the check`() throws {
        var driver = ControlDriver()
        let id = driver.send("server.upgrade", ["binary": "/usr/bin/sfud"])
        #expect(driver.trace == ["upgrade /usr/bin/sfud"])
        #expect(driver.replies[id] == nil)
        #expect(throws: IPCError.upgradeRefused("another one is in progress")) {
            try driver.done("server.upgrade")
        }
        driver.plane.concludeUpgrade(refusal: nil)
        driver.drain()
        #expect(driver.replies[id] == .success([:]))
        driver.plane.requestUpgrade()
        driver.drain()
        #expect(driver.trace.last == "upgrade own")
    }

    @Test func `a refused program can be followed by another`() throws {
        var driver = ControlDriver()
        let first = driver.send("server.upgrade")
        driver.plane.concludeUpgrade(refusal: "it is none")
        driver.drain()
        #expect(driver.replies[first] == .failure(.upgradeRefused("it is none")))
        let second = driver.send("server.upgrade")
        driver.plane.concludeUpgrade(refusal: nil)
        driver.drain()
        #expect(driver.replies[second] == .success([:]))
    }

    @Test func `rooms are no obstacle, and the end is one`() throws {
        var driver = ControlDriver()
        try driver.room("one")
        let call = driver.send("server.upgrade")
        #expect(driver.trace.last == "upgrade own")
        driver.plane.concludeUpgrade(refusal: nil)
        driver.drain()
        #expect(driver.replies[call] == .success([:]))
        driver.plane.shutdown(at: driver.now)
        #expect(driver.plane.upgradeObstacle == "sfud is shutting down")
        #expect(throws: IPCError.self) { try driver.done("server.upgrade") }
    }

    @Test(arguments: ["sfud", "./sfud", "", "/" + String(repeating: "a", count: 1_024)])
    func `a path is absolute and short`(_ path: String) throws {
        var driver = ControlDriver()
        let error = #expect(throws: IPCError.self) {
            try driver.done("server.upgrade", ["binary": .string(path)])
        }
        #expect(error?.details["parameter"] == "binary")
    }
}

/// The check of a program before the process becomes it.
struct BinaryCheckTests {
    struct Program: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var mode = 0o755
        var expected: String
    }

    static let programs = [
        Program(testDescription: "good", text: "#!/bin/sh\necho sfud 9.8.7", expected: "9.8.7"),
        Program(
            testDescription: "another program",
            text: "#!/bin/sh\necho sshd 9.8.7",
            expected: "--version prints no version"
        ),
        Program(
            testDescription: "no number",
            text: "#!/bin/sh\necho sfud is here",
            expected: "--version prints no version"
        ),
        Program(
            testDescription: "no end of output",
            text: "#!/bin/sh\nexec yes sfud",
            expected: "--version does not end"
        ),
        Program(
            testDescription: "silent",
            text: "#!/bin/sh\nexec sleep 20",
            expected: "--version does not end"
        ),
        Program(
            testDescription: "not executable",
            text: "#!/bin/sh\necho sfud 9.8.7",
            mode: 0o644,
            expected: "is no program"
        ),
        Program(
            testDescription: "writable by the group",
            text: "#!/bin/sh\necho sfud 9.8.7",
            mode: 0o775,
            expected: "can be written to by others"
        ),
        Program(
            testDescription: "without an interpreter",
            text: "#!/nonexistent/sh\n",
            expected: "No such file or directory"
        ),
    ]

    @Test(arguments: programs)
    func `only a program with a version is taken`(_ program: Program) throws {
        try withSocketPath { path in
            try Self.write(program.text, mode: program.mode, to: path)
            let begin = Instant.monotonic()
            let outcome = Self.outcome(of: path)
            #expect(outcome.contains(program.expected), "\(outcome)")
            #expect(Instant.monotonic().milliseconds(since: begin) < 5_000)
        }
    }

    /// Writes a program that can be started at once.
    ///
    /// Another process does it: a file that is open for writing cannot be executed (`ETXTBSY`), and
    /// what other tests fork while this process writes has it open until it becomes its program.
    static func write(_ text: String, mode: Int, to path: String) throws {
        let source = path + ".text"
        try Data(text.utf8).write(to: URL(filePath: source))
        let install = try Process.run(
            URL(filePath: "/usr/bin/install"),
            arguments: ["-m", String(mode, radix: 8), source, path]
        )
        install.waitUntilExit()
        try #require(install.terminationStatus == 0)
    }

    /// Returns the version or the refusal.
    static func outcome(of path: String) -> String {
        do throws(UpgradeRefusal) {
            var check = try BinaryCheck(path, at: .monotonic())
            defer { check.close() }
            while true {
                usleep(1_000)
                switch check.read(at: .monotonic()) {
                case .success(let version): return version
                case .failure(let refusal): return refusal.detail
                case nil: continue
                }
            }
        } catch {
            return error.detail
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root can give files away"))
    func `somebody else's program is refused`() throws {
        try withSocketPath { path in
            try Self.write("#!/bin/sh\necho sfud 1.0.0", mode: 0o755, to: path)
            try FileManager.default.setAttributes(
                [.ownerAccountID: 65_534],
                ofItemAtPath: path
            )
            #expect(Self.outcome(of: path).contains("belongs to neither root nor sfud's user"))
        }
    }

    @Test func `a directory and nothing are refused`() {
        #expect(Self.outcome(of: "/tmp").contains("is no program"))
        #expect(Self.outcome(of: "/nonexistent/sfud").contains("No such file"))
    }
}
