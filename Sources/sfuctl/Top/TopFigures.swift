import Contract

/// Figures of one participant, from the statistics of its room.
struct TopFigures: Hashable, Encodable {
    var room: RoomID
    var participant: ParticipantID
    var connection: ConnectionState
    /// `ADDR:PORT` of the peer.
    var remote: String?
    var `protocol`: PathProtocol?
    /// Bits a second from and to the participant; `nil` before the second report.
    var bitrateIn: Double?
    var bitrateOut: Double?
    /// Largest fraction lost in the last reports, 0 to 1; `nil` if nothing is sent that way.
    var lossIn: Double?
    var lossOut: Double?
    /// Milliseconds.
    var roundTripTime: Double?
    /// Largest jitter of all that it sends and receives, in milliseconds.
    var jitter: Double?
    /// Estimate of what the path to it carries, in bits a second.
    var estimate: Int?
    /// Freezes of what it watches that have ended, and their length.
    var freezes: UInt64 = 0
    var freezeSeconds = 0.0
    /// Limit that keeps one of its videos from a higher layer; `nil` while unknown.
    var limit: LayerLimitReason?
    /// Its subscriptions to video.
    var videos: [SubscriptionID] = []

    init(room: RoomID, participant: ParticipantID, connection: ConnectionState) {
        self.room = room
        self.participant = participant
        self.connection = connection
    }

    /// Larger of the losses of both directions.
    var loss: Double? { [lossIn, lossOut].compactMap(\.self).max() }

    mutating func add(_ stream: StreamStats) {
        for encoding in stream.encodings where encoding.active {
            lossIn = max(lossIn ?? 0, encoding.fractionLost)
            jitter = max(jitter ?? 0, encoding.jitter)
        }
    }

    mutating func add(_ subscription: SubscriptionStats) {
        if subscription.packets > 0 {
            lossOut = max(lossOut ?? 0, subscription.fractionLost)
            jitter = max(jitter ?? 0, subscription.jitter)
        }
        freezes += subscription.freezes
        freezeSeconds += subscription.freezeSeconds
        if subscription.kind == .video { videos.append(subscription.subscription) }
    }

    /// Adds a transport, with its rates if an earlier report of it is known.
    mutating func add(_ transport: TransportStats, since earlier: TransportStats?) {
        remote = remote ?? transport.remote
        `protocol` = `protocol` ?? transport.protocol
        roundTripTime = [roundTripTime, transport.roundTripTime].compactMap(\.self).max()
        estimate = [estimate, transport.estimate].compactMap(\.self).max()
        guard let earlier, let then = earlier.time, let time = transport.time, time > then else {
            return
        }
        func rate(_ bytes: KeyPath<TransportStats, UInt64>) -> Double? {
            let (old, new) = (earlier[keyPath: bytes], transport[keyPath: bytes])
            // A new transport of the same name counts from 0 again.
            return new < old ? nil : Double(new - old) * 8 / (time - then)
        }
        if let rate = rate(\.bytesIn) { bitrateIn = (bitrateIn ?? 0) + rate }
        if let rate = rate(\.bytesOut) { bitrateOut = (bitrateOut ?? 0) + rate }
    }
}

/// Sum of a room's participants.
struct TopRoom: Hashable {
    var room: RoomID
    var participants = 0
    var bitrateIn: Double?
    var bitrateOut: Double?
    /// Largest of all participants.
    var loss: Double?
    var roundTripTime: Double?
    var jitter: Double?
    var freezes: UInt64 = 0
    var freezeSeconds = 0.0

    init(_ room: RoomID) { self.room = room }

    mutating func add(_ one: TopFigures) {
        participants += 1
        if let rate = one.bitrateIn { bitrateIn = (bitrateIn ?? 0) + rate }
        if let rate = one.bitrateOut { bitrateOut = (bitrateOut ?? 0) + rate }
        loss = [loss, one.loss].compactMap(\.self).max()
        roundTripTime = [roundTripTime, one.roundTripTime].compactMap(\.self).max()
        jitter = [jitter, one.jitter].compactMap(\.self).max()
        freezes += one.freezes
        freezeSeconds += one.freezeSeconds
    }
}
