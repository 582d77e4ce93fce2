package import WorkerInterface

extension Room {
    /// Call of a signalling server on a room; permissions are checked in the room.
    package indirect enum Call: Sendable {
        case join(Join)
        case leave(participant: String)
        /// A call about several participants, who are judged one by one.
        case each([String], BulkCall, by: String?)
        case updateParticipant(String, name: Setting<String>, by: String?)
        /// Makes these the explicit subscriptions of a participant, and ends all others.
        case setSubscriptions(of: String, to: [Subscribe], by: String?)
        case offer(Offer)
        /// Asks a participant to go to another node; `nil` is this one, and `name` its name.
        case move(participant: String, to: String?, name: String)
        case closeTransport(participant: String, transport: String, by: String? = nil)
        case updateStream(String, audio: Bool?, video: Bool?, by: String? = nil)
        case unpublish(String, by: String?)
        case subscribe(Subscribe)
        case updateSubscription(String, SubscriptionUpdate, by: String? = nil)
        case unsubscribe(String, by: String? = nil)
        case follow(Follow)
        /// Closes the room; `detail` is free text of the caller.
        case close(by: String?, reason: String, detail: String? = nil)
        case setState(State, by: String?)
        case update(Settings?, by: String?)
        case lock(Bool, by: String?)
        /// `sparingModerators` is of no effect when it unmutes.
        case hardMuteRoom(Bool, sparingModerators: Bool = false, by: String?)
        case hardMute(String, Set<MediaKind>, on: Bool, by: String?)
        case drop([String], by: String?, detail: String? = nil)
        case answerKnock(String, approve: Bool, detail: String? = nil, by: String?)
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

    /// Call that is made about one participant or about several.
    package enum BulkCall: Sendable {
        case answerKnock(approve: Bool, detail: String? = nil)
        case hardMute(Set<MediaKind>, on: Bool)

        /// Returns the call about one participant.
        package func about(_ id: String, by actor: String?) -> Call {
            switch self {
            case .answerKnock(let approve, let detail):
                .answerKnock(id, approve: approve, detail: detail, by: actor)
            case .hardMute(let media, let on): .hardMute(id, media, on: on, by: actor)
            }
        }
    }

    package struct Join: Sendable {
        package var participant: String
        package var name = Setting<String>.keep
        package var role: String?
        package var mode: Mode?
        package var vocabulary: ModeVocabulary?
        /// Other node to which the participant connects; `nil` for this one.
        package var node: String?
        /// Whether the call is refused if the participant is in the room.
        package var refusesTakeover = false

        package init(participant: String) { self.participant = participant }
    }

    package struct Offer: Sendable {
        package var participant: String
        package var sdp: String
        package var transport: String
        package var sources: [String: MediaSource]
        /// Changes of the attributes of the m-lines' streams, by mid.
        package var streams: [String: StreamAttributesChange] = [:]
        package var audioFallback = Setting<Bool>.keep
        package var actor: String?
        /// Place of a new transport, instead of at the participant's node, which drains.
        package var destination: Destination?

        /// Other node; `nil`: this one.
        package struct Destination: Sendable {
            package var node: String?

            package init(node: String?) { self.node = node }
        }

        package init(
            participant: String,
            sdp: String,
            transport: String = Transport.defaultName,
            sources: [String: MediaSource] = [:]
        ) {
            self.participant = participant
            self.sdp = sdp
            self.transport = transport
            self.sources = sources
        }
    }

    package struct Subscribe: Sendable {
        package var participant: String
        package var stream: String
        package var audioMid: String?
        package var videoMid: String?
        package var preferences: Preferences
        /// Whether an existing subscription to the stream is the result, instead of a refusal.
        package var returnsExisting = false

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
        package var audioFallback = Setting<Bool>.keep

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

extension Room.Call {
    /// Participant on whose behalf the call is made; `nil` for the signalling server itself.
    var actor: String? {
        switch self {
        case .join, .subscribe, .follow, .move: nil
        case .leave(let participant): participant
        case .each(_, _, let actor): actor
        case .updateParticipant(_, _, let actor), .setSubscriptions(_, _, let actor): actor
        case .offer(let offer): offer.actor
        case .answerRoleRequest(_, let participant, _): participant
        case .floor(let step, let participant, let actor):
            actor ?? (step.isOwn ? participant : nil)
        case .transfer(_, let actor): actor
        case .closeTransport(_, _, let actor), .updateStream(_, _, _, let actor),
            .unpublish(_, let actor), .updateSubscription(_, _, let actor),
            .unsubscribe(_, let actor), .close(let actor, _, _), .setState(_, let actor),
            .update(_, let actor), .lock(_, let actor), .hardMuteRoom(_, _, let actor),
            .hardMute(_, _, _, let actor), .drop(_, let actor, _),
            .answerKnock(_, _, _, let actor), .setMode(_, _, _, let actor),
            .changeRole(_, _, _, let actor), .changeRoles(_, _, let actor), .pin(_, _, let actor),
            .startRecording(_, let actor), .stopRecording(let actor),
            .startStreaming(_, let actor), .stopStreaming(_, let actor),
            .startRTPForward(_, let actor), .stopRTPForward(_, let actor):
            actor
        }
    }
}

extension Room {
    /// Checks that a participant acts for itself only.
    ///
    /// `nil` stands for the signalling server itself, which may do anything.
    package func check(
        _ actor: String?,
        actsFor participant: @autoclosure () throws(CallError) -> String
    ) throws(CallError) {
        guard let actor else { return }
        // The caller is checked before the object of the call.
        _ = try caller(actor)
        guard try participant() == actor else {
            throw CallError(
                code: 4010,
                reason: "not-own",
                message: "participant \"\(actor)\" may do this for itself only"
            )
        }
    }
}
