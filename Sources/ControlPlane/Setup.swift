import Contract
import RTP
package import Rooms
package import WorkerInterface

/// Configuration of the control plane, fixed at start.
package struct ControlSetup: Sendable {
    /// Version that `--version` prints.
    package var version: String
    /// Identifier that differs at every start, by which a client notices a restart.
    package internal(set) var bootID: String
    /// Unix time of the start, in seconds.
    package var startTime: Double
    /// Random source for ids, ICE credentials and SSRCs.
    ///
    /// Some of these are secret; use a seeded source only in tests.
    package var random: RandomSource
    /// Fingerprint of the DTLS certificate that all workers use.
    var fingerprint: Fingerprint
    /// UDP addresses in answers, best first; one list for each worker.
    var candidates: [[Address]]
    /// TCP addresses in answers, likewise; empty: no TCP.
    var tcpCandidates: [[Address]] = []
    /// `ADDR:PORT` of every UDP socket, as in the ready line.
    package var udp: [String]
    /// `ADDR:PORT` of every listening TCP socket.
    package var tcp: [String] = []
    package var limits: ControlLimits
    /// All limits with a configuration key, by that name; they are shown.
    var configuredLimits: [String: Int]
    /// Absolute path of the directory for recordings; `nil`: recording is disabled.
    var recordings: String?
    /// Permitted URL schemes of live streams.
    var streamingSchemes = ["rtmp", "rtmps"]
    /// Networks that plain RTP may be sent to.
    var tapNetworks = IPNetwork.loopback
    /// This node's name; `nil` without a cluster.
    var node: String?

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
        configuredLimits: [String: Int] = [:],
        recordings: String? = nil,
        streamingSchemes: [String] = ["rtmp", "rtmps"],
        tapNetworks: [IPNetwork] = IPNetwork.loopback,
        node: String? = nil
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
        self.configuredLimits = configuredLimits
        self.recordings = recordings
        self.streamingSchemes = streamingSchemes
        self.tapNetworks = tapNetworks
        self.node = node
    }

    package var workers: Int { candidates.count }

    /// Bytes of missed events that one subscription is sent.
    ///
    /// All of them are queued at once, so they are at most half of what a connection's queue holds
    /// before it is dropped, which is 16 times `ipcOutputBytes`.
    var replayBytes: Int {
        min(Self.replayByteLimit, configuredLimits["ipcOutputBytes"].map { 8 * $0 } ?? .max)
    }

    /// Bytes of missed events that one subscription is sent at most.
    static let replayByteLimit = 8 << 20

    /// Returns the ICE candidates of a worker, best first: UDP before TCP.
    func candidates(of worker: Int) -> [Candidate] {
        var all = candidates[worker].map { Candidate(address: $0.text, port: $0.port) }
        guard worker < tcpCandidates.count else { return all }
        all += tcpCandidates[worker].map {
            Candidate(address: $0.text, port: $0.port, transport: .tcpPassive)
        }
        return all
    }
}

/// Limits of the control plane; each is a configuration key.
package struct ControlLimits: Hashable, Sendable {
    /// Concurrent rooms; one more is refused with `4029 limit-reached`.
    package var rooms = 10_000
    /// Participants in one room, unless its settings have a lower limit.
    package var participantsPerRoom = 1_000
    /// Transports in one worker; also the size of the worker's tables.
    package var transportsPerWorker = 4_096
    /// Events kept per room for replay with `since`; older ones lead to `resync`.
    package var eventsPerRoom = 1_000
    /// Transports of one participant in one room.
    package var transportsPerParticipant = 2
    /// Roles of one room, including `moderator`.
    package var rolesPerRoom = 64
    /// Message topics of a room that have subscribers or kept messages.
    package var messageTopics = 256
    /// Messages kept per topic; the oldest are dropped.
    package var messagesPerTopic = 200
    /// Bytes of messages kept per room; the oldest of the topic being written are dropped.
    package var messageBytes = 4 << 20
    /// Concurrent subscriptions of one participant.
    package var subscriptionsPerParticipant = 100
    /// Largest accepted imbalance before a room spreads to another worker, in transports.
    ///
    /// It is the difference between the least loaded of the room's workers and the least loaded of
    /// all.
    package var workerSpread = 8
    /// Load at which a worker takes no new participants, in percent of its time.
    package var workerLoadPercent = 85
    /// Resident memory at which nobody new is admitted, in MiB (2^20 bytes); 0: no limit.
    package var memoryMegabytes = 0
    /// Concurrent recordings.
    package var recordings = 100
    /// Concurrently recorded tracks; tracks beyond the limit are not recorded.
    package var tracksRecorded = 4_096
    /// Ended recordings still listed; those that ended first are removed.
    package var recordingsListed = 1_000
    /// Concurrent live streams.
    package var streamings = 10
    /// Concurrent live streams of one room.
    package var streamingsPerRoom = 4
    /// Concurrent RTP forwards.
    package var taps = 100
    /// Concurrent RTP forwards of one room.
    package var tapsPerRoom = 16

    package init() {}
}

extension ControlLimits {
    /// Limits that apply within one room.
    var room: Room.Limits {
        var limits = Room.Limits()
        limits.participantsPerRoom = participantsPerRoom
        limits.transportsPerParticipant = transportsPerParticipant
        limits.subscriptionsPerParticipant = subscriptionsPerParticipant
        limits.workerSpread = workerSpread
        limits.workerLoadPercent = workerLoadPercent
        limits.memoryMegabytes = memoryMegabytes
        return limits
    }

    /// Handle pools of one worker, larger than average transports need.
    var identifiers: WorkerIdentifiers {
        WorkerIdentifiers(
            transports: transportsPerWorker,
            publications: transportsPerWorker * Self.publicationsPerTransport,
            slots: slotsPerWorker
        )
    }

    /// Slots of a worker, over all its transports.
    package var slotsPerWorker: Int { transportsPerWorker * 64 }

    /// Publications of a node that go to other nodes or come from there.
    static let linkedPublications = 16_384

    /// Publications of a worker for each transport that it may have.
    static let publicationsPerTransport = 8
}
