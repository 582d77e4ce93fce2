package import RTP

/// Negotiated configuration of one transport: all that a worker needs to run it.
package struct TransportConfiguration: Hashable, Sendable, Codable {
    package var ice: ICECredentials
    package var dtlsRole: DTLSRole
    /// Fingerprints of which any one may match the peer's certificate (RFC 8122 §5).
    package var fingerprints: [Fingerprint]
    /// Whether feedback may be sent without a leading report (RFC 5506).
    package var reducedSizeRTCP: Bool
    package var cname: String
    package var publications: [PublicationConfiguration]
    package var slots: [SlotConfiguration]

    package init(
        ice: ICECredentials,
        dtlsRole: DTLSRole,
        fingerprints: [Fingerprint],
        reducedSizeRTCP: Bool,
        cname: String,
        publications: [PublicationConfiguration] = [],
        slots: [SlotConfiguration] = []
    ) {
        self.ice = ice
        self.dtlsRole = dtlsRole
        self.fingerprints = fingerprints
        self.reducedSizeRTCP = reducedSizeRTCP
        self.cname = cname
        self.publications = publications
        self.slots = slots
    }
}

/// Short-term ICE credentials of both sides (RFC 8445 §5.3).
package struct ICECredentials: Hashable, Sendable, Codable {
    package var localFragment: String
    package var localPassword: String
    package var remoteFragment: String
    package var remotePassword: String

    package init(
        localFragment: String,
        localPassword: String,
        remoteFragment: String,
        remotePassword: String
    ) {
        self.localFragment = localFragment
        self.localPassword = localPassword
        self.remoteFragment = remoteFragment
        self.remotePassword = remotePassword
    }
}

/// Role of sfud in the DTLS handshake.
package enum DTLSRole: String, Hashable, Sendable, Codable { case client, server }

/// Certificate fingerprint in SDP (RFC 8122 §5).
package struct Fingerprint: Hashable, Sendable, Codable {
    package enum Algorithm: String, Hashable, Sendable, Codable { case sha256, sha384, sha512 }
    package var algorithm: Algorithm
    package var digest: [UInt8]

    package init(algorithm: Algorithm, digest: [UInt8]) {
        self.algorithm = algorithm
        self.digest = digest
    }
}

/// Configuration of one m-line on which the participant sends.
package struct PublicationConfiguration: Hashable, Sendable, Codable {
    package var id: PublicationID
    package var mid: String
    package var kind: MediaKind
    /// Negotiated formats, most preferred first.
    package var formats: [FormatMapping]
    package var extensions: ExtensionMap
    /// One encoding per RID (RFC 8853), or a single one without RID if there is no simulcast.
    package var encodings: [EncodingConfiguration]
    /// Highest layer that the publisher's role allows; layers above it are not forwarded.
    ///
    /// For audio it holds only the role's bitrate.
    package var cap = LayerCap.none
    /// Whether it is a screen share, which loses frame rate before resolution.
    package var isScreen = false
    /// Whether its publisher is an active speaker or pinned; an overloaded worker sheds its video
    /// last.
    package var isFeatured = false
    /// Whether its publisher lets its video be switched off to keep the audio; an overloaded worker
    /// switches off last of all what may not be.
    package var audioFallback = true

    package init(
        id: PublicationID,
        mid: String,
        kind: MediaKind,
        formats: [FormatMapping],
        extensions: ExtensionMap,
        encodings: [EncodingConfiguration]
    ) {
        self.id = id
        self.mid = mid
        self.kind = kind
        self.formats = formats
        self.extensions = extensions
        self.encodings = encodings
    }
}

/// Configuration of one encoding of a publication, as far as the offer names it.
package struct EncodingConfiguration: Hashable, Sendable, Codable {
    package var rid: String?
    package var ssrc: SSRC?
    package var rtxSSRC: SSRC?

    package init(rid: String? = nil, ssrc: SSRC? = nil, rtxSSRC: SSRC? = nil) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
    }
}

/// Configuration of one m-line on which the participant receives: a slot.
package struct SlotConfiguration: Hashable, Sendable, Codable {
    package var id: SlotID
    package var mid: String
    package var kind: MediaKind
    package var ssrc: SSRC
    package var rtxSSRC: SSRC?
    package var formats: [FormatMapping]
    package var extensions: ExtensionMap

    package init(
        id: SlotID,
        mid: String,
        kind: MediaKind,
        ssrc: SSRC,
        rtxSSRC: SSRC?,
        formats: [FormatMapping],
        extensions: ExtensionMap
    ) {
        self.id = id
        self.mid = mid
        self.kind = kind
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.formats = formats
        self.extensions = extensions
    }
}
