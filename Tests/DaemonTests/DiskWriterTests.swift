import ControlPlane
import Foundation
import Kernel
import RTP
import Testing

@testable import Daemon
@testable import Recording
@testable import Sockets
@testable import WorkerInterface

/// Recordings on a real disk.
@Suite(.timeLimit(.minutes(10))) struct DiskWriterTests {
    private static func directory() -> String {
        NSTemporaryDirectory() + "sfud-test-\(UUID().uuidString)"
    }

    /// Returns the notices up to the end of recording 1.
    private func notices(of disk: DiskWriter) throws -> [String] {
        var poller = try Poller()
        try poller.add(disk.notices.descriptor, for: .readable, token: 0)
        var words: [String] = []
        while words.last != "ended" {
            _ = poller.wait(until: nil, at: .monotonic())
            for notice in disk.notices.drain().messages {
                switch notice {
                case .ready: words.append("ready")
                case .failed(_, let reason): words.append(reason)
                case .ended: words.append("ended")
                }
            }
        }
        return words
    }

    private func run(_ offset: Int, _ text: String) -> MediaMuxer.Run {
        MediaMuxer.Run(offset: offset, bytes: Array(text.utf8))
    }

    @Test func `runs land where they belong, and the record is replaced as a whole`() throws {
        let directory = Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = 0
        // Its directory is made by the first recording; until then an ancestor's space counts.
        let disk = try DiskWriter(limits: limits, directory: directory + "/a")
        disk.post([
            .open(1, directory: directory + "/a/b"),
            .create(1, file: 0, path: directory + "/a/b/file"),
            .write(1, file: 0, run(0, "head body"), seconds: 1),
            .write(1, file: 0, run(0, "HEAD"), seconds: 2),
            .replace(1, path: directory + "/a/b/session.json", { Array("{}".utf8) }),
            .replace(1, path: directory + "/a/b/session.json", { Array("[]".utf8) }),
            .close(1, file: 0),
            .end(1),
        ])
        #expect(try notices(of: disk) == ["ready", "ended"])
        let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/a/b")
        #expect(names.sorted() == ["file", "session.json"])
        #expect(try String(contentsOfFile: directory + "/a/b/file", encoding: .utf8) == "HEAD body")
        let record = try String(contentsOfFile: directory + "/a/b/session.json", encoding: .utf8)
        #expect(record == "[]")
        #expect(disk.kept(of: 1) == [0: .init(seconds: 2, bytes: 9)] && disk.waiting(for: 1) == 0)
        #expect(disk.use.writtenBytes == 13)
        let free = try #require(disk.use.freeBytes)
        let size = try FileManager.default.attributesOfFileSystem(forPath: directory)[.systemSize]
        #expect(free > 0 && free <= (size as? NSNumber)?.intValue ?? 0)
        disk.stop(milliseconds: 1_000)
    }

    @Test func `a recording past its size has to end, and what is there stays`() throws {
        let directory = Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = 0
        limits.bytes = 10
        let disk = try DiskWriter(limits: limits)
        disk.post([
            .open(1, directory: directory),
            .create(1, file: 0, path: directory + "/file"),
            .write(1, file: 0, run(0, "12345678"), seconds: 1),
            .write(1, file: 0, run(8, "90123"), seconds: 2),
            .write(1, file: 0, run(13, "4"), seconds: 3),
            .end(1),
        ])
        #expect(try notices(of: disk) == ["ready", "size-limit", "ended"])
        let kept = try String(contentsOfFile: directory + "/file", encoding: .utf8)
        #expect(kept == "12345678901234")
        disk.stop(milliseconds: 1_000)
    }

    @Test func `a burst of more than may wait is no fault of the disk`() throws {
        let directory = Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = 0
        limits.waitingBytes = 10
        let disk = try DiskWriter(limits: limits)
        let posted = Instant.monotonic()
        disk.post([
            .open(1, directory: directory),
            .create(1, file: 0, path: directory + "/file"),
            .write(1, file: 0, run(0, "12345678"), seconds: 1),
            .write(1, file: 0, run(8, "90123456"), seconds: 2),
        ])
        // Whether or not the disk has had its turn.
        #expect(!disk.isTooSlow(for: 1, at: posted))
        disk.post([.end(1)])
        #expect(try notices(of: disk) == ["ready", "ended"])
        #expect(disk.waiting(for: 1) == 0)
        #expect(!disk.isTooSlow(for: 1, at: posted.advanced(milliseconds: 60_000)))
        disk.stop(milliseconds: 1_000)
    }

    @Test func `what is abandoned is not written`() throws {
        let directory = Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = 0
        let disk = try DiskWriter(limits: limits)
        disk.abandon(1)
        disk.post([
            .open(1, directory: directory),
            .create(1, file: 0, path: directory + "/file"),
            .write(1, file: 0, run(0, "12345678"), seconds: 1),
            .end(1),
        ])
        #expect(try notices(of: disk) == ["ready", "ended"])
        #expect(disk.kept(of: 1).isEmpty && disk.waiting(for: 1) == 0)
        disk.stop(milliseconds: 1_000)
    }

    static let refusals: [(name: String, directory: String, freeBytes: Int, reason: String)] = [
        ("a place where nothing can be made", "/proc/sfud/x", 0, "disk-error"),
        ("too little free", NSTemporaryDirectory() + "sfud-free", 1 << 50, "disk-full"),
    ]

    @Test(arguments: refusals)
    func `a recording that cannot begin says why`(
        name: String,
        directory: String,
        freeBytes: Int,
        reason: String
    ) throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = freeBytes
        let disk = try DiskWriter(limits: limits)
        disk.post([.open(1, directory: directory), .end(1)])
        #expect(try notices(of: disk) == [reason, "ended"])
        disk.stop(milliseconds: 1_000)
    }

    @Test func `the recorder passes the fence behind a begin once the directory stands`() throws {
        let directory = Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var limits = RecordingLimits()
        limits.freeBytes = 0
        let setup = RecorderLoop.Setup(
            index: 1,
            relays: try RelayNetwork(workers: 2),
            disk: try DiskWriter(limits: limits),
            limits: limits,
            log: Log(level: .error)
        )
        let recorder = try Worker(setup)
        defer { recorder.commands.close() }
        var poller = try Poller()
        try poller.add(recorder.events.descriptor, for: .readable, token: 0)
        func next() -> [WorkerEvent] {
            _ = poller.wait(until: nil, at: .monotonic())
            return recorder.events.drain().messages
        }
        func passes(_ epoch: UInt64) -> [WorkerEvent] {
            var events: [WorkerEvent] = []
            while true {
                events += next()
                if case .fenced(epoch, _, _)? = events.last { return events }
            }
        }
        let tap = OutputSetup(
            id: 7,
            name: "rec-x",
            room: "r",
            directory: directory,
            started: 1_700_000_000
        )
        recorder.commands.post([.tap(.open(tap)), .fence(epoch: 1)])
        let begun = passes(1).contains { event in
            if case .tap(.started(7)) = event { true } else { false }
        }
        #expect(begun, "a silent recording has started, and says so before the fence")
        #expect(FileManager.default.fileExists(atPath: directory))
        recorder.commands.post([.tap(.close(7)), .fence(epoch: 2)])
        let events = passes(2)
        let ended = events.contains { event in
            if case .tap(.ended(7, reason: nil, _)) = event { true } else { false }
        }
        #expect(ended, "the end is told before the fence")
        #expect(FileManager.default.fileExists(atPath: directory + "/session.json"))
    }
}
