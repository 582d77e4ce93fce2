import Contract
import JSON
import WorkerInterface

/// Debian's Janus with its VideoRoom plugin.
///
/// In a VideoRoom a transport either sends or receives, so a participant that does both has two.
actor JanusAdapter: Adapter {
    private struct Room {
        let session: JanusSession
        /// Handle that created the room; it has no transport.
        let manager: JanusSession.Handle
        let number: Int64
        var members: [String: Member] = [:]
    }

    private struct Member {
        /// Id of a publisher in the plugin.
        let feed: Int64
        var isSimulcast = false
        /// Handles of its transports.
        var publishing: JanusSession.Handle?
        var watching: JanusSession.Handle?
    }

    nonisolated let name: String
    /// Whether each transport has its own thread, as in Debian's configuration.
    ///
    /// Otherwise `Launch.workers` threads serve all transports, which costs less.
    private let hasThreadPerTransport: Bool
    private var process: JanusProcess?
    private var rooms: [String: Room] = [:]
    private var lastNumber: Int64 = 0

    init(name: String, hasThreadPerTransport: Bool = false) {
        self.name = name
        self.hasThreadPerTransport = hasThreadPerTransport
    }

    func start(_ launch: Launch) async throws -> RunningSFU {
        let loops = hasThreadPerTransport ? 0 : launch.workers
        let process = try await JanusProcess(launch, eventLoops: loops)
        self.process = process
        return RunningSFU(processes: [process.child.pid], version: "Janus \(process.version)")
    }

    func stop() async { await process?.stop() }

    func makeRoom(_ room: String, participants: Int) async throws {
        guard let process else { throw AdapterError("Janus has not started") }
        let session = try await JanusSession(process.connection)
        let made = Room(
            session: session,
            manager: try await session.attach(),
            number: nextNumber()
        )
        let settings: [String: JSON] = [
            "room": .integer(made.number), "publishers": .integer(Int64(participants)),
            "bitrate": 0, "audiolevel_ext": false, "videoorient_ext": false,
            "playoutdelay_ext": false,
        ]
        _ = try await session.message("create", settings, by: made.manager)
        rooms[room] = made
    }

    func closeRoom(_ room: String) async throws {
        let closed = try self.room(room)
        rooms[room] = nil
        let number: [String: JSON] = ["room": .integer(closed.number)]
        _ = try await closed.session.message("destroy", number, by: closed.manager)
        try await closed.session.destroy()
    }

    func join(_ request: JoinRequest) async throws -> JoinReply {
        let room = try room(request.room)
        guard let publication = request.publication else {
            rooms[request.room]?.members[request.participant] = Member(feed: nextNumber())
            return JoinReply(remote: nil, sending: nil)
        }
        let handle = try await room.session.attach()
        let member = Member(
            feed: nextNumber(),
            isSimulcast: publication.layers.count > 1,
            publishing: handle
        )
        rooms[request.room]?.members[request.participant] = member
        let event = try await room.session.message(
            "joinandconfigure",
            [
                "ptype": "publisher", "room": .integer(room.number), "id": .integer(member.feed),
            ],
            by: handle,
            (type: "offer", text: JanusOffer(publication, request.local).text)
        )
        let answer = try JanusDescription(event)
        return JoinReply(remote: answer.remote, sending: answer.sendFormat)
    }

    func watch(_ request: WatchRequest) async throws -> WatchReply {
        let room = try room(request.room)
        let handle = try await room.session.attach()
        rooms[request.room]?.members[request.participant]?.watching = handle
        var wanted: [JSON] = []
        var streamRequests: [Int64: WatchRequest.StreamRequest] = [:]
        for streamRequest in request.streamRequests {
            let publisher = try member(streamRequest.publisher, of: room)
            if let transport = publisher.publishing {
                try await room.session.awaitConnected(transport)
            }
            streamRequests[publisher.feed] = streamRequest
            for medium in [
                streamRequest.audio ? Medium.audio : nil, streamRequest.video ? .video : nil,
            ] {
                guard let medium else { continue }
                wanted.append(["feed": .integer(publisher.feed), "mid": .string(medium.mid)])
            }
        }
        let event = try await room.session.message(
            "join",
            ["ptype": "subscriber", "room": .integer(room.number), "streams": .array(wanted)],
            by: handle
        )
        let offer = try JanusDescription(event)
        let answer = offer.answer(request.local)
        _ = try await room.session.message("start", by: handle, (type: "answer", text: answer))
        let streams = offer.streams(of: event)
        try await choose(streams, streamRequests, of: room, by: handle)
        return WatchReply(
            remote: offer.remote,
            streams: streams.compactMap { stream in
                streamRequests[stream.feed].map { stream.received(from: $0.publisher) }
            }
        )
    }

    /// Selects simulcast layers; by default Janus sends the highest.
    private func choose(
        _ streams: [JanusStream],
        _ streamRequests: [Int64: WatchRequest.StreamRequest],
        of room: Room,
        by handle: JanusSession.Handle
    ) async throws {
        let choices = try streams.filter { $0.medium == .video }.compactMap { stream in
            guard let streamRequest = streamRequests[stream.feed],
                try member(streamRequest.publisher, of: room).isSimulcast
            else { return nil as JSON? }
            return ["mid": .string(stream.mid), "substream": .integer(Int64(streamRequest.layer))]
        }
        guard !choices.isEmpty else { return }
        _ = try await room.session.message("configure", ["streams": .array(choices)], by: handle)
    }

    func leave(room: String, participant: String) async throws {
        let left = try self.room(room)
        let member = try member(participant, of: left)
        rooms[room]?.members[participant] = nil
        for handle in [member.publishing, member.watching].compactMap({ $0 }) {
            try await left.session.detach(handle)
        }
    }

    private func room(_ name: String) throws -> Room {
        guard let room = rooms[name] else { throw AdapterError("no room \(name)") }
        return room
    }

    private func member(_ name: String, of room: Room) throws -> Member {
        guard let member = room.members[name] else { throw AdapterError("no participant \(name)") }
        return member
    }

    private func nextNumber() -> Int64 {
        lastNumber += 1
        return lastNumber
    }
}
