/// Makes slots follow the room's active speakers; without any slots, ends it.
public enum TalkersSubscribe: IPCMethod {
    public static let name = "talkers.subscribe"
    public typealias Result = Done

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var participant: ParticipantID
        /// At most 100, none of them twice.
        public var audioMids: [Mid]
        public var videoMids: [Mid]
        public var preferredResolution: Resolution?
        public var preferredFrameRate: FrameRate?

        public init(
            room: RoomID,
            participant: ParticipantID,
            audioMids: [Mid],
            videoMids: [Mid],
            preferredResolution: Resolution? = nil,
            preferredFrameRate: FrameRate? = nil
        ) {
            self.room = room
            self.participant = participant
            self.audioMids = audioMids
            self.videoMids = videoMids
            self.preferredResolution = preferredResolution
            self.preferredFrameRate = preferredFrameRate
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            room = try container.decode(RoomID.self, forKey: .room)
            participant = try container.decode(ParticipantID.self, forKey: .participant)
            audioMids = try container.list(.audioMids, 0...Self.midLimit)
            videoMids = try container.list(.videoMids, 0...Self.midLimit)
            preferredResolution = try container.decodeIfPresent(
                Resolution.self,
                forKey: .preferredResolution
            )
            preferredFrameRate = try container.decodeIfPresent(
                FrameRate.self,
                forKey: .preferredFrameRate
            )
        }

        /// Most slots of one kind that one call may name.
        public static let midLimit = 100
    }
}

/// `talkers.changed`: the list of active speakers as its addressees see it.
public struct TalkersChanged: EventData {
    public static let event = "talkers.changed"
    public var talkers: [Talker]
    /// Participant whose calls alone have changed the list since it was last announced.
    public var by: ParticipantID?

    public init(talkers: [Talker], by: ParticipantID? = nil) {
        self.talkers = talkers
        self.by = by
    }
}
