import Foundation
import Nodes
import Registry
import WorkerInterface

/// Settings of a node that shares rooms with others.
struct ClusterSettings: Equatable {
    /// URLs of the NATS servers, with commas between them; a password in them is never shown.
    var urls: String?
    var node: NodeName?
    /// Address where links are taken, and where the other nodes reach it, if that is another one.
    var link: Address?
    var linkAnnounce: Address?
    var region: String?
    var credentials: String?
    var authority: String?
    var certificate: String?
    var key: String?
    /// NATS servers that keep each record of the cluster.
    var replicas = 1

    /// Parses and sets one setting.
    mutating func set(_ setting: ConfigurationKey, to value: String) throws(ConfigurationError) {
        func refuse(_ reason: String) -> ConfigurationError {
            ConfigurationError(key: setting.rawValue, reason: reason)
        }
        func file() throws(ConfigurationError) -> String {
            let current = FileManager.default.currentDirectoryPath
            let path = Configuration.absolute(value, in: current)
            let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
            let attributes = try? FileManager.default.attributesOfItem(atPath: target)
            guard !value.contains("\0"), FileManager.default.isReadableFile(atPath: path),
                attributes?[.type] as? FileAttributeType != .typeDirectory
            else {
                throw refuse("\"\(value)\" is not a file that can be read")
            }
            return path
        }
        switch setting {
        case .nats:
            guard Self.areURLs(value) else {
                throw refuse("must be 1 to 16 URLs as nats://HOST:4222, with commas between them")
            }
            urls = value
        case .node:
            guard let name = NodeName(rawValue: value) else {
                throw refuse("\"\(value)\" is not a name of 1 to 64 of A-Z a-z 0-9 _ -")
            }
            node = name
        case .link:
            guard let address = Address(endpoint: value) else {
                throw refuse("\"\(value)\" is not ADDR:PORT")
            }
            link = address
        case .linkAnnounce:
            guard let address = Address(endpoint: value), address.port != 0 else {
                throw refuse("\"\(value)\" is not ADDR:PORT")
            }
            guard !address.isWildcard else { throw Self.unreachable(setting, address) }
            linkAnnounce = address
        case .region:
            guard NodeName(rawValue: value) != nil else {
                throw refuse("\"\(value)\" is not a name of 1 to 64 of A-Z a-z 0-9 _ -")
            }
            region = value
        case .natsCreds: credentials = try file()
        case .natsCA: authority = try file()
        case .natsCert: certificate = try file()
        case .natsKey: key = try file()
        case .natsReplicas:
            guard let number = Int(value), (1...5).contains(number) else {
                throw refuse("\"\(value)\" is not a number from 1 to 5")
            }
            replicas = number
        case .ipc, .udp, .tcp, .announce, .workers, .http, .logLevel, .srtpEngine,
            .livenessSeconds, .timeoutSeconds, .recordings, .streamingSchemes, .streamingCA,
            .tapNetworks:
            preconditionFailure("no setting of a cluster")
        }
    }

    private static func unreachable(
        _ setting: ConfigurationKey,
        _ address: Address
    ) -> ConfigurationError {
        ConfigurationError(
            key: setting.rawValue,
            reason: "\"\(address.endpointText)\" is not an address that other nodes can connect to"
        )
    }

    private static func areURLs(_ text: String) -> Bool {
        let urls = text.split(separator: ",", omittingEmptySubsequences: false)
        return (1...16).contains(urls.count) && text.utf8.count <= 4_096
            && urls.allSatisfy { url in
                let host = url.split(separator: "://", maxSplits: 1).last ?? ""
                return (url.hasPrefix("nats://") || url.hasPrefix("tls://")) && !host.isEmpty
                    && url.utf8.allSatisfy { (0x21...0x7e).contains($0) }
            }
    }

    /// Checks that what belongs together is set.
    func validate() throws(ConfigurationError) {
        guard urls != nil else {
            let others: [(String, Bool)] = [
                ("node", node != nil), ("link", link != nil),
                ("link-announce", linkAnnounce != nil), ("region", region != nil),
                ("nats-creds", credentials != nil), ("nats-ca", authority != nil),
                ("nats-cert", certificate != nil), ("nats-key", key != nil),
                ("nats-replicas", replicas != 1),
            ]
            if let (name, _) = others.first(where: \.1) {
                throw ConfigurationError(key: name, reason: "needs --nats")
            }
            return
        }
        guard node != nil else {
            throw ConfigurationError(key: "nats", reason: "needs --node, this node's name")
        }
        guard let link else {
            throw ConfigurationError(key: "nats", reason: "needs --link, where nodes connect")
        }
        guard !link.isWildcard || linkAnnounce != nil else { throw Self.unreachable(.link, link) }
        if (certificate == nil) != (key == nil) {
            let missing = certificate == nil ? "nats-cert" : "nats-key"
            let given = certificate == nil ? "nats-key" : "nats-cert"
            throw ConfigurationError(key: given, reason: "needs --\(missing)")
        }
    }

    /// Settings of the registry's client; `nil` without a cluster.
    var registry: RegistrySettings? {
        guard let urls else { return nil }
        var settings = RegistrySettings(urls: urls)
        settings.credentials = credentials
        settings.authority = authority
        settings.certificate = certificate
        settings.key = key
        settings.replicas = replicas
        return settings
    }
}
