package import RTP
package import WorkerInterface

/// An m-line on which a participant would like to send.
package struct OfferedMedia: Hashable, Sendable {
    package var mid: String
    package var kind: MediaKind

    package init(mid: String, kind: MediaKind) {
        self.mid = mid
        self.kind = kind
    }
}

/// What one offer led to.
package struct Answer: Sendable {
    /// The text for the client; it holds the ICE password.
    package var sdp: String
    package var configuration: TransportConfiguration
    /// One an m-line, in order.
    package var media: [AnsweredMedia]
    /// No longer in use; the caller gives them back once the workers have let go of them.
    package var endedPublications: [PublicationID]
    package var endedSlots: [SlotID]
    package var isICERestart: Bool
}

/// What became of one m-line.
package struct AnsweredMedia: Hashable, Sendable {
    /// Empty for a rejected m-line that has none.
    package var mid: String
    /// `nil` for what is neither audio nor video.
    package var kind: MediaKind?
    /// What the client may do.
    package var direction: Direction
    package var publication: PublicationID?
    package var slot: SlotID?
    /// The client plays an audio and a video slot of one number in sync.
    package var pair: Int?
    /// Why the client may not send, where the policy says so.
    package var refused: String?
    /// Answered with port 0: no codec in common, not bundled, not media.
    package var isRejected: Bool
}
