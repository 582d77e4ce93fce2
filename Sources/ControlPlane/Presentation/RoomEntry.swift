import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Room together with its callers' data, which has no effect on media.
struct RoomEntry {
    var room: Room
    /// Settings as shown, with defaults filled in.
    var settings: RoomSettings
    /// Callers' custom data of participants.
    private(set) var customs: [String: JSON] = [:]
    /// Callers' custom data of the room.
    var custom: JSON = [:]
    var messages: MessageBoard
    private var participants = EncodedList()
    /// Participants whose custom data has changed since they were encoded.
    private var stale: Set<String> = []
    private var streams = EncodedList()
    /// Room as last shown, and its complete JSON.
    private var written: (room: RoomInfo, text: EncodedJSON)?

    init(room: Room, settings: RoomSettings, limits: ControlLimits) {
        self.room = room
        self.settings = settings
        messages = MessageBoard(limits: limits)
    }

    var id: RoomID { RoomID(room.name) }

    /// Returns the room as JSON; `seq` is that of its last event.
    mutating func shown(seq: UInt64) -> EncodedJSON {
        let changed = writeChanges()
        let shown = inWords(seq: seq)
        if let written, !changed, written.room == shown { return written.text }
        let whole = EncodedRoom(
            room: shown,
            participants: participants.text(inOrder: room.participants.listedNames),
            streams: streams.text(inOrder: room.streams.listedNames)
        )
        let text = EncodedJSON(bytes: JSON.encoded(whole))
        written = (shown, text)
        return text
    }

    /// Encodes the changed participants and streams.
    ///
    /// - Returns: whether anything has changed.
    private mutating func writeChanges() -> Bool {
        let changedParticipants = room.takeChangedParticipants().union(stale)
        let changedStreams = room.takeChangedStreams()
        for id in changedParticipants {
            let shown = room.participants[id].flatMap { $0.admitted ? show($0) : nil }
            participants[id] = shown.map { JSON.encoded($0) }
        }
        stale = []
        for id in changedStreams {
            streams[id] = room.streams[id].map { JSON.encoded(StreamInfo($0)) }
        }
        return !changedParticipants.isEmpty || !changedStreams.isEmpty
    }

    /// Returns the room in the contract's type, without participants and streams.
    private func inWords(seq: UInt64) -> RoomInfo {
        var shown = RoomInfo(
            room: id,
            state: RoomState(room.state),
            settings: settings,
            created: room.created
        )
        shown.seq = Int64(seq)
        shown.custom = custom
        shown.locked = room.locked
        shown.hardMuted = room.hardMuted
        shown.talkers = room.speakerList.map(Talker.init)
        shown.recording = room.recording != nil
        shown.streaming = room.isStreaming
        shown.pins = room.pins.map { ParticipantID($0) }
        shown.raisedHands = room.raisedHands.map { ParticipantID($0) }
        shown.approvedHands = room.floorHolder.map { [ParticipantID($0)] } ?? []
        shown.awaited = room.awaited.map(AwaitedParticipant.init)
        return shown
    }

    func show(_ participant: Room.Participant) -> ParticipantInfo {
        ParticipantInfo(
            participant: ParticipantID(participant.id),
            name: participant.name ?? "",
            role: participant.role,
            mode: ParticipantMode(participant.mode),
            state: participant.admitted ? .joined : .awaited,
            hardMuted: MediaKind.allCases.filter(participant.hardMuted.contains)
                .map { StreamKind($0) },
            connection: ConnectionState(participant.connection),
            custom: customs[participant.id] ?? [:]
        )
    }

    mutating func keep(_ custom: JSON, for participant: String) {
        customs[participant] = custom
        stale.insert(participant)
    }

    /// Removes the data of a participant that has left.
    mutating func forget(_ participant: String) {
        customs[participant] = nil
        messages.remove(ParticipantID(participant))
    }
}
