import Contract
import ControlPlane
import Foundation
import Kernel
import LiveStream
import Recording
import SFU
import Sockets
import WorkerInterface

/// Settings that an operator may change; `docs/operating.md` and `docs/limits.md` explain each.
package struct Configuration: Equatable {
    enum EngineChoice: String, CaseIterable {
        case auto, libsrtp2
        case ipsecMB = "ipsec-mb"
    }

    /// Path of the IPC socket.
    var ipc: String
    /// Addresses where the first worker listens for UDP; worker n adds n to each nonzero port.
    var udp: [Address] = [Address(ipv4: 0, port: 5004)]
    /// Addresses where the first worker listens for TCP, likewise; empty disables TCP.
    var tcp: [Address] = []
    /// Addresses that SDP answers name instead of the bound ones; their ports are 0.
    var announce: [Address] = []
    package var workers: Int
    var http: Address?
    var logLevel = LogLevel.info
    var engine = EngineChoice.auto
    /// Absolute path of the directory for recordings.
    var recordings: String
    /// URL schemes allowed for live streams.
    var streamingSchemes = Self.streamingSchemes
    /// Absolute path of the PEM file of CA certificates trusted for `rtmps`; `nil` uses the
    /// system's.
    var streamingAuthority: String?
    /// Networks to which plain RTP may be forwarded.
    var tapNetworks = IPNetwork.loopback
    /// Other nodes to share rooms with; without it nothing of a cluster exists.
    var cluster = ClusterSettings()
    package var limits = Limits()

    /// Limits of all parts; `ConfigurationLimit` lists their keys.
    package struct Limits: Equatable {
        var core = CoreLimits()
        var control = ControlLimits()
        var ipc = IPCLimits()
        var buffers = UDPSocket.Buffers()
        var sendQueue = SendQueueLimits()
        var streams = TCPConnectionLimits()
        var recording = RecordingLimits()
        var streaming = StreamingLimits()
    }

    /// Creates the default settings for a user and a machine.
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

    /// Checks constraints that involve several settings.
    func validate() throws(ConfigurationError) {
        try checkPorts(udp, of: .udp)
        try checkPorts(tcp, of: .tcp)
        try cluster.validate()
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

    /// Number of descriptors that go to the next life: sockets, the lock, and some more.
    var handedDescriptors: Int {
        min(workers * (udp.count + tcp.count) + 16, HandoverProgram.descriptorLimit)
    }

    /// Returns an absolute path; a relative one is resolved against `directory`.
    static func absolute(_ path: String, in directory: String) -> String {
        let whole = path.hasPrefix("/") ? path : "\(directory)/\(path)"
        return URL(fileURLWithPath: whole).standardized.path
    }

    package static let maximumWorkers = 64
    /// URL schemes that libavformat is allowed to open.
    static let streamingSchemes = ["rtmp", "rtmps"]
}

/// Invalid setting, described in one line that begins with its key.
package struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    /// Name of the flag without its dashes, or key of the file.
    var key: String
    var reason: String

    package var description: String { "\(key): \(reason)" }
}
