import CKernel
import ControlPlane
import Foundation
import Testing

@testable import Daemon

/// Runs `body` with a path in a directory of its own, which is removed with its contents.
func withSocketPath(_ body: (String) throws -> Void) throws {
    let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("sfud-\(UInt64.random(in: 0...UInt64.max))")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }
    try body(directory.appendingPathComponent("s").path)
}

struct IPCSocketTests {
    static let quiet = Log(level: .error, descriptor: kernel_open_null())

    static func refusal(_ path: String) -> StartError? {
        do throws(StartError) {
            try IPCSocket.open(path, .none(Self.quiet)).close()
            return nil
        } catch {
            return error
        }
    }

    @Test
    func `a socket for owner and group, and nothing left behind`() throws {
        try withSocketPath { path in
            let socket = try IPCSocket.open(path, .none(Self.quiet))
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o660)
            socket.close()
            let directory = (path as NSString).deletingLastPathComponent
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        }
    }

    @Test
    func `a second daemon is refused`() throws {
        try withSocketPath { path in
            let first = try IPCSocket.open(path, .none(Self.quiet))
            defer { first.close() }
            #expect(
                Self.refusal(path)
                    == .system("ipc", "\"\(path)\": a daemon is already running here")
            )
        }
    }

    @Test
    func `a stale socket is cleared away`() throws {
        try withSocketPath { path in
            let listener = unsafe kernel_unix_listen(path, 0o660, 1)
            kernel_close(listener)
            #expect(Self.refusal(path) == nil)
        }
    }

    @Test
    func `somebody else's live socket is left alone`() throws {
        try withSocketPath { path in
            let listener = unsafe kernel_unix_listen(path, 0o660, 1)
            defer { kernel_close(listener) }
            #expect(Self.refusal(path)?.status == 71)
            #expect(FileManager.default.fileExists(atPath: path))
        }
    }

    @Test
    func `a link and a file are refused and stay`() throws {
        try withSocketPath { path in
            try FileManager.default.createSymbolicLink(
                atPath: path,
                withDestinationPath: path + ".elsewhere"
            )
            #expect(
                Self.refusal(path) == .configuration("ipc", "\"\(path)\" is a symbolic link")
            )
            let file = path + ".file"
            #expect(FileManager.default.createFile(atPath: file, contents: Data([1])))
            #expect(
                Self.refusal(file)
                    == .configuration("ipc", "\"\(file)\" is there and is not a socket")
            )
            #expect(FileManager.default.fileExists(atPath: file))
            #expect(!FileManager.default.fileExists(atPath: file + ".lock"))
        }
    }

    @Test
    func `a missing directory is the system's refusal`() {
        #expect(Self.refusal("/nonexistent/s")?.status == 71)
    }
}
