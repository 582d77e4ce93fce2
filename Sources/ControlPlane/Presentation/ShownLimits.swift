import Contract
import JSON
import RTP
import Rooms

// Limits as `server.info` returns them.

extension ControlSetup {
    /// Configured limits, and those that the contract fixes.
    var shownLimits: ServerLimits {
        var values = configuredLimits
        // Both of a worker's handles; the smaller number is met first.
        values["handlesPerWorker"] =
            limits.transportsPerWorker * ControlLimits.publicationsPerTransport
        return ServerLimits(values.merging(Self.fixedLimits) { configured, _ in configured })
    }

    /// Limits without a configuration key that a call or an offer can meet.
    static let fixedLimits: [String: Int] = [
        "line": IPCRequest.lineLimit,
        "requestId": RequestID.byteLimit,
        "id": RoomID.byteLimit,
        "text": ShortText.byteLimit,
        "custom": CustomItems.byteLimit,
        "message": Message.byteLimit,
        "nesting": JSON.attachedDepthLimit,
        "settingsBytes": RoomSettings.byteLimit,
        "page": PageLimit.range.upperBound,
        "pageBytes": Page.byteLimit,
        "audience": Audience.idLimit,
        "participantsPerCall": ParticipantDrop.countLimit,
        "answersPerCall": Targets.countLimit,
        "pinsPerCall": ParticipantsByParticipant.countLimit,
        "subscriptionsPerCall": SubscriptionSet.Params.countLimit,
        "slotsPerCall": TalkersSubscribe.Params.midLimit,
        "streamsPerRecording": RecordingStart.Params.streamLimit,
        "roomsPerFeed": StatsSubscribe.Params.roomLimit,
        "nodeCallsWaiting": NodeList.waitingLimit,
        "pins": Room.pinLimit,
        "floorRequests": Room.floorRequestLimit,
        "sdp": SDPLimits.bytes,
        "mLines": SDPLimits.mediaLines,
        "mid": Mid.byteLimit,
    ]
}
