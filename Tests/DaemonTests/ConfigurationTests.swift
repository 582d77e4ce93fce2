import ControlPlane
import SFU
import Testing
import WorkerInterface

@testable import Daemon
@testable import Rooms

struct ConfigurationTests {
    static let defaults = Configuration(environment: [:], userID: 7, cores: 2)

    static func invocation(
        _ arguments: [String],
        file: String = "{}"
    ) throws(ConfigurationError) -> Invocation {
        try CommandLineOptions.invocation(arguments, defaults: defaults) { _ in Array(file.utf8) }
    }

    static func configuration(
        _ arguments: [String],
        file: String? = nil
    ) throws -> Configuration? {
        let config = file == nil ? [] : ["--config", "file"]
        switch try invocation(config + arguments, file: file ?? "") {
        case .run(let configuration), .checkConfiguration(let configuration): return configuration
        case .help, .version: return nil
        }
    }

    struct Refusal: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var arguments: [String] = []
        var file: String?
        var key: String
        var reason: String
    }

    static let refusals = [
        Refusal(
            testDescription: "unknown flag",
            arguments: ["--upd", "1"],
            key: "--upd",
            reason: "unknown flag; see --help"
        ),
        Refusal(
            testDescription: "positional",
            arguments: ["start"],
            key: "start",
            reason: "unknown flag; see --help"
        ),
        Refusal(
            testDescription: "single dash",
            arguments: ["-ipc", "x"],
            key: "-ipc",
            reason: "unknown flag; see --help"
        ),
        Refusal(
            testDescription: "no value",
            arguments: ["--udp"],
            key: "udp",
            reason: "needs a value"
        ),
        Refusal(
            testDescription: "twice",
            arguments: ["--workers", "1", "--workers", "2"],
            key: "workers",
            reason: "is given more than once"
        ),
        Refusal(
            testDescription: "no port",
            arguments: ["--udp", "127.0.0.1"],
            key: "udp",
            reason: "\"127.0.0.1\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "a network with bits behind its length",
            arguments: ["--tap-networks", "10.0.0.1/8"],
            key: "tap-networks",
            reason: "\"10.0.0.1/8\" is not a network, as 10.0.0.0/8 is one"
        ),
        Refusal(
            testDescription: "certificates that are not there",
            arguments: ["--streaming-ca", "/nowhere/ca.pem"],
            key: "streaming-ca",
            reason: "\"/nowhere/ca.pem\" is not a file that can be read"
        ),
        Refusal(
            testDescription: "a name",
            arguments: ["--udp", "localhost:5004"],
            key: "udp",
            reason: "\"localhost:5004\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "IPv6 without brackets",
            arguments: ["--udp", "::1:5004"],
            key: "udp",
            reason: "\"::1:5004\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "port too large",
            arguments: ["--http", "127.0.0.1:65536"],
            key: "http",
            reason: "\"127.0.0.1:65536\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "signed port",
            arguments: ["--http", "127.0.0.1:+80"],
            key: "http",
            reason: "\"127.0.0.1:+80\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "no room for the workers' ports",
            arguments: ["--udp", "127.0.0.1:65535", "--workers", "2"],
            key: "udp",
            reason: "127.0.0.1:65535 leaves no ports for 2 workers"
        ),
        Refusal(
            testDescription: "one address twice",
            arguments: ["--udp", "127.0.0.1:1", "--udp", "127.0.0.1:1"],
            key: "udp",
            reason: "\"127.0.0.1:1\" is given twice"
        ),
        Refusal(
            testDescription: "announced wildcard",
            arguments: ["--announce", "0.0.0.0"],
            key: "announce",
            reason: "\"0.0.0.0\" is not an IP address"
        ),
        Refusal(
            testDescription: "TCP without a port",
            arguments: ["--tcp", "127.0.0.1"],
            key: "tcp",
            reason: "\"127.0.0.1\" is not ADDR:PORT"
        ),
        Refusal(
            testDescription: "no TCP ports for all workers",
            arguments: ["--workers", "2", "--tcp", "127.0.0.1:65535"],
            key: "tcp",
            reason: "127.0.0.1:65535 leaves no ports for 2 workers"
        ),
        Refusal(
            testDescription: "no workers",
            arguments: ["--workers", "0"],
            key: "workers",
            reason: "\"0\" is not a number from 1 to 64"
        ),
        Refusal(
            testDescription: "level",
            arguments: ["--log-level", "loud"],
            key: "log-level",
            reason: "\"loud\" is not debug, info, warning or error"
        ),
        Refusal(
            testDescription: "engine",
            arguments: ["--srtp-engine", "nss"],
            key: "srtp-engine",
            reason: "\"nss\" is not auto, libsrtp2 or ipsec-mb"
        ),
        Refusal(
            testDescription: "not a number",
            arguments: ["--timeout-seconds", "nan"],
            key: "timeout-seconds",
            reason: "\"nan\" is not a number from 0.5 to 3600"
        ),
        Refusal(
            testDescription: "times the wrong way round",
            arguments: ["--liveness-seconds", "30"],
            key: "timeout-seconds",
            reason: "must be greater than liveness-seconds"
        ),
        Refusal(
            testDescription: "empty path",
            arguments: ["--ipc="],
            key: "ipc",
            reason: "\"\" is not a path of 1 to 100 bytes"
        ),
        Refusal(
            testDescription: "unknown key",
            file: "{worker: 2}",
            key: "worker",
            reason: "unknown key"
        ),
        Refusal(
            testDescription: "one key twice",
            file: "{'log-level': 'info', logLevel: 'debug'}",
            key: "log-level",
            reason: "is given more than once"
        ),
        Refusal(
            testDescription: "list for one value",
            file: "{workers: [1]}",
            key: "workers",
            reason: "must be text or a number"
        ),
        Refusal(
            testDescription: "null",
            file: "{udp: null}",
            key: "udp",
            reason: "must be text or a list of texts"
        ),
        Refusal(
            testDescription: "empty list",
            file: "{udp: []}",
            key: "udp",
            reason: "must not be empty"
        ),
        Refusal(
            testDescription: "fraction of a worker",
            file: "{workers: 1.5}",
            key: "workers",
            reason: "\"1.5\" is not a number from 1 to 64"
        ),
        Refusal(
            testDescription: "unknown limit",
            file: "{limits: {room: 1}}",
            key: "limits.room",
            reason: "unknown key"
        ),
        Refusal(
            testDescription: "limit out of range",
            file: "{limits: {rooms: 0}}",
            key: "limits.rooms",
            reason: "must be a number from 1 to 1000000"
        ),
        Refusal(
            testDescription: "limit as text",
            file: "{limits: {rooms: '5'}}",
            key: "limits.rooms",
            reason: "must be a number from 1 to 1000000"
        ),
        Refusal(
            testDescription: "limits of another kind",
            file: "{limits: 5}",
            key: "limits",
            reason: "must be an object"
        ),
        Refusal(
            testDescription: "not JSON5",
            file: "{udp: ",
            key: "config",
            reason: "the file is not valid JSON5: line 1: the text ends early"
        ),
        Refusal(
            testDescription: "not JSON5 on the third line",
            file: "{\n  workers: 2, // all\n  udp '127.0.0.1:0',\n}",
            key: "config",
            reason: "the file is not valid JSON5: line 3: a key is followed by :"
        ),
        Refusal(
            testDescription: "one name twice",
            file: "{\r\n  workers: 2,\r\n  workers: 3,\r\n}",
            key: "config",
            reason: "the file is not valid JSON5: line 3: a key stands twice in one object"
        ),
        Refusal(
            testDescription: "infinity",
            file: "{timeoutSeconds: Infinity}",
            key: "config",
            reason: "the file is not valid JSON5: line 1: no value starts so"
        ),
        Refusal(
            testDescription: "half an exponent",
            file: "{workers: 4E-, http: '1'}",
            key: "config",
            reason: "the file is not valid JSON5: line 1: a digit is missing"
        ),
        Refusal(
            testDescription: "half an exponent behind a text with a quote and a comment",
            file: "{ipc: 'it\\'s // 1e-', /* ' */ limits: {rooms: 1.e+}, // \"\n}",
            key: "config",
            reason: "the file is not valid JSON5: line 1: a digit is missing"
        ),
        Refusal(
            testDescription: "what looks like half an exponent in texts, comments and names",
            file: "{/* 4e- */ tape: 'host1e-a', // 2E+\n}",
            key: "tape",
            reason: "unknown key"
        ),
        Refusal(
            testDescription: "a whole exponent",
            file: "{limits: {rooms: 1e+7}}",
            key: "limits.rooms",
            reason: "must be a number from 1 to 1000000"
        ),
        Refusal(
            testDescription: "empty file",
            file: "",
            key: "config",
            reason: "the file is not valid JSON5: line 1: the text ends early"
        ),
        Refusal(
            testDescription: "no object",
            file: "[1]",
            key: "config",
            reason: "the file must hold one object"
        ),
    ]

    @Test(arguments: refusals)
    func `one line names the key`(_ refusal: Refusal) {
        #expect(throws: ConfigurationError(key: refusal.key, reason: refusal.reason)) {
            try Self.configuration(refusal.arguments, file: refusal.file)
        }
    }

    /// Inputs that have made readers trap; fuzzing found the first.
    @Test(arguments: [
        Array("{ud".utf8) + [0xfa] + Array(":1}".utf8), [0x7b, 0xf0, 0x9f], [0x7b, 0x22, 0xc3],
        [0xff], [0x7b, 0xed, 0xa0, 0x80, 0x3a, 0x31, 0x7d],
    ])
    func `a file that is not UTF-8 is refused`(text: [UInt8]) {
        var configuration = Configuration(environment: [:], userID: 0, cores: 1)
        let expected = ConfigurationError(key: "config", reason: "the file is not UTF-8")
        #expect(throws: expected) { try configuration.apply(file: text) }
    }

    @Test
    func `the file is JSON5 with a key for each flag, and limits`() throws {
        let file = """
            { // every key
              ipc: '/run/sfud/ipc', udp: ['127.0.0.1:6000', "[::1]:6000"], announce: '192.0.2.1',
              workers: 3, http: '127.0.0.1:9100', 'log-level': 'debug', srtpEngine: 'libsrtp2',
              livenessSeconds: 1.5, 'timeout-seconds': 4.0,
              limits: { rooms: 1.2e1, packetPool: 2048, ipcOutputBytes: 0x10000, },
            }
            """
        let configuration = try #require(try Self.configuration([], file: file))
        #expect(configuration.ipc == "/run/sfud/ipc")
        #expect(configuration.udp.map(\.endpointText) == ["127.0.0.1:6000", "[::1]:6000"])
        #expect(configuration.announce.map(\.text) == ["192.0.2.1"])
        #expect(configuration.workers == 3)
        #expect(configuration.http?.endpointText == "127.0.0.1:9100")
        #expect(configuration.logLevel == .debug)
        #expect(configuration.engine == .libsrtp2)
        #expect(configuration.limits.core.livenessMilliseconds == 1_500)
        #expect(configuration.limits.core.timeoutMilliseconds == 4_000)
        #expect(configuration.limits.control.rooms == 12)
        #expect(configuration.limits.core.packetPool == 2_048)
        #expect(configuration.limits.ipc.outputBytes == 65_536)
    }

    @Test
    func `a flag wins over the file, which wins over the default`() throws {
        let file = "{workers: 3, logLevel: 'error', udp: ['127.0.0.1:1', '127.0.0.1:2']}"
        let arguments = ["--workers=5", "--udp", "127.0.0.1:9"]
        let configuration = try #require(try Self.configuration(arguments, file: file))
        #expect(configuration.workers == 5)
        #expect(configuration.udp.map(\.endpointText) == ["127.0.0.1:9"])
        #expect(configuration.logLevel == .error)
        #expect(configuration.ipc == "/tmp/sfud-7.sock")
    }

    @Test
    func `defaults need no file`() throws {
        let plain = try #require(try Self.configuration([]))
        #expect(plain == Self.defaults)
        #expect(plain.udp.map(\.endpointText) == ["0.0.0.0:5004"])
        #expect(plain.workers == 2)
        let environment = ["XDG_RUNTIME_DIR": "/run/user/7"]
        let session = Configuration(environment: environment, userID: 7, cores: 4)
        #expect(session.ipc == "/run/user/7/sfud.sock")
    }

    @Test
    func `help names every flag with its default`() throws {
        #expect(try Self.invocation(["--help"]) == .help)
        #expect(try Self.invocation(["--version"]) == .version)
        #expect(try Self.invocation(["--check-config"]) == .checkConfiguration(Self.defaults))
        let help = CommandLineOptions.help(Self.defaults)
        for key in ConfigurationKey.allCases {
            #expect(help.contains("--\(key.rawValue) \(key.placeholder)"))
            #expect(help.contains("(default: \(key.text(of: Self.defaults)))"))
        }
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 100 })
    }
}
