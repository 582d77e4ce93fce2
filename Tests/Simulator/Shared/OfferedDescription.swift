import RTP
import WorkerInterface

/// The session part and common lines of a simulated client's offer.
struct OfferedDescription {
    var version: Int
    var fragment: String
    var password: String
    var fingerprint: Fingerprint

    /// Returns the description of these sections, each given without the common lines.
    func text(of sections: [[String]]) -> String {
        let mids = sections.indices.map(String.init).joined(separator: " ")
        var lines = [
            "v=0", "o=- 1 \(version) IN IP4 127.0.0.1", "s=-", "t=0 0",
            "a=group:BUNDLE \(mids)",
        ]
        let digest = FingerprintAttribute(hash: "sha-256", digest: fingerprint.digest).digestText
        for (mid, section) in sections.enumerated() {
            lines += section
            lines += [
                "c=IN IP4 0.0.0.0", "a=mid:\(mid)", "a=ice-ufrag:\(fragment)",
                "a=ice-pwd:\(password)", "a=fingerprint:sha-256 \(digest)", "a=setup:actpass",
                "a=rtcp-mux", "a=rtcp-rsize",
            ]
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }
}
