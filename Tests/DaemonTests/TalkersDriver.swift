import RTP
import Rooms
import Testing

@testable import Contract
@testable import ControlPlane
@testable import JSON
@testable import WorkerInterface

// Helpers of the talkers' stories.
extension ControlDriver {
    /// Returns a participant's first publication of a kind, and its worker.
    func publication(
        _ participant: String,
        _ kind: MediaKind = .audio,
        source: MediaSource? = nil
    ) throws -> (worker: Int, id: PublicationID) {
        let participant = try #require(plane.rooms["r"]?.room.participants[participant])
        for transport in participant.transports {
            for track in transport.tracks
            where track.kind == kind && (source == nil || track.source == source) {
                return (transport.place.worker, track.publication)
            }
        }
        throw Missing()
    }

    struct Missing: Error {}

    /// Reports that participants begin to speak.
    mutating func begin(_ participants: String...) throws {
        for participant in participants {
            let (worker, id) = try publication(participant)
            tell(.speech(id, .began(at: now.advanced(milliseconds: -200))), from: worker)
            if !holdsFences { fence() }
        }
    }

    mutating func end(_ participants: String...) throws {
        for participant in participants {
            let (worker, id) = try publication(participant)
            tell(.speech(id, .ended), from: worker)
            if !holdsFences { fence() }
        }
    }

    /// Advances the clock, and runs all timers.
    mutating func pass(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        while let due = plane.deadline, due <= end {
            now = max(now, due)
            plane.expire(at: now)
            drain()
            if !holdsFences { fence() }
        }
        now = end
    }

    /// Returns the list without a receiver, in short words: `a*` talks, `a!` is pinned.
    func list() throws -> String {
        let room = try #require(plane.rooms["r"]?.room)
        return room.speakerList.map { talker in
            talker.participant + (talker.isTalking ? "*" : "") + (talker.isPinned ? "!" : "")
        }.joined(separator: " ")
    }

    /// Takes the last list sent to each receiver since the last call.
    mutating func takeLists() throws -> [String: String] {
        defer { events = [] }
        var lists: [String: String] = [:]
        for event in events where event.event == "talkers.changed" {
            let changed = try event.data.decode(TalkersChanged.self)
            let members = plane.rooms["r"]?.room.participants.listedNames ?? []
            for id in members where event.audience.includes(ParticipantID(id)) {
                lists[id] = changed.talkers.map { talker in
                    talker.participant.rawValue + (talker.talking ? "*" : "")
                        + (talker.pinned ? "!" : "")
                }.joined(separator: " ")
            }
        }
        return lists
    }

    /// Returns the publisher in each of a follower's slots: `a0=p`.
    func seats(_ participant: String) throws -> [String: String] {
        let room = try #require(plane.rooms["r"]?.room)
        var seats: [String: String] = [:]
        for slot in try #require(room.participants[participant]).transports.flatMap(\.slots) {
            guard let number = slot.subscription, let subscription = room.subscriptions[number]
            else { continue }
            seats[slot.mid] = room.streams[subscription.stream]?.participant
        }
        return seats
    }

    /// Takes the bindings since the last call, each as the publication's index, -1 for an emptied
    /// slot.
    mutating func takeBindings() -> [Int] {
        takeCommands().compactMap { command in
            guard case .bind(_, let binding) = command else { return nil }
            return binding.map { Int($0.publication.index) } ?? -1
        }
    }

    @discardableResult
    mutating func follow(
        _ participant: String,
        audio: [String],
        video: [String] = []
    ) throws -> JSON {
        try done("talkers.subscribe", follows(participant, audio, video))
    }

    func follows(_ participant: String, _ audio: [String], _ video: [String] = []) -> JSON {
        [
            "room": "r", "participant": .string(participant),
            "audioMids": .array(audio.map { .string($0) }),
            "videoMids": .array(video.map { .string($0) }),
        ]
    }
}

extension Audience {
    /// Whether the event concerns a participant who is in the room.
    func includes(_ participant: ParticipantID) -> Bool {
        switch self {
        case .all: true
        case .participants(let ids): ids.contains(participant)
        case .except(let ids): !ids.contains(participant)
        }
    }
}
