import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

// A participant's transports, listed with what their m-lines carry.

extension ControlPlane {
    /// Returns a page of a participant's transports; a cursor is a transport's name.
    func page(_ params: TransportList.Params) throws(IPCError) -> Page {
        let participant = try member(params.participant, of: params.room)
        let room = try entry(params.room).room
        if let after = params.after, TransportName(rawValue: after.rawValue) == nil {
            throw .badCursor
        }
        var page = Page(limit: params.limit)
        let transports = participant.transports.filter { !$0.isSuccessor }
        for transport in transports.sorted(by: { $0.name < $1.name }) {
            if let after = params.after, transport.name <= after.rawValue { continue }
            let info = TransportInfo(
                transport: TransportName(transport.name),
                connection: ConnectionState(transport.connection),
                mids: room.lines(of: transport, participant)
            )
            guard page.append(JSON.encoded(info), cursor: transport.name) else { break }
        }
        return page
    }
}

extension Room {
    fileprivate func lines(of transport: Transport, _ participant: Participant) -> [LineInfo] {
        let streams = participant.streams.compactMap { self.streams[$0] }
            .filter { $0.transport == transport.name }
        var lines: [LineInfo] = []
        for track in transport.tracks {
            guard var line = LineInfo(track.mid, track.kind, .recvonly) else { continue }
            line.source = StreamSource(track.source)
            let isScreen = track.source == .screen
            line.stream = streams.first { $0.isScreen == isScreen && $0.carries(track) }
                .map { StreamID($0.id) }
            lines.append(line)
        }
        let following = preferences(ofFollowing: participant.id)
        for slot in transport.slots {
            let sending = lines.firstIndex { $0.mid.rawValue == slot.mid }
            guard var line = sending.map({ lines[$0] }) ?? LineInfo(slot.mid, slot.kind, .sendonly)
            else { continue }
            line.subscription = slot.subscription.flatMap { subscriptions[$0] }
                .map { SubscriptionID($0.id) }
            line.followsTalkers = slot.follows
            if slot.follows, let following { line.prefer(following) }
            if let sending {
                line.direction = .sendrecv
                lines[sending] = line
            } else {
                lines.append(line)
            }
        }
        return lines
    }
}

extension LineInfo {
    /// Returns `nil` for a mid that the contract's type does not allow.
    fileprivate init?(_ mid: String, _ kind: MediaKind, _ direction: MediaDirection) {
        guard let mid = Mid(rawValue: mid) else { return nil }
        self.init(mid: mid, kind: StreamKind(kind), direction: direction)
    }

    fileprivate mutating func prefer(_ preferences: Room.Preferences) {
        if let width = preferences.width, let height = preferences.height {
            preferredResolution = Resolution(width: width, height: height)
        }
        preferredFrameRate = preferences.frameRate.map { FrameRate($0) }
    }
}
