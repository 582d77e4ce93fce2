import CKernel
import ControlPlane
import Foundation
import Kernel
import Testing

@testable import Daemon

/// The IPC socket over the daemon's lives.
struct IPCHandoverTests {
    static let quiet = Log(level: .error, descriptor: kernel_open_null())

    static func next(_ handover: Handover) -> Handover {
        let manager = ServiceManager(environment: [:], processID: 0)
        return Handover(InheritedDescriptors(handover.kept), manager, quiet)
    }

    @Test func `a client that connects between two lives is served by the second`() throws {
        try withSocketPath { path in
            let first = Handover.none(Self.quiet)
            let socket = try IPCSocket.open(path, first)
            #expect(first.kept.map(\.name) == ["ipc-lock", "ipc"])
            let client = unsafe kernel_unix_connect(path)
            try #require(client >= 0)
            let second = Self.next(first)
            let again = try IPCSocket.open(path, second)
            #expect(again.descriptor == socket.descriptor)
            #expect(Set(second.kept.map(\.name)) == ["ipc-lock", "ipc"])
            let accepted = kernel_accept(again.descriptor)
            #expect(accepted >= 0)
            for descriptor in [client, accepted] { kernel_close(descriptor) }
            // The lock has been held all the time.
            #expect(IPCSocketTests.refusal(path)?.status == 71)
            again.close()
            #expect(IPCSocketTests.refusal(path) == nil)
        }
    }

    @Test func `a socket whose file is gone is made again`() throws {
        try withSocketPath { path in
            let first = Handover.none(Self.quiet)
            _ = try IPCSocket.open(path, first)
            try FileManager.default.removeItem(atPath: path)
            let again = try IPCSocket.open(path, Self.next(first))
            let client = unsafe kernel_unix_connect(path)
            #expect(client >= 0)
            kernel_close(client)
            again.close()
        }
    }

    @Test func `without the lock a socket is not adopted`() throws {
        try withSocketPath { path in
            let first = Handover.none(Self.quiet)
            _ = try IPCSocket.open(path, first)
            try FileManager.default.removeItem(atPath: path + ".lock")
            // Another daemon has the lock meanwhile, and its own socket.
            try FileManager.default.removeItem(atPath: path)
            let other = try IPCSocket.open(path, .none(Self.quiet))
            #expect(throws: StartError.self) { try IPCSocket.open(path, Self.next(first)) }
            let client = unsafe kernel_unix_connect(path)
            #expect(client >= 0 && kernel_accept(other.descriptor) >= 0)
            kernel_close(client)
            other.close()
        }
    }

    @Test func `at another path the old files are removed`() throws {
        try withSocketPath { path in
            let first = Handover.none(Self.quiet)
            _ = try IPCSocket.open(path, first)
            let moved = try IPCSocket.open(path + "2", Self.next(first))
            let directory = (path as NSString).deletingLastPathComponent
            let files = try FileManager.default.contentsOfDirectory(atPath: directory)
            #expect(files.sorted() == ["s2", "s2.lock"])
            moved.close()
        }
    }
}
