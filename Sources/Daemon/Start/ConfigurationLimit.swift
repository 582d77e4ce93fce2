import Contract
import ControlPlane
import LiveStream
import Recording
import SFU
import Sockets
import WorkerInterface

/// Limit that can be set under `limits` in the configuration file.
package struct ConfigurationLimit: Sendable {
    package var name: String
    package var range: ClosedRange<Int>
    package var path: any WritableKeyPath<Configuration.Limits, Int> & Sendable

    package static let all = [
        Self(name: "rooms", range: 1...1_000_000, path: \.control.rooms),
        Self(
            name: "participantsPerRoom",
            range: 1...100_000,
            path: \.control.participantsPerRoom
        ),
        Self(name: "transportsPerWorker", range: 1...65_536, path: \.control.transportsPerWorker),
        Self(name: "eventsPerRoom", range: 0...1_000_000, path: \.control.eventsPerRoom),
        Self(
            name: "transportsPerParticipant",
            range: 1...16,
            path: \.control.transportsPerParticipant
        ),
        Self(
            name: "subscriptionsPerParticipant",
            range: 1...10_000,
            path: \.control.subscriptionsPerParticipant
        ),
        Self(name: "rolesPerRoom", range: 1...1_024, path: \.control.rolesPerRoom),
        Self(name: "messageTopics", range: 0...65_536, path: \.control.messageTopics),
        Self(name: "messagesPerTopic", range: 0...65_536, path: \.control.messagesPerTopic),
        Self(name: "messageBytes", range: 0...1 << 30, path: \.control.messageBytes),
        Self(name: "workerSpread", range: 0...65_536, path: \.control.workerSpread),
        Self(name: "workerLoadPercent", range: 10...100, path: \.control.workerLoadPercent),
        Self(name: "memoryMegabytes", range: 0...16_777_216, path: \.control.memoryMegabytes),
        Self(
            name: "workerLagMilliseconds",
            range: 5...10_000,
            path: \.core.pressure.lagMilliseconds
        ),
        Self(name: "packetPool", range: 1_024...4_194_304, path: \.core.packetPool),
        Self(name: "streamsPerTransport", range: 1...1_024, path: \.core.streamsPerTransport),
        Self(name: "newStreamsPerSecond", range: 10...100_000, path: \.core.newStreamsPerSecond),
        Self(
            name: "publicationBitrate",
            range: 100_000...1_000_000_000,
            path: \.core.publicationBitrate
        ),
        Self(name: "pathsPerTransport", range: 1...64, path: \.core.pathsPerTransport),
        Self(name: "stunChecksPerSecond", range: 1...10_000, path: \.core.stunChecksPerSecond),
        Self(name: "ipcConnections", range: 1...65_536, path: \.ipc.connections),
        Self(name: "ipcOutputBytes", range: 65_536...1 << 30, path: \.ipc.outputBytes),
        Self(name: "ipcLineSeconds", range: 1...3_600, path: \.ipc.lineSeconds),
        Self(
            name: "ipcCallsPerSecond",
            range: 100...1_000_000,
            path: \.ipc.callsPerSecond
        ),
        Self(name: "receiveBufferBytes", range: 65_536...1 << 30, path: \.buffers.receive),
        Self(name: "sendBufferBytes", range: 65_536...1 << 30, path: \.buffers.send),
        Self(name: "sendQueueDatagrams", range: 64...65_536, path: \.sendQueue.datagrams),
        Self(name: "sendQueueBytes", range: 65_536...1 << 30, path: \.sendQueue.bytes),
        Self(
            name: "tcpConnections",
            range: 1...TCPConnectionLimits.maximumConnections,
            path: \.streams.connections
        ),
        Self(
            name: "tcpConnectionsPerAddress",
            range: 1...TCPConnectionLimits.maximumConnections,
            path: \.streams.connectionsPerAddress
        ),
        Self(name: "tcpQueueBytes", range: 65_536...16 << 20, path: \.streams.queueBytes),
        Self(name: "recordings", range: 1...10_000, path: \.control.recordings),
        Self(name: "recordingsListed", range: 0...100_000, path: \.control.recordingsListed),
        Self(name: "tracksRecorded", range: 1...65_536, path: \.control.tracksRecorded),
        Self(name: "recordingBytes", range: 65_536...1 << 50, path: \.recording.bytes),
        Self(name: "recordingFreeBytes", range: 0...1 << 50, path: \.recording.freeBytes),
        Self(
            name: "recordingWaitingBytes",
            range: 65_536...1 << 30,
            path: \.recording.waitingBytes
        ),
        Self(name: "recordingFiles", range: 1...1_000_000, path: \.recording.files),
        Self(name: "streamings", range: 0...1_000, path: \.control.streamings),
        Self(name: "streamingsPerRoom", range: 1...100, path: \.control.streamingsPerRoom),
        Self(name: "streamingRetrySeconds", range: 0...86_400, path: \.streaming.retrySeconds),
        Self(
            name: "streamingWaitingBytes",
            range: 65_536...1 << 30,
            path: \.streaming.waitingBytes
        ),
        Self(name: "taps", range: 0...10_000, path: \.control.taps),
        Self(name: "tapsPerRoom", range: 1...1_000, path: \.control.tapsPerRoom),
    ]
}

extension ConfigurationLimit {
    /// Returns the values of all limits, by their names.
    package static func values(of limits: Configuration.Limits) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: all.map { ($0.name, limits[keyPath: $0.path]) })
    }
}

/// Limits of the IPC server.
struct IPCLimits: Hashable, Sendable {
    /// Concurrent connections; further ones are closed at once.
    var connections = 1_024
    /// Bytes queued for a connection; one that stops reading with more queued is closed.
    var outputBytes = 8 << 20
    /// Seconds that a line may take from its first byte to its last.
    var lineSeconds = 30
    /// Calls a second, and burst size, of a connection; beyond them it is not read for a while.
    var callsPerSecond = 20_000
    /// Bytes of a line without its newline; part of the contract, so not configurable.
    static let lineBytes = 1 << 20
}
