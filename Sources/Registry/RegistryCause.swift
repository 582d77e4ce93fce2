internal import CNATS
import Foundation

extension RegistrySession {
    /// Says why this thread could not connect, and what to look at, from what the library has told
    /// it.
    ///
    /// No text has a password, a JWT or a seed: what the library says of URLs is left out.
    func cause(ofConnecting status: natsStatus) -> String {
        let detail = Self.detail(of: status)
        switch status {
        case NATS_CONNECTION_AUTH_FAILED:
            let given = settings.credentials.map { "the credentials in \($0)" }
            return "the server refuses \(given ?? "this node; it has no --nats-creds"): \(detail)"
        case NATS_PROTOCOL_ERROR, NATS_IO_ERROR, NATS_CONNECTION_CLOSED:
            // With TLS 1.3 a server looks at the client's certificate after the handshake, and
            // ends the connection without a word of the protocol.
            guard usesTLS else { return Self.text(status) }
            let certificate = settings.certificate.map { "the certificate in \($0)" }
            return "the server closes the connection; it may not accept "
                + (certificate ?? "a node without --nats-cert") + ": \(detail)"
        case NATS_SSL_ERROR where detail.contains("handshake") && settings.authority == nil:
            return "\(detail); there is no --nats-ca, so the system's certificates count"
        case NATS_SSL_ERROR, NATS_ERR: return detail
        default: return Self.text(status)
        }
    }

    /// Says why a call on a connection has failed.
    ///
    /// The library connects again by itself, and does not tell that it cannot read the credentials.
    func cause(ofCall status: natsStatus) -> String {
        guard let file = settings.credentials, !FileManager.default.isReadableFile(atPath: file)
        else { return Self.text(status) }
        return "\(Self.text(status)); the credentials in \(file) cannot be read"
    }

    /// Whether TLS is asked for; a server may turn it on by itself.
    private var usesTLS: Bool {
        settings.authority != nil || settings.certificate != nil || settings.urls.contains("tls://")
    }

    /// Returns what the library says beside the status, without the line of its source.
    private static func detail(of status: natsStatus) -> String {
        var last = NATS_OK
        let words = unsafe nats_GetLastError(&last).map { unsafe String(cString: $0) } ?? ""
        // Of other statuses it may be what was wrong earlier.
        guard last == status, !words.isEmpty else { return text(status) }
        guard words.hasPrefix("("), let end = words.firstRange(of: "): ") else { return words }
        return String(words[end.upperBound...])
    }

    private static func text(_ status: natsStatus) -> String {
        unsafe natsStatus_GetText(status).map { unsafe String(cString: $0) } ?? "unknown"
    }
}
