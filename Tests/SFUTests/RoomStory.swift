import RTP
import SFU
import Synchronization

/// A room and what befalls it, one call after the other.
struct RoomStory {
    var room: SFU::Room
    var shared: SFU::Room.Shared
    /// What the last call told the worker.
    var commands: [Command] = []
    /// Of the last offer.
    var answered: [SFU::Room.AnsweredLine] = []

    init(_ settings: SFU::Room.Settings = SFU::Room.Settings()) {
        room = SFU::Room(name: "r", settings: settings, worker: 0, at: 1)
        let state = Mutex<UInt64>(1)
        let fingerprint = Fingerprint(algorithm: .sha256, digest: Array(0..<32))
        shared = SFU::Room.Shared(
            identifiers: [WorkerIdentifiers(transports: 64, publications: 64, slots: 64)],
            locals: [LocalDescription(candidates: [], fingerprint: fingerprint, cname: "")],
            random: RandomSource {
                state.withLock { state in
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return state ^ (state >> 29)
                }
            },
            limits: SFU::Room.Limits()
        )
    }

    mutating func apply(_ call: SFU::Room.Call) throws(Refusal) {
        let outcome = try room.apply(call, &shared)
        commands = outcome.change.commands[0] ?? []
        if case .answered(let answered) = outcome.result { self.answered = answered.media }
    }

    mutating func join(
        _ id: String,
        role: String? = nil,
        mode: SFU::Room.Mode? = nil
    ) throws(Refusal) {
        var join = SFU::Room.Join(participant: id)
        join.role = role
        join.mode = mode
        try apply(.join(join))
    }

    mutating func offer(_ id: String, _ lines: String...) throws(Refusal) {
        try apply(.offer(SFU::Room.Offer(participant: id, sdp: SmallOffer(lines).text)))
    }

    /// Why a step was refused, if it was.
    mutating func refusal(_ step: (inout Self) throws(Refusal) -> Void) -> Refusal? {
        do throws(Refusal) {
            try step(&self)
            return nil
        } catch {
            return error
        }
    }

    /// The gates that the last call set, in order.
    func gates() -> [Bool] {
        commands.compactMap { command in
            guard case .gate(_, let open) = command else { return nil }
            return open
        }
    }
}

/// An offer of m-lines as in `mid:kind:direction`.
struct SmallOffer {
    let lines: [[Substring]]

    init(_ lines: [String]) { self.lines = lines.map { $0.split(separator: ":") } }

    var text: String {
        let fingerprint = (0..<32).map { _ in "AB" }.joined(separator: ":")
        var text = [
            "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0",
            "a=group:BUNDLE \(lines.map { String($0[0]) }.joined(separator: " "))",
            "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx",
            "a=fingerprint:sha-256 \(fingerprint)", "a=setup:actpass",
        ]
        for line in lines {
            let isAudio = line[1] == "audio"
            text += [
                "m=\(line[1]) 9 UDP/TLS/RTP/SAVPF \(isAudio ? 111 : 96)", "c=IN IP4 0.0.0.0",
                "a=mid:\(line[0])", "a=\(line[2])", "a=rtcp-mux",
                "a=rtpmap:\(isAudio ? "111 opus/48000/2" : "96 VP8/90000")",
            ]
        }
        return text.joined(separator: "\r\n") + "\r\n"
    }
}
