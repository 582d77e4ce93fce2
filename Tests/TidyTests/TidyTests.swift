import Foundation
import Testing

/// A file of the package, read as text.
struct Source: CustomTestStringConvertible, Sendable {
    /// Path relative to the package.
    var path: String
    var text: String

    var testDescription: String { path }

    /// Lines with their numbers, without comments.
    var code: [(number: Int, line: Substring)] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.enumerated().map { ($0 + 1, $1) }.filter { _, line in
            !line.drop { $0 == " " }.hasPrefix("//")
        }
    }

    /// Returns all files under `folder` of the package with this ending.
    static func all(under folder: String, ending: String = ".swift") -> [Source] {
        let package = URL(filePath: #filePath).appending(path: "../../..").standardized
        let directory = package.appending(path: folder)
        let files = FileManager.default.enumerator(atPath: directory.path)
        return (files?.compactMap { $0 as? String } ?? []).sorted().compactMap { name in
            guard name.hasSuffix(ending) else { return nil }
            let text = try? String(contentsOf: directory.appending(path: name), encoding: .utf8)
            return text.map { Source(path: "\(folder)/\(name)", text: $0) }
        }
    }
}

@Suite struct TidyTests {
    static let sources = Source.all(under: "Sources")
    static let tests = Source.all(under: "Tests")

    /// Files that may use the word `unsafe`: storage, and wrappers of libraries and system calls.
    ///
    /// A path that ends in a slash stands for its folder.
    static let quarantine = [
        "Sources/Records/",
        "Sources/SFU/Storage/",
        "Sources/SFU/Crypto/",
        "Sources/SFU/Saved/SavedState.swift",
        "Sources/SFU/Transport/SaveTransport.swift",
        "Sources/SFU/Transport/Transports.swift",
        "Sources/SFU/ActiveSpeakers/OpusLevelMeter.swift",
        "Sources/WorkerInterface/AddressText.swift",
        "Sources/SFUClient/UnixSocket.swift",
        "Sources/Registry/RegistryCause.swift",
        "Sources/Registry/RegistryJournal.swift",
        "Sources/Registry/RegistrySession.swift",
        "Sources/Links/LinkCipher.swift",
        "Sources/Links/LinkIdentity.swift",
        "Sources/Daemon/Cluster/LinkThread.swift",
        "Sources/Keeper/KeeperReports.swift",
        "Sources/Kernel/Locked.swift",
        "Sources/Kernel/HandoverProgram.swift",
        "Sources/Kernel/NetworkFacts.swift",
        "Sources/Kernel/NotificationSocket.swift",
        "Sources/Kernel/ProcessEnvironment.swift",
        "Sources/Kernel/ProgramPath.swift",
        "Sources/Kernel/SharedMemory.swift",
        "Sources/Kernel/SystemError.swift",
        "Sources/Sockets/PlaceLists.swift",
        "Sources/Sockets/SendQueue.swift",
        "Sources/Sockets/TCP/TCPConnectionTable.swift",
        "Sources/Sockets/TCP/TCPListener.swift",
        "Sources/Sockets/UDP/Inbox.swift",
        "Sources/Sockets/UDP/UDPSender.swift",
        "Sources/Sockets/UDP/UDPSocket.swift",
        "Sources/Recording/DiskFiles.swift",
        "Sources/Recording/MediaMuxer.swift",
        "Sources/LiveStream/StreamCodecs.swift",
        "Sources/LiveStream/StreamerProcess.swift",
        "Sources/Daemon/HTTP/HTTPServer.swift",
        "Sources/Daemon/Health/ServiceManager.swift",
        "Sources/Daemon/Handover/CallMemory.swift",
        "Sources/Daemon/Handover/LifeMemory.swift",
        "Sources/Daemon/Handover/ProcessReplacement.swift",
        "Sources/Daemon/IPC/IPCServer.swift",
        "Sources/Daemon/IPC/IPCSocket.swift",
        "Sources/Daemon/Start/CommandLineOptions.swift",
        "Sources/Daemon/Worker/Worker.swift",
        "Sources/sfuctl/Compose/Rename.swift",
    ]

    @Test func `finds source files`() {
        #expect(!Self.sources.isEmpty)
        #expect(!Self.tests.isEmpty)
    }

    @Test(arguments: sources + tests)
    func `lines have at most 100 columns`(_ source: Source) {
        let lines = source.text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where line.count > 100 {
            Issue.record("\(source.path):\(index + 1) has \(line.count) columns")
        }
    }

    @Test(arguments: sources.filter { $0.path.hasPrefix("Sources/RTP/") })
    func `RTP imports nothing`(_ source: Source) {
        expectNone(of: ["import "], in: source)
    }

    @Test(arguments: sources.filter { $0.path.hasPrefix("Sources/SFU/") })
    func `SFU does not import Foundation`(_ source: Source) {
        expectNone(of: ["import Foundation", "import Dispatch"], in: source)
    }

    @Test(arguments: sources)
    func `unsafe code stays in its files`(_ source: Source) {
        let isQuarantined = Self.quarantine.contains { place in
            place.hasSuffix("/") ? source.path.hasPrefix(place) : source.path == place
        }
        guard !isQuarantined else { return }
        expectNone(of: ["unsafe ", "@unsafe"], in: source)
    }

    @Test(arguments: sources)
    func `there is no TODO, FIXME, try! or fatalError`(_ source: Source) {
        expectNone(of: ["try!", "fatalError"], in: source)
        // Including comments.
        for word in ["TODO", "FIXME"] where source.text.contains(word) {
            Issue.record("\(source.path) says \(word)")
        }
    }

    private func expectNone(of words: [String], in source: Source) {
        for (number, line) in source.code {
            for word in words where line.contains(word) {
                Issue.record("\(source.path):\(number) says \(word)")
            }
        }
    }
}
