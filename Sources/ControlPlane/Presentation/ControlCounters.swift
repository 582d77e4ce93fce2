import Contract
import JSON
import Rooms

/// Numbers of events by a reason word, of which some are known beforehand.
package struct ReasonCounts: Hashable, Sendable {
    /// Numbers by reason; the reasons known beforehand are always among them.
    package private(set) var counts: [String: UInt64]
    /// Most reasons; further ones are counted as `other`, so that metrics stay few.
    package static let limit = 32
    package static let other = "other"

    package init(known: [String]) {
        counts = Dictionary(uniqueKeysWithValues: known.map { ($0, 0) })
    }

    package mutating func note(_ reason: String) {
        let isListed = counts[reason] != nil || counts.count < Self.limit
        counts[isListed ? reason : Self.other, default: 0] &+= 1
    }
}

/// Counters of what has happened in all rooms, for the metrics.
package struct ControlCounters: Hashable, Sendable {
    /// Participants who entered a room, including those approved and those who replaced another
    /// client.
    package private(set) var joined: UInt64 = 0
    package private(set) var left = ReasonCounts(known: [
        Room.EndReason.left, Room.EndReason.disconnected, Room.EndReason.dropped,
        Room.EndReason.replaced, Room.EndReason.denied, Room.EndReason.roomClosed,
    ])
    /// Refused calls of `participant.join` and `transport.offer`.
    package private(set) var joinRefusals = ReasonCounts(known: Self.admissionCauses)
    package private(set) var offerRefusals = ReasonCounts(
        known: Self.admissionCauses + ["bad-sdp"]
    )
    package private(set) var recordingsStarted: UInt64 = 0
    package private(set) var recordingsEnded = ReasonCounts(
        known: [Room.EndReason.requested] + Self.recordingFaults
    )
    /// Recordings that could not begin.
    package private(set) var recordingsFailed = ReasonCounts(known: Self.recordingFaults)
    package private(set) var streamingsStarted: UInt64 = 0
    package private(set) var streamingsEnded = ReasonCounts(
        known: [Room.EndReason.requested] + Self.streamingFaults
    )
    /// Live streams that could not begin.
    package private(set) var streamingsFailed = ReasonCounts(known: Self.streamingFaults)
    package private(set) var streamingInterruptions: UInt64 = 0

    package init() {}

    private static let admissionCauses = ["overload", "memory", "limit-reached", "no-such-room"]
    private static let recordingFaults = [
        "disk-full", "disk-error", "not-permitted", "too-slow",
    ]
    private static let streamingFaults = [
        "unreachable", "refused", "timeout", "no-encoder", "streamer-failed",
    ]

    /// Counts the announcements of a change.
    mutating func note(_ announcements: [Room.Announcement]) {
        for announcement in announcements {
            switch announcement.news {
            case .joined: joined &+= 1
            case .left(_, let reason, _): left.note(reason)
            case .recordingStarted: recordingsStarted &+= 1
            case .recordingStopped(_, let reason, _):
                recordingsEnded.note(reason ?? Room.EndReason.requested)
            case .recordingFailed(_, let reason, _): recordingsFailed.note(reason)
            case .streamingStarted: streamingsStarted &+= 1
            case .streamingStopped(_, let reason, _): streamingsEnded.note(reason)
            case .streamingInterrupted: streamingInterruptions &+= 1
            case .awaited, .approved, .denied, .connection, .moveWanted, .streamCreated,
                .streamChanged,
                .streamDestroyed,
                .subscriptionConnected, .subscriptionDisconnected, .subscriptionReconnected,
                .videoDisabled, .videoEnabled, .layerChanged, .layersWanted, .stateChanged,
                .updated, .locked, .roomMuted, .participantChanged, .modeChanged, .roleChanged,
                .roleRequested, .roleDeclined, .roleExpired, .transferred, .participantMuted,
                .floor, .pinsChanged, .talkersChanged, .closed, .streamingResumed,
                .outputStarted, .outputStopped:
                break
            }
        }
    }

    /// Counts a live stream that could not begin.
    mutating func noteFailedStreaming(_ reason: String) { streamingsFailed.note(reason) }

    /// Counts a refused call, if it is one by which participants join and connect.
    mutating func note(_ refusal: IPCError, of method: String) {
        switch method {
        case ParticipantJoin.name: joinRefusals.note(Self.cause(refusal))
        case TransportOffer.name: offerRefusals.note(Self.cause(refusal))
        default: break
        }
    }

    /// Returns the reason, or what it is about where one reason has different remedies.
    private static func cause(_ refusal: IPCError) -> String {
        switch refusal.details["limit"] {
        case "workerLoadPercent": "overload"
        case "memoryMegabytes": "memory"
        default: refusal.reason
        }
    }
}

extension ControlPlane {
    /// Numbers of recordings by state.
    package var recordingStates: [(state: String, count: Int)] {
        let states: [RecordingInfo.State] = [.starting, .recording]
        let counts = roomOutputs.recordings.states
        return states.map { ($0.rawValue, counts[$0] ?? 0) }
    }

    /// Numbers of live streams by state.
    package var streamingStates: [(state: String, count: Int)] {
        let all = roomOutputs.streamings.values
        let starting = all.count { !$0.isAccepted }
        let interrupted = all.count { $0.isAccepted && $0.isInterrupted }
        return [
            (StreamingInfo.State.starting.rawValue, starting),
            (StreamingInfo.State.streaming.rawValue, all.count - starting - interrupted),
            (StreamingInfo.State.interrupted.rawValue, interrupted),
        ]
    }

    /// Number of streams that are forwarded as plain RTP.
    package var rtpForwardCount: Int { roomOutputs.forwards.count }
}
