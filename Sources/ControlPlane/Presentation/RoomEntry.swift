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
    private(set) var customs = TrackedDictionary<String, JSON>()
    /// Callers' custom data of the room.
    var custom: JSON = [:]
    /// Name of this node; `nil` without a cluster.
    private let node: String?
    var messages: MessageBoard
    private var participants = EncodedList()
    /// Participants whose custom data has changed since they were encoded.
    private var stale: Set<String> = []
    private var streams = EncodedList()
    /// Room as last shown, and its complete JSON.
    private var written: (room: RoomInfo, text: EncodedJSON)?

    /// Record of the room itself as last saved.
    var savedRecord: [UInt8] = []
    /// Settings as last saved.
    var savedSettings: SettingsRecord?

    init(room: Room, settings: RoomSettings, _ setup: ControlSetup) {
        self.room = room
        self.settings = settings
        node = setup.node
        messages = MessageBoard(limits: setup.limits)
    }

    var id: RoomID { RoomID(room.name) }

    /// Returns the room as JSON with the first pages of its lists; `seq` is that of its last event.
    mutating func shown(seq: UInt64) -> EncodedJSON {
        writeChanges()
        let shown = info(seq: seq)
        if let written, written.room == shown { return written.text }
        let whole = EncodedRoom(room: shown, lists: firstPages)
        let text = EncodedJSON(bytes: JSON.encoded(whole))
        written = (shown, text)
        return text
    }

    /// Most bytes of a room without its lists that an event repeats.
    static let shortInfoBytes = 4 << 10

    /// Returns the room as JSON without its lists.
    func shownWithoutLists(seq: UInt64) -> EncodedJSON {
        EncodedJSON(bytes: JSON.encoded(EncodedRoom(room: info(seq: seq))))
    }

    /// First pages that leave a line of 1 MiB enough for everything else about the room.
    private var firstPages: EncodedRoom.FirstPages {
        var pages = EncodedRoom.FirstPages(
            participants: Page(limit: nil, byteLimit: 192 << 10),
            awaited: Page(limit: nil, byteLimit: 64 << 10),
            streams: Page(limit: nil, byteLimit: 192 << 10)
        )
        let people = room.participants
        participants.fill(&pages.participants, with: people.names(listed: true), prefix: "j")
        participants.fill(&pages.awaited, with: people.names(listed: false), prefix: "w")
        streams.fill(&pages.streams, with: room.streams.names(listed: true))
        return pages
    }

    /// Returns a page of participants: first those who have joined, then those who wait.
    ///
    /// A cursor is a creation number after `j` or `w`.
    mutating func page(_ params: ParticipantList.Params) throws(IPCError) -> Page {
        writeChanges()
        var page = Page(limit: params.limit)
        let cursor = params.after?.rawValue ?? "j0"
        guard let birth = UInt64(cursor.dropFirst()), cursor.hasPrefix("j") || cursor.hasPrefix("w")
        else { throw .badCursor }
        let people = room.participants
        let isWanted: (String) -> Bool = { name in
            params.role.map { people[name]?.role == $0.rawValue } ?? true
        }
        if cursor.hasPrefix("j"), params.state != .awaited {
            let joined = people.names(listed: true, after: birth)
            guard participants.fill(&page, with: joined, prefix: "j", where: isWanted) else {
                return page
            }
        }
        if params.state != .joined {
            let waiting = people.names(listed: false, after: cursor.hasPrefix("w") ? birth : 0)
            participants.fill(&page, with: waiting, prefix: "w", where: isWanted)
        }
        return page
    }

    /// Returns a page of streams.
    mutating func page(_ params: StreamList.Params) throws(IPCError) -> Page {
        writeChanges()
        var page = Page(limit: params.limit)
        let birth = try Page.cursor(params.after)
        streams.fill(&page, with: room.streams.names(listed: true, after: birth))
        return page
    }

    /// The room as `room.list` shows it.
    var summary: RoomSummary {
        RoomSummary(
            room: id,
            state: RoomState(room.state),
            mode: settings.mode,
            locked: room.locked,
            created: room.created,
            custom: custom,
            counts: counts
        )
    }

    private var counts: RoomCounts {
        var counts = RoomCounts()
        counts.participants = room.participants.listedCount
        counts.awaited = room.participants.unlistedCount
        counts.streams = room.streams.listedCount
        return counts
    }

    /// Encodes the changed participants and streams; the room as last shown is outdated then.
    private mutating func writeChanges() {
        let changedParticipants = room.takeChangedParticipants().union(stale)
        let changedStreams = room.takeChangedStreams()
        for id in changedParticipants {
            participants[id] = room.participants[id].map { JSON.encoded(show($0)) }
        }
        stale = []
        for id in changedStreams {
            streams[id] = room.streams[id].map { JSON.encoded(StreamInfo($0)) }
        }
        if !changedParticipants.isEmpty || !changedStreams.isEmpty { written = nil }
    }

    /// Returns the room in the contract's type, without its lists.
    func info(seq: UInt64) -> RoomInfo {
        var shown = RoomInfo(
            room: id,
            state: RoomState(room.state),
            settings: settings,
            created: room.created
        )
        shown.seq = Int64(seq)
        shown.node = node
        shown.custom = custom
        shown.locked = room.locked
        shown.hardMuted = room.hardMuted
        shown.counts = counts
        shown.talkers = room.speakerList.map(Talker.init)
        shown.recording = (room.recording?.name).map { RecordingID($0) }
        shown.streamings = room.streamings.filter { !$0.isAwaited }.map { StreamingID($0.name) }
        shown.streaming = shown.streamings.first
        shown.pins = room.pins.map { ParticipantID($0) }
        shown.floor.requested = room.raisedHands.map { ParticipantID($0) }
        shown.floor.granted = room.floorHolder.map { [ParticipantID($0)] } ?? []
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
            node: node.map { participant.node ?? $0 },
            custom: customs[participant.id] ?? [:],
            joined: participant.joined
        )
    }

    /// Changes a participant's custom data; `null` makes it an empty object.
    mutating func apply(_ change: Change<CustomItems>, to participant: String) {
        switch change {
        case .keep: return
        case .clear: keep(.object([:]), for: participant)
        case .set(let custom): keep(custom.value, for: participant)
        }
    }

    mutating func keep(_ custom: JSON, for participant: String) {
        customs[participant] = custom
        stale.insert(participant)
    }

    /// Returns the participants whose custom data has changed since it was saved.
    mutating func takeUnsavedCustoms() -> Set<String> { customs.takeChanged() }

    /// Removes the data of a participant that has left.
    mutating func forget(_ participant: String) {
        customs[participant] = nil
        messages.remove(ParticipantID(participant))
    }
}
