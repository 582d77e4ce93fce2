import Contract
import Testing
import WorkerInterface

@testable import sfuctl

/// Findings of `sfuctl doctor`, from facts that are made up.
@Suite struct DoctorTests {
    /// Facts of a daemon with which all is well.
    private static var healthy: DoctorFacts {
        let udp = Address(ipv4: 0xcb00_7107, port: 5004)
        let limits = ServerLimits([
            "receiveBufferBytes": 4 << 20, "sendBufferBytes": 4 << 20, "tcpConnections": 1_024,
            "ipcConnections": 64, "recordingFreeBytes": 64 << 20,
        ])
        let info = ServerInfo.Result(
            version: "1.0.0",
            workers: 1,
            udp: ["203.0.113.7:5004"],
            fingerprint: "sha-256 00",
            limits: limits,
            boot: "b",
            started: 1
        )
        let worker = WorkerInfo(worker: 0, load: 0.1, transports: 3, counters: PacketCounters())
        var facts = DoctorFacts(
            ipc: "/run/s",
            version: "1.0.0",
            daemon: DoctorFacts.Daemon(
                info: info,
                stats: ServerStats.Result(
                    workers: [worker],
                    rooms: 1,
                    participants: 3,
                    uptimeSeconds: 90
                )
            ),
            program: DoctorFacts.Program(
                id: 7,
                settings: DaemonSettings(arguments: [], directory: "/") { _ in nil },
                openFiles: 40,
                fileLimit: 65_536,
                sharesNetwork: true
            ),
            sockets: [
                DoctorFacts.Socket(address: udp, receiveBuffer: 4 << 20, sendBuffer: 4 << 20)
            ],
            clock: DoctorFacts.Clock(
                unixTime: 1_800_000_000,
                drift: 0,
                isSynchronized: true,
                error: 0.001
            ),
            kernel: DoctorFacts.Kernel(
                release: "6.1",
                segments: true,
                memory: true,
                timestamps: true,
                landlock: true,
                seccomp: true,
                receiveBufferLimit: 4 << 20,
                sendBufferLimit: 4 << 20
            ),
            disk: DoctorFacts.Disk(
                directory: "/var/lib/sfud",
                exists: true,
                free: 100 << 30,
                size: 200 << 30
            )
        )
        facts.interfaces = [DoctorFacts.Interface(address: udp.with(port: 0))]
        facts.libraries = [DoctorFacts.Library(name: "libssl.so.3", version: "3.0")]
        return facts
    }

    @Test func `a healthy daemon has no warning and no fault`() {
        let findings = DoctorChecks(Self.healthy).findings
        #expect(findings.filter { $0.state != .ok } == [])
        #expect(
            findings.map(\.check) == [
                "daemon", "load", "udp", "buffers", "addresses", "clock", "files", "kernel",
                "disk", "libraries",
            ]
        )
    }

    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var check: String
        var state: Finding.State
        /// Words that the finding or its advice has.
        var says: String
        var change: @Sendable (inout DoctorFacts) -> Void
    }

    private static func settings(_ arguments: String...) -> DaemonSettings {
        DaemonSettings(arguments: arguments, directory: "/") { _ in nil }
    }

    static let cases = [
        Case(testDescription: "no daemon", check: "daemon", state: .fault, says: "refused") {
            $0.daemon = nil
            $0.failure = "connection refused"
        },
        Case(testDescription: "draining", check: "daemon", state: .warning, says: "undrain") {
            $0.daemon?.info.draining = true
        },
        Case(testDescription: "another version", check: "version", state: .warning, says: "0.9") {
            $0.daemon?.info.version = "0.9"
        },
        Case(testDescription: "busy", check: "load", state: .warning, says: "80 %") {
            $0.daemon?.stats.workers[0].pressure.busy = 0.8
        },
        Case(testDescription: "shedding", check: "load", state: .fault, says: "sheds layers") {
            $0.daemon?.stats.workers[0].pressure.step = .layers
        },
        Case(testDescription: "no socket", check: "udp", state: .fault, says: "203.0.113.7:5004") {
            $0.sockets = []
        },
        Case(testDescription: "a TCP socket there", check: "udp", state: .fault, says: "5004") {
            $0.sockets?[0].isTCP = true
        },
        Case(testDescription: "no listener", check: "tcp", state: .fault, says: ":443") {
            $0.daemon?.info.tcp = ["203.0.113.7:443"]
        },
        Case(testDescription: "no list", check: "sockets", state: .warning, says: "udp_diag") {
            $0.sockets = nil
        },
        Case(testDescription: "a container", check: "sockets", state: .warning, says: "there") {
            $0.program?.sharesNetwork = false
        },
        Case(testDescription: "short", check: "buffers", state: .warning, says: "rmem_max=4194304")
        { $0.sockets?[0].receiveBuffer = 208 << 10 },
        Case(testDescription: "short out", check: "buffers", state: .warning, says: "wmem_max") {
            $0.sockets?[0].sendBuffer = 208 << 10
        },
        Case(testDescription: "low limit", check: "buffers", state: .warning, says: "rmem_max") {
            $0.daemon = nil
            $0.kernel.receiveBufferLimit = 212_992
        },
        Case(testDescription: "drops", check: "drops", state: .warning, says: "dropped 9") {
            $0.sockets?[0].drops = 9
        },
        Case(testDescription: "address gone", check: "addresses", state: .fault, says: "any more") {
            $0.interfaces = []
        },
        Case(testDescription: "mapped", check: "addresses", state: .ok, says: "map UDP 5004") {
            $0.program?.settings = settings("--announce", "198.51.100.9")
        },
        Case(testDescription: "own", check: "addresses", state: .ok, says: "of this machine") {
            $0.program?.settings = settings("--announce=203.0.113.7")
        },
        Case(testDescription: "loopback", check: "addresses", state: .warning, says: "127.0.0.1") {
            $0.program?.settings = settings("--announce", "127.0.0.1")
        },
        Case(testDescription: "private", check: "addresses", state: .warning, says: "Internet") {
            $0.daemon?.info.udp = ["0.0.0.0:5004"]
            $0.sockets?[0].address = Address(ipv4: 0, port: 5004)
            $0.interfaces = [DoctorFacts.Interface(address: Address(ipv4: 0x0a00_0001, port: 0))]
        },
        Case(testDescription: "no interface", check: "addresses", state: .fault, says: "no address")
        {
            $0.daemon?.info.udp = ["[::]:5004"]
            $0.sockets?[0].address = Address(high: 0, low: 0, port: 5004)
        },
        Case(testDescription: "no settings", check: "addresses", state: .warning, says: "as root") {
            $0.program?.settings = nil
        },
        Case(testDescription: "long ago", check: "clock", state: .fault, says: "past") {
            $0.clock.unixTime = 1_000
        },
        Case(testDescription: "jumps", check: "clock", state: .warning, says: "jumps") {
            $0.clock.drift = -0.1
        },
        Case(testDescription: "free-running", check: "clock", state: .warning, says: "chrony") {
            $0.clock.isSynchronized = false
        },
        Case(testDescription: "silent kernel", check: "clock", state: .ok, says: "not say") {
            $0.clock.isSynchronized = nil
        },
        Case(testDescription: "full table", check: "files", state: .fault, says: "LimitNOFILE") {
            $0.program?.openFiles = 60_000
        },
        Case(testDescription: "low for TCP", check: "files", state: .warning, says: "1344") {
            $0.daemon?.info.tcp = ["203.0.113.7:5004"]
            $0.program?.fileLimit = 1_024
        },
        Case(testDescription: "no memfd", check: "kernel", state: .fault, says: "memfd") {
            $0.kernel.memory = false
        },
        Case(testDescription: "no GSO", check: "kernel", state: .warning, says: "UDP_SEGMENT") {
            $0.kernel.segments = false
        },
        Case(testDescription: "disk full", check: "disk", state: .fault, says: "63 MiB") {
            $0.disk?.free = 63 << 20
        },
        Case(testDescription: "disk short", check: "disk", state: .warning, says: "9 GiB") {
            $0.disk?.free = 9 << 30
        },
        Case(testDescription: "old library", check: "libraries", state: .warning, says: "upgrade") {
            $0.libraries[0].isReplaced = true
        },
        Case(testDescription: "no library", check: "libraries", state: .fault, says: "libssl") {
            $0.libraries[0].isMissing = true
        },
        Case(testDescription: "unreadable", check: "libraries", state: .warning, says: "as root") {
            $0.libraries = []
        },
    ]

    @Test(arguments: cases)
    func `what is wrong is found, with what to do`(_ entry: Case) throws {
        var facts = Self.healthy
        entry.change(&facts)
        let findings = DoctorChecks(facts).findings
        let found = try #require(findings.first { $0.check == entry.check })
        #expect(found.state == entry.state)
        let text = "\(found.text) \(found.advice ?? "")"
        #expect(text.contains(entry.says), "\(text)")
        if entry.state != .ok { #expect(found.advice != nil || entry.check == "buffers") }
    }

    @Test func `findings are lines, and their number is the last one`() {
        let text = Report.findings([
            .ok("a", "fine"), .warning("b", "less fine", "do this"), .fault("c", "bad"),
        ])
        #expect(
            text == """
                STATE    CHECK  FINDING
                ok       a      fine
                warning  b      less fine
                                  do this
                fault    c      bad

                faults: 1, warnings: 1
                """
        )
    }

    @Test func `settings come from the command line and the file, flags first`() {
        let file = "{ announce: ['192.0.2.1', '192.0.2.2'], recordings: '/a', workers: 4 }"
        func settings(_ arguments: String...) -> DaemonSettings {
            DaemonSettings(arguments: arguments, directory: "/home") { path in
                path == "/home/sfud.json5" ? Array(file.utf8) : nil
            }
        }
        let read = settings("--keeper", "--config", "sfud.json5", "--http=127.0.0.1:1")
        #expect(read["announce"] == ["192.0.2.1", "192.0.2.2"] && read.recordings == "/a")
        #expect(read.trouble == nil && read["http"] == ["127.0.0.1:1"])
        let flagged = settings(
            "--config=sfud.json5",
            "--announce",
            "192.0.2.3",
            "--recordings",
            "rec"
        )
        #expect(flagged["announce"] == ["192.0.2.3"] && flagged.recordings == "/home/rec")
        #expect(settings().recordings == "/home/recordings")
        #expect(settings("--config", "/none").trouble == "/none cannot be read")
    }

    @Test func `libraries are read from maps and from ldd`() {
        let maps = """
            7f00-7f01 r-xp 00000000 fe:00 1    /usr/lib/x86_64-linux-gnu/libssl.so.3
            7f02-7f03 r--p 00000000 fe:00 1    /usr/lib/x86_64-linux-gnu/libssl.so.3
            7f04-7f05 r-xp 00000000 fe:00 2    /usr/lib/x86_64-linux-gnu/libsrtp2.so.1 (deleted)
            7f06-7f07 r-xp 00000000 fe:00 3    /usr/lib/x86_64-linux-gnu/libc.so.6
            7f08-7f09 rw-p 00000000 00:01 4    /memfd:sfud (deleted)
            7f0a-7f0b rw-p 00000000 00:00 0
            """
        let mapped = DaemonLibraries.mapped(maps)
        #expect(
            mapped == [
                .init(name: "/usr/lib/x86_64-linux-gnu/libssl.so.3"),
                .init(name: "/usr/lib/x86_64-linux-gnu/libsrtp2.so.1", isReplaced: true),
            ]
        )
        let linked = DaemonLibraries.linked(
            """
            \tlinux-vdso.so.1 (0x00007ffd)
            \tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f00)
            \tlibgone.so.1 => not found
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f01)
            """
        )
        #expect(
            linked == [
                .init(name: "/lib/x86_64-linux-gnu/libssl.so.3"),
                .init(name: "libgone.so.1", isMissing: true),
            ]
        )
    }

    @Test(arguments: [
        ("10.1.2.3", true), ("172.31.0.1", true), ("172.32.0.1", false), ("192.168.1.1", true),
        ("100.64.0.1", true), ("100.128.0.1", false), ("203.0.113.7", false), ("fd00::1", true),
        ("2001:db8::1", false),
    ])
    func `private addresses are known`(_ text: String, _ isPrivate: Bool) throws {
        #expect(try #require(Address(text: text)).isPrivate == isPrivate)
    }
}
