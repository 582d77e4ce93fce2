import RTP
package import Rooms
package import WorkerInterface

/// One IPC connection; never used again in this process once it has closed.
package struct ConnectionID: Hashable, Sendable {
    package var rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }
}

/// What the control plane wants done, in this order.
package enum ControlOutput {
    /// A reply to one connection: one JSON object without the newline.
    case reply(ConnectionID, [UInt8])
    /// An event, to every connection subscribed to the room.
    case event(room: String, seq: UInt64, line: [UInt8])
    /// An event that is of no room, to every connection that hears events.
    case serverEvent([UInt8])
    /// Sets what a connection hears, `nil`: all rooms; first the events that it missed.
    case subscribe(ConnectionID, rooms: Set<String>?, replay: [[UInt8]])
    case commands(worker: Int, [WorkerCommand])
    case log(LogLevel, String, [(String, String)])
    case close(ConnectionID)
    /// The rooms have ended after `shutdown`: the process may exit.
    case exit
}

/// What the control plane is told at start, once.
package struct ControlSetup: Sendable {
    /// The version that `--version` prints.
    package var version: String
    /// Another one at every start, so that a client notices a restart.
    var bootID: String
    /// Unix time of the start, in seconds.
    package var startTime: Double
    /// For ids, ICE credentials and SSRCs.
    ///
    /// Some of it is secret, so a seed is for tests only.
    var random: RandomSource
    /// Of the certificate that every worker shows in DTLS.
    var fingerprint: Fingerprint
    /// The addresses an answer names, best first; one list a worker.
    var candidates: [[Address]]
    /// Those that take TCP connections likewise; empty: none does.
    var tcpCandidates: [[Address]] = []
    /// `ADDR:PORT` of every UDP socket, as the ready line prints them.
    package var udp: [String]
    /// Of every listening TCP socket.
    package var tcp: [String] = []
    package var limits: ControlLimits
    /// Where recordings go, an absolute path; `nil`: nothing is recorded.
    var recordings: String?
    /// What the URLs of live streams may begin with.
    var streamingSchemes = ["rtmp", "rtmps"]
    /// Where plain RTP may go.
    var tapNetworks = Network.loopback

    package init(
        version: String,
        bootID: String,
        startTime: Double,
        random: RandomSource,
        fingerprint: Fingerprint,
        candidates: [[Address]],
        tcpCandidates: [[Address]] = [],
        udp: [String],
        tcp: [String] = [],
        limits: ControlLimits,
        recordings: String? = nil,
        streamingSchemes: [String] = ["rtmp", "rtmps"],
        tapNetworks: [Network] = Network.loopback
    ) {
        self.version = version
        self.bootID = bootID
        self.startTime = startTime
        self.random = random
        self.fingerprint = fingerprint
        self.candidates = candidates
        self.tcpCandidates = tcpCandidates
        self.udp = udp
        self.tcp = tcp
        self.limits = limits
        self.recordings = recordings
        self.streamingSchemes = streamingSchemes
        self.tapNetworks = tapNetworks
    }

    package var workers: Int { candidates.count }

    /// What an answer names of a worker's addresses, best first: UDP before TCP.
    func candidates(of worker: Int) -> [Candidate] {
        var all = candidates[worker].map { Candidate(address: $0.text, port: $0.port) }
        guard worker < tcpCandidates.count else { return all }
        all += tcpCandidates[worker].map {
            Candidate(address: $0.text, port: $0.port, transport: .tcpPassive)
        }
        return all
    }
}

/// Bounds on what the control plane keeps; each is a configuration key.
package struct ControlLimits: Hashable, Sendable {
    /// Rooms at one time; one more is refused with `4029 limit-reached`.
    package var rooms = 10_000
    /// Participants in one room, where its settings name no lower number.
    package var participantsPerRoom = 1_000
    /// Transports in one worker; also sizes the worker's tables.
    package var transportsPerWorker = 4_096
    /// Events kept a room for `since`; who comes back later gets `resync`.
    package var eventsPerRoom = 1_000
    /// Transports of one participant, those in another room not counted.
    package var transportsPerParticipant = 2
    /// Roles of one room, `moderator` among them.
    package var rolesPerRoom = 64
    /// Topics of a room's messages that somebody hears or that are kept.
    package var messageTopics = 256
    /// Messages kept of one topic; the oldest go.
    package var messagesPerTopic = 200
    /// Bytes kept of a room's messages; the oldest of the topic in hand go.
    package var messageBytes = 4 << 20
    /// Streams that one participant watches at one time.
    package var subscriptionsPerParticipant = 100
    /// Transports by which a room's workers may exceed the least loaded one before it spreads.
    package var workerSpread = 8
    /// Percent of a worker's time from which on it gets nobody new.
    package var workerLoadPercent = 85
    /// What the process may have resident before nobody new is let in, in 2^20 bytes; 0: no limit.
    package var memoryMegabytes = 0
    /// Rooms that are recorded at one time.
    package var recordings = 100
    /// Tracks that are recorded at one time; those of a stream that come later are left out.
    package var tracksRecorded = 4_096
    /// Recordings that have ended and are still listed; those that ended first are forgotten.
    package var recordingsListed = 1_000
    /// Live streams at one time.
    package var streamings = 10
    /// Live streams of one room.
    package var streamingsPerRoom = 4
    /// Streams that go out as plain RTP at one time.
    package var taps = 100
    /// Streams of one room that go out as plain RTP.
    package var tapsPerRoom = 16

    package init() {}
}
