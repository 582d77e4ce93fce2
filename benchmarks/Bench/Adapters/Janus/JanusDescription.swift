import JSON
import RTP
import WorkerInterface

/// A session description from Janus, answer or offer.
struct JanusDescription {
    let remote: RemoteTransport
    private let session: SessionDescription

    /// Parses the `jsep` of an event.
    init(_ event: JSON) throws {
        guard let text = event["jsep"]?["sdp"]?.string else {
            throw AdapterError("Janus: no session description")
        }
        let session: SessionDescription
        do throws(SDPError) {
            session = try SessionDescription(text)
        } catch {
            throw AdapterError("Janus: bad SDP in line \(error.line)")
        }
        guard let first = session.media.first,
            let fragment = first.transport.fragment ?? session.transport.fragment,
            let password = first.transport.password ?? session.transport.password,
            let fingerprint = (first.transport.fingerprints + session.transport.fingerprints)
                .first(where: { $0.hash == "sha-256" }),
            let address = Self.loopbackCandidate(in: text)
        else { throw AdapterError("Janus: no transport on loopback in its description") }
        // `setup` is `actpass` in an offer, or `passive` in an answer to our `active`.
        guard first.transport.setup != .active else {
            throw AdapterError("Janus: it insists on being the DTLS client")
        }
        self.session = session
        remote = RemoteTransport(
            security: .full(
                RemoteCredentials(
                    fragment: fragment,
                    password: password,
                    fingerprint: Fingerprint(algorithm: .sha256, digest: fingerprint.digest),
                    localDTLSRole: .client,
                    isControlling: true
                )
            ),
            address: address
        )
    }

    /// Packet format for a publisher whose offer this answers.
    var sendFormat: SendFormat {
        SendFormat(audio: line(.audio), video: line(.video))
    }

    private func line(_ medium: Medium) -> SendFormat.Line? {
        guard let line = session.media.first(where: { $0.mid == medium.mid }),
            let format = line.formats.first
        else { return nil }
        var extensions = ExtensionMap()
        for item in line.extensions {
            guard let kind = ExtensionKind(uri: item.uri) else { continue }
            extensions[kind] = UInt8(clamping: item.id)
        }
        return SendFormat.Line(
            mid: medium.mid,
            payloadType: format.payloadType,
            rtxPayloadType: line.formats.first { $0.isNamed("rtx") }?.payloadType,
            extensions: extensions
        )
    }

    /// Answers this offer, accepting every stream with the features that clients of sfud use.
    ///
    /// Header extensions are left out if the answer would exceed the limit of a request.
    func answer(_ local: LocalTransport) -> String {
        let whole = answer(local, withExtensions: true)
        return whole.utf8.count <= Self.longestAnswer ? whole : answer(local, withExtensions: false)
    }

    private func answer(_ local: LocalTransport, withExtensions: Bool) -> String {
        let lines = session.media.map { offered in
            let formats = offered.formats.map { format in
                var taken = format
                taken.feedback = format.feedback.filter { $0.hasPrefix("nack") }
                if !format.isNamed("rtx") { taken.parameters = "" }
                return taken
            }
            var line = MediaDescription(mid: offered.mid ?? "", formats, .recvonly)
            line.extensions = offered.extensions.filter { item in
                withExtensions && ExtensionKind(uri: item.uri) != nil
            }
            return line
        }
        return SessionDescription(lines, local).text
    }

    /// Longest answer, in bytes; the request also holds escapes and other members.
    private static let longestAnswer = 7_000

    /// Returns the streams offered to a subscriber.
    ///
    /// `event`, which carried the offer, names their feeds.
    func streams(of event: JSON) -> [JanusStream] {
        let listed = event["plugindata"]?["data"]?["streams"]?.elements ?? []
        return listed.compactMap { stream in
            guard let mid = stream["mid"]?.string, let feed = stream["feed_id"]?.integer,
                let line = session.media.first(where: { $0.mid == mid }),
                let format = line.formats.first, let source = line.sources.first?.ssrc
            else { return nil }
            return JanusStream(
                mid: mid,
                feed: feed,
                medium: line.media == "audio" ? .audio : .video,
                ssrc: source.rawValue,
                rtxSSRC: line.sources.dropFirst().first?.ssrc.rawValue,
                payloadType: format.payloadType
            )
        }
    }

    /// Returns the first UDP candidate on 127.0.0.0/8.
    private static func loopbackCandidate(in text: String) -> Address? {
        for line in text.split(whereSeparator: \.isNewline) where line.hasPrefix("a=candidate:") {
            let fields = line.split(separator: " ")
            guard fields.count > 5, fields[2].lowercased() == "udp", let port = UInt16(fields[5])
            else { continue }
            let octets = fields[4].split(separator: ".").compactMap { UInt8($0) }
            guard octets.count == 4, octets[0] == 127 else { continue }
            return Address(ipv4: octets.reduce(0) { $0 << 8 | UInt32($1) }, port: port)
        }
        return nil
    }
}

/// One m-line of an offer from Janus.
struct JanusStream: Sendable {
    let mid: String
    /// Id of the publisher.
    let feed: Int64
    let medium: Medium
    let ssrc: UInt32
    let rtxSSRC: UInt32?
    let payloadType: UInt8

    /// Converts to the bench's type.
    func received(from publisher: String) -> ReceivedStream {
        ReceivedStream(
            publisher: publisher,
            medium: medium,
            ssrc: ssrc,
            rtxSSRC: rtxSSRC,
            payloadType: payloadType
        )
    }
}
