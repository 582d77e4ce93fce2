import CKernel
import Contract
import Foundation
import Kernel
import SFUClient
import WorkerInterface

/// Collection of the facts for `sfuctl doctor`.
struct DoctorProbe {
    private let client: SFUClient
    private let path: String
    private let files = FileManager.default

    init(_ client: SFUClient, path: String) {
        self.client = client
        self.path = path
    }

    /// Returns what can be found out; it takes a quarter of a second or more.
    func facts() async -> DoctorFacts {
        var facts = DoctorFacts(
            ipc: path,
            version: ProgramVersion.text,
            clock: await clock(),
            kernel: kernel()
        )
        do throws(ClientError) {
            facts.daemon = DoctorFacts.Daemon(
                info: try await client.serverInfo(),
                stats: try await client.serverStats()
            )
        } catch {
            facts.failure = "\(error)"
        }
        if facts.daemon != nil, let id = try? NetworkFacts.listener(at: path) {
            facts.program = program(id)
        }
        facts.sockets = sockets()
        facts.interfaces = interfaces()
        facts.disk = facts.program?.settings.flatMap(disk)
        let daemon = facts.program.map { DaemonProcess($0.id) }
        facts.libraries = (daemon?.mappedLibraries() ?? DaemonLibraries.ofInstalled()).map {
            DaemonLibraries.withVersion($0)
        }
        return facts
    }

    private func program(_ id: Int) -> DoctorFacts.Program {
        let process = DaemonProcess(id)
        return DoctorFacts.Program(
            id: id,
            settings: process.settings(),
            openFiles: process.openFiles(),
            fileLimit: process.text("limits").flatMap(ProcessLimits.openFiles),
            sharesNetwork: process.sharesNetwork()
        )
    }

    private func sockets() -> [DoctorFacts.Socket]? {
        guard let found = try? NetworkFacts.boundSockets() else { return nil }
        return found.map { socket in
            DoctorFacts.Socket(
                address: Address(socket.address),
                isTCP: socket.tcp,
                receiveBuffer: Int(socket.receive_buffer),
                sendBuffer: Int(socket.send_buffer),
                drops: Int(socket.drops)
            )
        }
    }

    private func interfaces() -> [DoctorFacts.Interface] {
        let found = (try? NetworkFacts.interfaces()) ?? []
        return found.filter(\.up).map {
            DoctorFacts.Interface(address: Address($0.address), isLoopback: $0.loopback)
        }
    }

    /// Watches both clocks for a moment.
    private func clock() async -> DoctorFacts.Clock {
        let (wall, steady) = (kernel_unix_nanoseconds(), kernel_monotonic_nanoseconds())
        try? await Task.sleep(for: .milliseconds(200))
        let passed = kernel_monotonic_nanoseconds() - steady
        let state = kernel_clock_state()
        return DoctorFacts.Clock(
            unixTime: Double(wall) / 1e9,
            drift: Double(kernel_unix_nanoseconds() - wall - passed) / 1e9,
            isSynchronized: state.known ? state.synchronized : nil,
            error: Double(state.error) / 1e6
        )
    }

    private func kernel() -> DoctorFacts.Kernel {
        let memory = try? SharedMemory(named: "sfuctl-doctor", byteCount: 4_096)
        let socket = kernel_udp_open(Address(ipv4: 0x7f00_0001, port: 0).kernel, false)
        var stamps: Bool?
        if socket >= 0 {
            stamps = kernel_timestamp_arrivals(socket) == 0
            kernel_close(socket)
        }
        // Readable where securityfs is mounted.
        let modules = DaemonProcess.content("/sys/kernel/security/lsm")
        return DoctorFacts.Kernel(
            release: line("/proc/sys/kernel/osrelease") ?? "of unknown version",
            segments: kernel_udp_segments_supported() == 0,
            memory: memory != nil,
            timestamps: stamps,
            landlock: modules.map { $0.contains("landlock") },
            seccomp: files.fileExists(atPath: "/proc/sys/kernel/seccomp/actions_avail"),
            receiveBufferLimit: line("/proc/sys/net/core/rmem_max").flatMap { Int($0) },
            sendBufferLimit: line("/proc/sys/net/core/wmem_max").flatMap { Int($0) }
        )
    }

    private func disk(_ settings: DaemonSettings) -> DoctorFacts.Disk? {
        guard settings.trouble == nil, let directory = settings.recordings else { return nil }
        var existing = URL(filePath: directory)
        while !files.fileExists(atPath: existing.path), existing.path != "/" {
            existing.deleteLastPathComponent()
        }
        guard let system = try? files.attributesOfFileSystem(forPath: existing.path),
            let free = system[.systemFreeSize] as? NSNumber,
            let size = system[.systemSize] as? NSNumber
        else { return nil }
        return DoctorFacts.Disk(
            directory: directory,
            exists: files.fileExists(atPath: directory),
            free: free.intValue,
            size: size.intValue
        )
    }

    private func line(_ path: String) -> String? {
        DaemonProcess.content(path)?.split(separator: "\n").first.map(String.init)
    }
}

/// Another process, as `/proc` shows it.
struct DaemonProcess {
    private let folder: String

    init(_ id: Int) { folder = "/proc/\(id)" }

    /// Returns the content of a file of the kernel's, which tells no size and so has to be read to
    /// its end.
    static func content(_ path: String) -> String? {
        let data = try? FileHandle(forReadingFrom: URL(filePath: path)).readToEnd()
        return data.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the content of one of its files; `nil` without permission.
    func text(_ name: String) -> String? { Self.content("\(folder)/\(name)") }

    /// Returns its settings; `nil` if its command line cannot be read.
    func settings() -> DaemonSettings? {
        guard let line = text("cmdline"), !line.isEmpty else { return nil }
        let arguments = line.split(separator: "\0").dropFirst().map(String.init)
        return DaemonSettings(arguments: arguments, directory: link("cwd")) { path in
            FileManager.default.contents(atPath: path).map(Array.init)
        }
    }

    func openFiles() -> Int? {
        (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/fd"))?.count
    }

    func sharesNetwork() -> Bool? {
        guard let own = DaemonProcess.link("/proc/self/ns/net"), let other = link("ns/net") else {
            return nil
        }
        return own == other
    }

    /// Returns the libraries that it has loaded; `nil` without permission to look.
    func mappedLibraries() -> [DoctorFacts.Library]? {
        text("maps").map(DaemonLibraries.mapped)
    }

    private func link(_ name: String) -> String? { Self.link("\(folder)/\(name)") }

    private static func link(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: path)
    }
}
