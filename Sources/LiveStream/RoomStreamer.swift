import CKernel
package import RTP
import Recording
package import SFU
package import WorkerInterface

/// State of one live stream on the recorder thread: assembles frames from packets, and runs the
/// process that encodes them, restarting it when it fails.
package struct RoomStreamer {
    /// State change of the stream.
    package enum StateChange: Hashable {
        case started
        case interrupted(cause: String)
        case resumed
        /// `nil`: it ended as requested.
        case ended(reason: String?)
        /// The process runs without these parts of its sandbox, which the system lacks.
        case unconfined(parts: [String])
    }

    private struct Track {
        var track: OutputTrack
        var number: UInt32
        var reader: TrackReader
        var codec = Codec.opus
        /// Time of the last keyframe request to its publisher.
        var askedAt: Instant?
    }

    private enum Phase: Hashable {
        /// The server has not accepted any packet yet.
        case starting(until: Instant)
        case up, down
        case ending(until: Instant)
    }

    package let setup: OutputSetup
    private let target: StreamTarget
    private let limits: StreamingLimits
    private var process: StreamerProcess?
    private var phase: Phase
    private var tracks: [PublicationID: Track] = [:]
    private var lastNumber: UInt32 = 0
    /// Streams whose video is shown, in the order of the tiles.
    private var tiles: [String] = []
    private var events: [TrackEvent] = []
    /// Time at which a failed process is restarted.
    private var restartsAt: Instant?
    private var failures = 0
    private var failedAt: Instant?
    /// Processes that have been started and may still run.
    private var children: [Int32] = []
    /// Frames dropped because the process was too slow.
    private var dropped = 0

    private static let startMilliseconds: Int64 = 8_000
    private static let endMilliseconds: Int64 = 800
    private static let restartMilliseconds: Int64 = 1_000
    /// Failures that are tolerated; the next one ends the stream.
    private static let failureLimit = 5
    /// Time without a failure after which the count starts at zero.
    private static let forgivenMilliseconds: Int64 = 60_000
    private static let keyframeRequestMilliseconds: Int64 = 1_000

    package init(
        _ setup: OutputSetup,
        _ target: StreamTarget,
        _ limits: StreamingLimits,
        at now: Instant
    ) {
        self.setup = setup
        self.target = target
        self.limits = limits
        phase = .starting(until: now.advanced(milliseconds: Self.startMilliseconds))
        start()
    }

    private mutating func start() {
        process = StreamerProcess(waitingLimit: limits.waitingBytes)
        if let pid = process?.pid { children.append(pid) }
        let settings = StreamSettings(
            url: target.url.text,
            width: target.width,
            height: target.height,
            bitrate: target.bitrate,
            retrySeconds: limits.retrySeconds,
            hasBeenUp: failures > 0,
            authority: limits.authority ?? ""
        )
        _ = process?.send(.begin(settings))
        sendTiles()
    }

    /// Returns the number of frames dropped since the last call; `nil` if none.
    package mutating func takeDropped() -> Int? {
        defer { dropped = 0 }
        return dropped > 0 ? dropped : nil
    }

    /// Kills all processes, and returns those that the caller must wait for.
    package mutating func takeChildren() -> [Int32] {
        defer { children = [] }
        process = nil
        children.removeAll(where: kernel_child_ended)
        for child in children { kernel_child_kill(child) }
        return children
    }

    private var isEnding: Bool { if case .ending = phase { true } else { false } }
}

// Input from the room.
extension RoomStreamer {
    package mutating func attach(_ track: OutputTrack) {
        lastNumber += 1
        tracks[track.publication] = Track(
            track: track,
            number: lastNumber,
            reader: TrackReader(kind: track.kind)
        )
    }

    package mutating func detach(_ id: PublicationID) {
        guard let track = tracks.removeValue(forKey: id) else { return }
        _ = process?.send(.leave(track.number))
    }

    package mutating func forget(_ id: PublicationID) {
        guard let track = tracks[id] else { return }
        _ = process?.send(.forget(track.number))
    }

    package mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard !open else { return }
        tracks[id]?.reader.mute(at: now)
        forget(id)
    }

    package mutating func show(_ streams: [String]) {
        tiles = streams
        sendTiles()
    }

    private func sendTiles() {
        let numbers = tiles.compactMap { stream in
            tracks.values.first { $0.track.kind == .video && $0.track.stream == stream }?.number
        }
        _ = process?.send(.tiles(numbers))
    }

    package mutating func receive(_ packet: TapPacket, at now: Instant) {
        tracks[packet.publication]?.reader.receive(packet, at: now, into: &events)
        send(of: packet.publication, at: now)
    }

    /// Sends the frames of a track that are complete.
    private mutating func send(of id: PublicationID, at now: Instant) {
        defer { events.removeAll(keepingCapacity: true) }
        guard process != nil else { return }
        for case .sample(let sample) in events {
            if let codec = sample.format?.codec { tracks[id]?.codec = codec }
            guard let track = tracks[id] else { return }
            let frame = StreamFrame(
                track: track.number,
                codec: track.codec,
                isKeyframe: sample.isKeyframe,
                instant: sample.instant,
                configuration: sample.format?.configuration,
                bytes: sample.bytes
            )
            guard process?.send(.frame(frame)) == false else { continue }
            dropped += 1
            // Later frames depend on the dropped one, so resume with a keyframe.
            if track.track.kind == .video { return tracks[id]?.reader.mute(at: now) ?? () }
        }
    }

    /// Runs timers: abandons gaps, requests keyframes.
    ///
    /// - Returns: the encodings that need a keyframe.
    package mutating func expire(at now: Instant) -> [(PublicationID, position: Int)] {
        var wishes: [(PublicationID, position: Int)] = []
        for id in Array(tracks.keys) {
            tracks[id]?.reader.expire(at: now, into: &events)
            send(of: id, at: now)
            guard let position = tracks[id]?.reader.neededKeyframe else {
                tracks[id]?.askedAt = nil
                continue
            }
            let due = tracks[id]?.askedAt?.advanced(milliseconds: Self.keyframeRequestMilliseconds)
            guard due.map({ $0 <= now }) != false else { continue }
            tracks[id]?.askedAt = now
            wishes.append((id, position))
        }
        return wishes
    }
}

// The process and its reports.
extension RoomStreamer {
    /// Asks the process to end properly, within `endMilliseconds`.
    package mutating func end(at now: Instant) {
        _ = process?.send(.end)
        phase = .ending(until: now.advanced(milliseconds: Self.endMilliseconds))
    }

    /// Returns the state changes since the last call; none follows an `ended`.
    package mutating func takeStateChanges(at now: Instant) -> [StateChange] {
        process?.flush()
        var news: [StateChange] = []
        for report in process?.reports() ?? [] {
            take(report, &news)
            if case .ended? = news.last { return news }
        }
        if process?.hasEnded == true || (process == nil && restartsAt == nil) {
            fail(at: now, &news)
            if case .ended? = news.last { return news }
        }
        switch phase {
        case .starting(let due) where due <= now: news.append(.ended(reason: "timeout"))
        case .ending(let due) where due <= now: news.append(.ended(reason: nil))
        case .starting, .ending, .up, .down: restart(at: now)
        }
        return news
    }

    private mutating func take(_ report: StreamReport, _ news: inout [StateChange]) {
        guard !isEnding else { return }
        switch report {
        case .up:
            if case .starting = phase {
                news.append(.started)
            } else if phase == .down {
                news.append(.resumed)
            }
            phase = .up
        case .down(let cause):
            guard phase == .up else { return }
            phase = .down
            news.append(.interrupted(cause: cause))
        case .ended(let reason): news.append(.ended(reason: reason))
        case .keyframeWanted(let number): restart(track: number)
        case .unconfined(let parts): news.append(.unconfined(parts: parts))
        }
    }

    private mutating func restart(track number: UInt32) {
        guard let id = tracks.first(where: { $0.value.number == number })?.key else { return }
        tracks[id]?.reader.restart()
    }

    /// Handles a process that ended unexpectedly: restarts it after a while, or ends the stream.
    private mutating func fail(at now: Instant, _ news: inout [StateChange]) {
        if let failedAt, now.milliseconds(since: failedAt) > Self.forgivenMilliseconds {
            failures = 0
        }
        failures += 1
        failedAt = now
        children.removeAll(where: kernel_child_ended)
        let cause = "streamer-failed"
        switch phase {
        case .ending: news.append(.ended(reason: nil))
        case .starting: news.append(.ended(reason: cause))
        case .up, .down:
            guard failures <= Self.failureLimit else {
                return news.append(.ended(reason: cause))
            }
            if phase == .up { news.append(.interrupted(cause: cause)) }
            phase = .down
            process = nil
            restartsAt = now.advanced(milliseconds: Self.restartMilliseconds)
        }
    }

    private mutating func restart(at now: Instant) {
        guard let due = restartsAt, due <= now else { return }
        restartsAt = nil
        // The new process's decoders need keyframes.
        for id in Array(tracks.keys) { tracks[id]?.reader.mute(at: now) }
        start()
    }
}
