import ControlPlane
import Foundation
import Nodes
import RTP
import SFU
import WorkerInterface

/// Setting that is both a command-line flag and a key of the configuration file.
package enum ConfigurationKey: String, CaseIterable {
    case ipc, udp, tcp, announce, workers, http
    case logLevel = "log-level"
    case srtpEngine = "srtp-engine"
    case livenessSeconds = "liveness-seconds"
    case timeoutSeconds = "timeout-seconds"
    case recordings
    case streamingSchemes = "streaming-schemes"
    case streamingCA = "streaming-ca"
    case tapNetworks = "tap-networks"
    case nats, node, link
    case linkAnnounce = "link-announce"
    case region
    case natsCreds = "nats-creds"
    case natsCA = "nats-ca"
    case natsCert = "nats-cert"
    case natsKey = "nats-key"
    case natsReplicas = "nats-replicas"

    /// Finds the setting for a key of the file, written `log-level` or, needing no quotes,
    /// `logLevel`.
    init?(fileKey: String) {
        guard
            let key = Self.allCases.first(where: { $0.rawValue == fileKey || $0.camel == fileKey })
        else { return nil }
        self = key
    }

    var camel: String {
        let words = rawValue.split(separator: "-")
        return words.dropFirst().reduce(String(words[0])) { $0 + $1.capitalized }
    }

    /// Whether the setting may be repeated on the command line, or be a list in the file.
    var isList: Bool {
        switch self {
        case .udp, .tcp, .announce, .streamingSchemes, .tapNetworks: true
        case .ipc, .http, .workers, .logLevel, .srtpEngine, .livenessSeconds, .timeoutSeconds,
            .recordings, .streamingCA, .nats, .node, .link, .linkAnnounce, .region, .natsCreds,
            .natsCA, .natsCert, .natsKey, .natsReplicas:
            false
        }
    }

    var placeholder: String {
        switch self {
        case .ipc: "PATH"
        case .recordings: "DIR"
        case .streamingSchemes: "SCHEME"
        case .streamingCA, .natsCreds, .natsCA, .natsCert, .natsKey: "FILE"
        case .nats: "URL"
        case .node, .region: "NAME"
        case .tapNetworks: "NETWORK"
        case .udp, .tcp, .http, .link, .linkAnnounce: "ADDR:PORT"
        case .announce: "IP"
        case .workers, .natsReplicas: "N"
        case .logLevel: "LEVEL"
        case .srtpEngine: "ENGINE"
        case .livenessSeconds, .timeoutSeconds: "SECONDS"
        }
    }

    var summary: String {
        switch self {
        case .ipc: "Unix socket for signalling servers"
        case .udp: "listen here for media; may be repeated. Worker n takes PORT + n"
        case .tcp: "take TCP here for blocked UDP; may be repeated. Worker n: PORT + n"
        case .announce: "name this address in answers instead (NAT); may be repeated"
        case .workers: "threads that carry media, 1 to \(Configuration.maximumWorkers)"
        case .http: "serve /metrics, /healthz, /readyz here"
        case .logLevel: "debug, info, warning or error"
        case .srtpEngine: "auto, libsrtp2 or ipsec-mb"
        case .livenessSeconds: "silence after which a participant is reconnecting"
        case .timeoutSeconds: "silence after which a participant is disconnected"
        case .recordings: "each recording gets a directory of its own in this one"
        case .streamingSchemes: "where live streams may go: rtmp, rtmps; may be repeated"
        case .streamingCA: "PEM certificates that rtmps servers' are signed with"
        case .tapNetworks: "where plain RTP may go, as 10.0.0.0/8; may be repeated"
        case .nats: "share rooms with other nodes, by these NATS servers (commas between)"
        case .node: "this node's name among them, with --nats"
        case .link: "take links of the other nodes here, with --nats"
        case .linkAnnounce: "tell the other nodes this address instead (NAT)"
        case .region: "where this node is; new rooms stay in the region"
        case .natsCreds: "NATS credentials: a file with a JWT and a seed"
        case .natsCA: "PEM certificates that NATS servers' are signed with"
        case .natsCert: "PEM certificate for the NATS servers"
        case .natsKey: "its key"
        case .natsReplicas: "NATS servers that keep each record, as the first node creates it"
        }
    }

    /// Returns the setting's value in `configuration` as it would be written after the flag.
    package func text(of configuration: Configuration) -> String {
        switch self {
        case .ipc: configuration.ipc
        case .udp: configuration.udp.map(\.endpointText).joined(separator: ", ")
        case .tcp:
            configuration.tcp.isEmpty
                ? "none" : configuration.tcp.map(\.endpointText).joined(separator: ", ")
        case .announce:
            configuration.announce.isEmpty
                ? "the addresses listened on"
                : configuration.announce.map(\.text).joined(separator: ", ")
        case .workers: "\(configuration.workers)"
        case .http: configuration.http?.endpointText ?? "none"
        case .logLevel: configuration.logLevel.rawValue
        case .srtpEngine: configuration.engine.rawValue
        case .livenessSeconds: seconds(configuration.limits.core.livenessMilliseconds)
        case .timeoutSeconds: seconds(configuration.limits.core.timeoutMilliseconds)
        case .recordings: configuration.recordings
        case .streamingSchemes: configuration.streamingSchemes.joined(separator: ", ")
        case .streamingCA: configuration.streamingAuthority ?? "the system's"
        case .tapNetworks: configuration.tapNetworks.map(\.text).joined(separator: ", ")
        // The URL may hold a password.
        case .nats: configuration.cluster.urls == nil ? "none" : "set"
        case .node: configuration.cluster.node?.rawValue ?? "none"
        case .link: configuration.cluster.link?.endpointText ?? "none"
        case .linkAnnounce:
            configuration.cluster.linkAnnounce?.endpointText ?? "the address listened on"
        case .region: configuration.cluster.region ?? "none"
        case .natsCreds: configuration.cluster.credentials ?? "none"
        case .natsCA: configuration.cluster.authority ?? "the system's"
        case .natsCert: configuration.cluster.certificate ?? "none"
        case .natsKey: configuration.cluster.key ?? "none"
        case .natsReplicas: "\(configuration.cluster.replicas)"
        }
    }

    private func seconds(_ milliseconds: Int64) -> String {
        milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000)" : "\(Double(milliseconds) / 1_000)"
    }
}

extension Configuration {
    /// Parses and sets one setting; only a list takes more than one value.
    mutating func set(_ key: ConfigurationKey, to values: [String]) throws(ConfigurationError) {
        guard let value = values.last else {
            throw ConfigurationError(key: key.rawValue, reason: "must not be empty")
        }
        guard key.isList || values.count == 1 else {
            throw ConfigurationError(key: key.rawValue, reason: "is given more than once")
        }
        func refuse(_ expected: String) -> ConfigurationError {
            ConfigurationError(key: key.rawValue, reason: "\"\(value)\" is not \(expected)")
        }
        switch key {
        case .ipc:
            guard !value.isEmpty, value.utf8.count <= Self.maximumPath, !value.contains("\0")
            else { throw refuse("a path of 1 to \(Self.maximumPath) bytes") }
            ipc = value
        case .udp: udp = try Self.list(key, values, "ADDR:PORT") { Address(endpoint: $0) }
        case .announce: announce = try Self.list(key, values, "an IP address", announced)
        case .tcp: tcp = try Self.list(key, values, "ADDR:PORT") { Address(endpoint: $0) }
        case .http:
            guard let address = Address(endpoint: value) else { throw refuse("ADDR:PORT") }
            http = address
        case .workers:
            guard let number = Int(value), (1...Self.maximumWorkers).contains(number) else {
                throw refuse("a number from 1 to \(Self.maximumWorkers)")
            }
            workers = number
        case .logLevel:
            guard let level = LogLevel(rawValue: value) else {
                throw refuse("debug, info, warning or error")
            }
            logLevel = level
        case .srtpEngine:
            guard let choice = EngineChoice(rawValue: value) else {
                throw refuse("auto, libsrtp2 or ipsec-mb")
            }
            engine = choice
        case .livenessSeconds: limits.core.livenessMilliseconds = try Self.seconds(key, value)
        case .timeoutSeconds: limits.core.timeoutMilliseconds = try Self.seconds(key, value)
        case .recordings:
            guard !value.isEmpty, value.utf8.count <= Self.maximumDirectory, !value.contains("\0")
            else { throw refuse("a path of 1 to \(Self.maximumDirectory) bytes") }
            let current = FileManager.default.currentDirectoryPath
            recordings = Self.absolute(value, in: current)
        case .streamingSchemes:
            guard values.allSatisfy(Self.streamingSchemes.contains) else {
                throw ConfigurationError(
                    key: key.rawValue,
                    reason: "only \(Self.streamingSchemes.joined(separator: ", ")) can be had"
                )
            }
            streamingSchemes = Self.streamingSchemes.filter(values.contains)
        case .streamingCA:
            let current = FileManager.default.currentDirectoryPath
            let path = Self.absolute(value, in: current)
            guard !value.contains("\0"), FileManager.default.isReadableFile(atPath: path) else {
                throw refuse("a file that can be read")
            }
            streamingAuthority = path
        case .tapNetworks: tapNetworks = try Self.networks(key, values)
        case .nats, .node, .link, .linkAnnounce, .region, .natsCreds, .natsCA, .natsCert, .natsKey,
            .natsReplicas:
            try cluster.set(key, to: value)
        }
    }

    private static func networks(
        _ key: ConfigurationKey,
        _ values: [String]
    ) throws(ConfigurationError) -> [IPNetwork] {
        var networks: [IPNetwork] = []
        for value in values {
            guard let network = IPNetwork(text: value) else {
                throw ConfigurationError(
                    key: key.rawValue,
                    reason: "\"\(value)\" is not a network, as 10.0.0.0/8 is one"
                )
            }
            networks.append(network)
        }
        guard networks.count <= maximumAddresses else {
            throw ConfigurationError(
                key: key.rawValue,
                reason: "more than \(maximumAddresses) networks"
            )
        }
        return networks
    }

    private static func list(
        _ key: ConfigurationKey,
        _ values: [String],
        _ expected: String,
        _ read: (String) -> Address?
    ) throws(ConfigurationError) -> [Address] {
        var addresses: [Address] = []
        for value in values {
            guard let address = read(value) else {
                throw ConfigurationError(
                    key: key.rawValue,
                    reason: "\"\(value)\" is not \(expected)"
                )
            }
            guard !addresses.contains(address) || address.port == 0 else {
                throw ConfigurationError(key: key.rawValue, reason: "\"\(value)\" is given twice")
            }
            addresses.append(address)
        }
        guard addresses.count <= maximumAddresses else {
            throw ConfigurationError(
                key: key.rawValue,
                reason: "more than \(maximumAddresses) addresses"
            )
        }
        return addresses
    }

    private func announced(_ text: String) -> Address? {
        guard let address = Address(text: text), !address.isWildcard else { return nil }
        return address
    }

    private static func seconds(
        _ key: ConfigurationKey,
        _ value: String
    ) throws(ConfigurationError) -> Int64 {
        guard let number = Double(value), (0.5...3_600).contains(number) else {
            throw ConfigurationError(
                key: key.rawValue,
                reason: "\"\(value)\" is not a number from 0.5 to 3600"
            )
        }
        return Int64((number * 1_000).rounded())
    }

    /// Longest IPC path in bytes: `sockaddr_un` has 108, and the lock file's name is longer by 5.
    private static let maximumPath = 100
    /// Longest path of the recordings' directory, in bytes.
    ///
    /// With the names of a recording's directory and file it stays below Linux's limit for paths.
    private static let maximumDirectory = 1_000
    private static let maximumAddresses = 16
}
