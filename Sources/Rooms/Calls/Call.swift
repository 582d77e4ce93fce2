package import WorkerInterface

extension Room {
    /// Call of a signalling server on a room; permissions are checked in the room.
    package enum Call: Sendable {
        case join(Join)
        case leave(participant: String)
        case offer(Offer)
        case closeTransport(participant: String, transport: String)
        case updateStream(String, audio: Bool?, video: Bool?)
        case unpublish(String, by: String?)
        case subscribe(Subscribe)
        case updateSubscription(String, SubscriptionUpdate)
        case unsubscribe(String)
        case follow(Follow)
        case close(by: String?, reason: String)
        case setState(State, by: String?)
        case update(Settings?, by: String?)
        case lock(Bool, by: String?)
        case hardMuteRoom(Bool, by: String?)
        case hardMute(String, Set<MediaKind>, on: Bool, by: String?)
        case drop([String], by: String?, reason: String)
        case answerKnock(String, approve: Bool, by: String?)
        case setMode(String, Mode, ModeVocabulary?, by: String?)
        case changeRole(String, to: String, force: Bool, by: String?)
        case answerRoleRequest(String, of: String, accept: Bool)
        case changeRoles(to: String, from: [String]?, by: String?)
        case transfer(to: String, by: String)
        case floor(FloorStep, String, by: String?)
        case pin([String], on: Bool, by: String?)
        case startRecording(streams: [String]?, by: String?)
        case stopRecording(by: String?)
        case startStreaming(StreamingRequest, by: String?)
        /// Stops one live stream by name; `nil`: all of the room.
        case stopStreaming(String?, by: String?)
        case startRTPForward(RTPForwardRequest, by: String?)
        case stopRTPForward(String, by: String?)
    }

    package struct Join: Sendable {
        package var participant: String
        package var name: String?
        package var role: String?
        package var mode: Mode?
        package var vocabulary: ModeVocabulary?

        package init(participant: String) { self.participant = participant }
    }

    package struct Offer: Sendable {
        package var participant: String
        package var sdp: String
        package var transport: String
        package var sources: [String: MediaSource]
        package var audioFallback: Bool?

        package init(
            participant: String,
            sdp: String,
            transport: String = Transport.defaultName,
            sources: [String: MediaSource] = [:],
            audioFallback: Bool? = nil
        ) {
            self.participant = participant
            self.sdp = sdp
            self.transport = transport
            self.sources = sources
            self.audioFallback = audioFallback
        }
    }

    package struct Subscribe: Sendable {
        package var participant: String
        package var stream: String
        package var audioMid: String?
        package var videoMid: String?
        package var preferences: Preferences

        package init(
            participant: String,
            stream: String,
            audioMid: String? = nil,
            videoMid: String? = nil,
            preferences: Preferences = Preferences()
        ) {
            self.participant = participant
            self.stream = stream
            self.audioMid = audioMid
            self.videoMid = videoMid
            self.preferences = preferences
        }
    }

    package struct Follow: Sendable {
        package var participant: String
        /// Slots that follow the active speakers, without repetition.
        ///
        /// Two empty lists end the following.
        package var audioMids: [String]
        package var videoMids: [String]
        package var preferences: Preferences

        package init(
            participant: String,
            audioMids: [String],
            videoMids: [String],
            preferences: Preferences = Preferences()
        ) {
            self.participant = participant
            self.audioMids = audioMids
            self.videoMids = videoMids
            self.preferences = preferences
        }

        func mids(_ kind: MediaKind) -> [String] {
            switch kind {
            case .audio: audioMids
            case .video: videoMids
            }
        }
    }

    package struct SubscriptionUpdate: Sendable {
        package var stream: String?
        package var audio: Bool?
        package var video: Bool?
        package var size = Setting<Size>.keep
        package var frameRate = Setting<Double>.keep
        package var priority = Setting<Int>.keep

        package init() {}
    }

    /// Video size, in pixels.
    package struct Size: Hashable, Sendable {
        package var width: Int
        package var height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    /// Change of one preference.
    package enum Setting<Value: Sendable>: Sendable {
        case keep, clear
        case set(Value)

        func applied(to old: Value?) -> Value? {
            switch self {
            case .keep: old
            case .clear: nil
            case .set(let value): value
            }
        }
    }
}
