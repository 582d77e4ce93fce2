package import RTP
package import WorkerInterface

/// M-line on which a participant offers to send.
package struct OfferedMedia: Hashable, Sendable {
    package var mid: String
    package var kind: MediaKind

    package init(mid: String, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// Result of answering one offer.
package struct Answer: Sendable {
    /// SDP answer for the client; it contains the ICE password.
    package var sdp: String
    package var configuration: TransportConfiguration
    /// One entry for each m-line, in order.
    package var media: [AnsweredMedia]
    /// Publications that ended; the caller releases their ids once the workers no longer use them.
    package var endedPublications: [PublicationID]
    package var endedSlots: [SlotID]
    package var isICERestart: Bool
}

/// Result for one m-line.
package struct AnsweredMedia: Hashable, Sendable {
    /// Mid; empty for a rejected m-line without one.
    package var mid: String
    /// Media kind; `nil` if neither audio nor video.
    package var kind: MediaKind?
    /// Negotiated direction from the client's view.
    package var direction: Direction
    package var publication: PublicationID?
    package var slot: SlotID?
    /// Number that an audio and a video slot share if the client plays them in sync.
    package var pair: Int?
    /// Reason for which the policy forbids sending, if it does.
    package var refused: String?
    /// Whether the m-line is answered with port 0: no common codec, not bundled, or not media.
    package var isRejected: Bool
    /// Whether that is so for lack of a common codec.
    package var lacksCodec: Bool
}
