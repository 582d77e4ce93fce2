package import RTP

/// What a worker tells the control plane.
package enum WorkerEvent: Hashable, Sendable {
    /// All commands before this fence have taken effect.
    ///
    /// `packets` counts the copies that had been forwarded under the rights that the commands
    /// since the fence before took away, each since it was last given; retransmissions apart.
    case fenced(epoch: UInt64, at: Instant, packets: UInt64)
    case transport(TransportID, TransportChange)
    /// The first packet of a subscription left on this slot; for video a keyframe.
    case started(SlotID, subscription: UInt64)
    /// The layer that a slot forwards has changed; `nil`: none, or there is nothing to tell apart.
    case layerChanged(SlotID, subscription: UInt64, from: LayerName?, to: LayerName?)
    /// What a publication's encodings look like, on a notable change.
    case layers(PublicationID, codec: Codec, [LayerDescription])
    /// The video of a subscription stands still on this slot, or moves again (`nil`), for a reason
    /// that only the worker knows.
    case videoHeld(SlotID, subscription: UInt64, VideoHold?)
    /// Which encodings of a publication this worker has viewers for: a bit each, in the offer's
    /// order. Of a mirror `home` says what it mirrors.
    case layersWanted(PublicationID, home: RelayTarget?, UInt8)
    case explained(token: UInt64, LayerExplanation?)
    /// Somebody began to speak, or fell silent, on a publication whose home this worker is.
    case speech(PublicationID, SpeechChange)
    case statistics(token: UInt64, WorkerStatistics)
    /// Another step of what it gives up, or notably other figures; and how many transports it has.
    case pressure(WorkerPressure, transports: Int)
    /// From the tap's thread.
    case tap(TapNotice)
}

package enum TransportChange: Hashable, Sendable {
    /// ICE and DTLS are done: media can flow.
    case connected
    /// Nothing authenticated came for the first liveness limit.
    case reconnecting
    /// It came again.
    case reconnected
    /// Nothing came for the second limit, or the association ended.
    case disconnected(DisconnectReason)
}

package enum DisconnectReason: String, Hashable, Sendable {
    case timeout
    /// The peer sent a protected close_notify.
    case closed
    case handshakeFailed = "dtls-handshake-failed"
    case fingerprintMismatch = "fingerprint-mismatch"
    case noSRTPProfile = "no-srtp-profile"
}

/// Which layer of a video is forwarded, in the words of an offer.
package struct LayerName: Hashable, Sendable {
    /// The encoding, where there is simulcast.
    package var rid: String?
    /// The highest spatial layer of it, from 0; `nil` for an encoding that has but one.
    package var spatial: Int?

    package init(rid: String? = nil, spatial: Int? = nil) {
        self.rid = rid
        self.spatial = spatial
    }

    /// `nil` where there is nothing to tell layers apart by.
    package var distinct: Self? { rid == nil && spatial == nil ? nil : self }
}

/// One encoding as it was last seen.
package struct LayerDescription: Hashable, Sendable {
    package var rid: String?
    /// Pixels; 0 while unknown.
    package var width: Int
    package var height: Int
    /// Frames a second over the last second.
    package var frameRate: Double
    /// Bits a second over the last second.
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

/// What a worker has heard of a publication's sound.
package enum SpeechChange: Hashable, Sendable {
    /// Somebody has been speaking since `at`, which lies a little back.
    case began(at: Instant)
    case ended
}
