import RTP
import WorkerInterface

/// Negotiated ICE and DTLS parameters.
struct NegotiatedTransport: Sendable, Codable {
    private(set) var ice: ICECredentials
    private(set) var role: DTLSRole
    private(set) var fingerprints: [Fingerprint]

    /// Negotiates the parameters from the attributes at `line` of the offer.
    ///
    /// `previous` holds the parameters of the previous offer, if any. An ICE restart creates new
    /// local credentials. The DTLS association outlives every offer: an offer that would end it
    /// (RFC 8842 §4) is refused, and the client has to create a new transport.
    init(
        _ offered: TransportAttributes,
        line: Int,
        previous: Self?,
        random: inout some RandomNumberGenerator
    ) throws(SDPError) {
        guard let fragment = offered.fragment else {
            throw SDPError(line: line, cause: "ice-ufrag is missing")
        }
        guard let password = offered.password else {
            throw SDPError(line: line, cause: "ice-pwd is missing")
        }
        fingerprints = try Self.fingerprints(offered, line: line)
        role = try Self.role(offered.setup, line: line, previous: previous?.role)
        if let previous {
            guard Set(previous.fingerprints) == Set(fingerprints) else {
                throw SDPError(
                    line: line,
                    cause: "fingerprint has changed: this needs a new transport"
                )
            }
            let old = previous.ice
            let hasNewFragment = old.remoteFragment != fragment
            guard hasNewFragment == (old.remotePassword != password) else {
                // RFC 8839 §4.4.1.1.1
                throw SDPError(
                    line: line,
                    cause: "of ice-ufrag and ice-pwd only one has changed"
                )
            }
            guard hasNewFragment else {
                ice = old
                return
            }
        }
        ice = ICECredentials(
            localFragment: RandomText.ice(count: 8, random: &random),
            localPassword: RandomText.ice(count: 24, random: &random),
            remoteFragment: fragment,
            remotePassword: password
        )
    }

    /// Whether attributes have the same fingerprints, or none that can be read.
    func hasFingerprints(of attributes: TransportAttributes) -> Bool {
        guard let others = try? Self.fingerprints(attributes, line: 0) else { return true }
        return Set(others) == Set(fingerprints)
    }

    /// Returns the fingerprints with a supported hash function; any of them may match (RFC 8122
    /// §5).
    private static func fingerprints(
        _ offered: TransportAttributes,
        line: Int
    ) throws(SDPError) -> [Fingerprint] {
        let fingerprints = offered.fingerprints.compactMap { attribute -> Fingerprint? in
            let algorithm: Fingerprint.Algorithm
            switch attribute.hash {
            case "sha-256": algorithm = .sha256
            case "sha-384": algorithm = .sha384
            case "sha-512": algorithm = .sha512
            default: return nil
            }
            return Fingerprint(algorithm: algorithm, digest: attribute.digest)
        }
        guard !fingerprints.isEmpty else {
            throw SDPError(line: line, cause: "no fingerprint by sha-256, sha-384 or sha-512")
        }
        return fingerprints
    }

    /// Returns our DTLS role: server if the client leaves the choice, so that sfud selects the SRTP
    /// profile.
    private static func role(
        _ setup: Setup?,
        line: Int,
        previous: DTLSRole?
    ) throws(SDPError) -> DTLSRole {
        let role: DTLSRole
        switch setup {
        // RFC 4145 §4: a missing attribute means active.
        case .active, nil: role = .server
        case .passive: role = .client
        case .actpass: role = previous ?? .server
        case .holdconn: throw SDPError(line: line, cause: "setup:holdconn has no meaning here")
        }
        guard previous == nil || previous == role else {
            throw SDPError(
                line: line,
                cause: "the DTLS role has changed: this needs a new transport"
            )
        }
        return role
    }
}

extension TransportAttributes {
    /// Returns these attributes with missing ones taken from `other`.
    func completed(by other: Self) -> Self {
        var result = self
        // Fragment and password belong together.
        if result.fragment == nil, result.password == nil {
            result.fragment = other.fragment
            result.password = other.password
        }
        if result.fingerprints.isEmpty { result.fingerprints = other.fingerprints }
        result.setup = result.setup ?? other.setup
        return result
    }
}
