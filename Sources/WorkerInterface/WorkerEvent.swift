package import RTP

/// Event from a worker to the control plane.
package enum WorkerEvent: Hashable, Sendable {
    /// Confirmation that all commands before this fence have taken effect.
    ///
    /// `packets` is the number of copies that were forwarded under the rights revoked by the
    /// commands since the previous fence, each counted since the right was last granted.
    /// Retransmissions are not counted.
    case fenced(epoch: UInt64, at: Instant, packets: UInt64)
    case transport(TransportID, TransportChange)
    /// Quality of a transport's path from its start to its end, told when it is closed.
    case closed(TransportID, LinkQuality)
    /// Departure of a subscription's first packet on this slot; for video a keyframe.
    case started(SlotID, subscription: UInt64)
    /// Change of the layer that a slot forwards; `nil` stands for no layer or for a stream without
    /// distinct layers.
    case layerChanged(SlotID, subscription: UInt64, from: LayerName?, to: LayerName?)
    /// Current state of a publication's encodings, sent on a notable change.
    case layers(PublicationID, codec: Codec, [LayerDescription])
    /// Start of a video pause on this slot, with a reason that only the worker knows, or its end
    /// (`nil`).
    case videoHeld(SlotID, subscription: UInt64, VideoHold?)
    /// Encodings of a publication with demand on this worker, one bit each in the offer's order.
    ///
    /// For a mirror `home` is the mirrored publication.
    case layersWanted(PublicationID, home: RelayTarget?, UInt8)
    case explained(token: UInt64, LayerExplanation?)
    /// Start or end of speech on a publication whose home is this worker.
    case speech(PublicationID, SpeechChange)
    case statistics(token: UInt64, WorkerStatistics)
    /// Change of the overload step or notable change of the figures, with the number of transports.
    case pressure(WorkerOverload, transports: Int)
    /// Notice from the link thread, about the media of another node.
    case link(LinkNotice)
    /// Notice from the recorder thread, about recordings, live streams and RTP outputs.
    case tap(OutputEvent)
}

package enum TransportChange: Hashable, Sendable, Codable {
    /// ICE and DTLS are complete: media can flow.
    case connected
    /// No authenticated packet arrived for `CoreLimits.livenessMilliseconds`.
    case reconnecting
    /// Authenticated packets arrive again.
    case reconnected
    /// No authenticated packet arrived for `CoreLimits.timeoutMilliseconds`, or the association
    /// ended.
    case disconnected(DisconnectReason)
}

package enum DisconnectReason: String, Hashable, Sendable, Codable {
    case timeout
    /// The peer sent an encrypted DTLS close_notify.
    case closed
    case handshakeFailed = "dtls-handshake-failed"
    case fingerprintMismatch = "fingerprint-mismatch"
    case noSRTPProfile = "no-srtp-profile"
    /// The host of the transport was lost; the room goes on at another one.
    case nodeLost = "node-lost"
}

/// Name of a forwarded video layer, in the terms of the offer.
package struct LayerName: Hashable, Sendable, Codable {
    /// RID of the encoding; `nil` without simulcast.
    package var rid: String?
    /// Highest spatial layer, from 0; `nil` for an encoding with only one.
    package var spatial: Int?

    package init(rid: String? = nil, spatial: Int? = nil) {
        self.rid = rid
        self.spatial = spatial
    }

    /// The name itself, or `nil` if the video has no distinct layers.
    package var distinct: Self? { rid == nil && spatial == nil ? nil : self }
}

/// Last measured state of one encoding.
package struct LayerDescription: Hashable, Sendable, Codable {
    package var rid: String?
    /// Width in pixels; 0 while unknown.
    package var width: Int
    package var height: Int
    /// Frame rate over the last second, in frames a second.
    package var frameRate: Double
    /// Bitrate over the last second, in bits a second.
    package var bitrate: Int
    package var active: Bool

    package init(
        rid: String?,
        width: Int,
        height: Int,
        frameRate: Double,
        bitrate: Int,
        active: Bool
    ) {
        self.rid = rid
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.bitrate = bitrate
        self.active = active
    }
}

/// Worker's report of a start or end of speech in a publication.
package enum SpeechChange: Hashable, Sendable, Codable {
    /// Speech began at `at`, which lies slightly in the past.
    case began(at: Instant)
    case ended
}
