import Contract
import ControlPlane
import Foundation
import LiveStream
import Recording
import SFU
import Sockets
import WorkerInterface

/// What an operator may choose; `docs/operating.md` and `docs/limits.md` explain each.
package struct Configuration: Equatable {
    enum EngineChoice: String, CaseIterable {
        case auto, libsrtp2
        case ipsecMB = "ipsec-mb"
    }

    /// Path of the IPC socket.
    var ipc: String
    /// Where the first worker listens; the others take the ports above.
    var udp: [Address] = [Address(ipv4: 0, port: 5004)]
    /// Where the first worker takes TCP connections, likewise; empty: nowhere.
    var tcp: [Address] = []
    /// Addresses that answers name instead of those listened on; their ports are 0.
    var announce: [Address] = []
    package var workers: Int
    var http: Address?
    var logLevel = LogLevel.info
    var engine = EngineChoice.auto
    /// Where recordings go; an absolute path.
    var recordings: String
    /// What the URLs of live streams may begin with.
    var streamingSchemes = Self.streamingSchemes
    /// Whom live streams over `rtmps` trust, an absolute path; `nil`: whom the system does.
    var streamingAuthority: String?
    /// Where plain RTP may go.
    var tapNetworks = Network.loopback
    package var limits = Limits()

    /// Bounds of all parts; the keys are in `ConfigurationLimit`.
    package struct Limits: Equatable {
        var core = CoreLimits()
        var control = ControlLimits()
        var ipc = IPCLimits()
        var buffers = UDPSocket.Buffers()
        var sendQueue = SendQueueLimits()
        var streams = StreamLimits()
        var recording = RecordingLimits()
        var streaming = StreamingLimits()
    }

    /// The defaults, as this user on this machine gets them.
    package init(
        environment: [String: String],
        userID: UInt32,
        cores: Int,
        directory: String = FileManager.default.currentDirectoryPath
    ) {
        recordings = Self.absolute("recordings", in: directory)
        if let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") {
            ipc = directory + "/sfud.sock"
        } else {
            ipc = "/tmp/sfud-\(userID).sock"
        }
        workers = max(1, min(cores, Self.maximumWorkers))
    }

    static func `default`() -> Self {
        Self(
            environment: ProcessInfo.processInfo.environment,
            userID: getuid(),
            cores: ProcessInfo.processInfo.activeProcessorCount
        )
    }

    /// Checks what no single value can tell.
    func validate() throws(ConfigurationError) {
        try checkPorts(udp, of: .udp)
        try checkPorts(tcp, of: .tcp)
        guard limits.core.livenessMilliseconds < limits.core.timeoutMilliseconds else {
            throw ConfigurationError(
                key: "timeout-seconds",
                reason: "must be greater than liveness-seconds"
            )
        }
    }

    private func checkPorts(
        _ addresses: [Address],
        of key: ConfigurationKey
    ) throws(ConfigurationError) {
        for address in addresses where address.port != 0 {
            guard Int(address.port) + workers - 1 <= Int(UInt16.max) else {
                throw ConfigurationError(
                    key: key.rawValue,
                    reason: "\(address.endpointText) leaves no ports for \(workers) workers"
                )
            }
        }
    }

    /// The path from the root; `directory` is where relative ones begin.
    static func absolute(_ path: String, in directory: String) -> String {
        let whole = path.hasPrefix("/") ? path : "\(directory)/\(path)"
        return URL(fileURLWithPath: whole).standardized.path
    }

    package static let maximumWorkers = 64
    /// What libavformat is trusted with.
    static let streamingSchemes = ["rtmp", "rtmps"]
}

/// A setting that cannot be: one line for the operator, naming the key.
package struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    /// A flag without its dashes, or a key of the file.
    var key: String
    var reason: String

    package var description: String { "\(key): \(reason)" }
}
