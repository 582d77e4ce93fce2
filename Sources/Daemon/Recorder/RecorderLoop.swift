import CKernel
import Kernel
import LiveStream
import RTP
import RTPForward
import Recording
import SFU
import Sockets
import WorkerInterface

/// Event loop of the recorder thread: reads packets that workers mirror to it, and feeds them to
/// recordings, live streams, and plain RTP outputs.
///
/// A separate thread writes to disk: this loop never blocks on the disk, and no worker waits for
/// this loop.
struct RecorderLoop: ~Copyable {
    /// Parameters of the loop.
    struct Setup: Sendable {
        /// Index of its port in the mesh.
        var index: Int
        var relays: RelayNetwork
        var disk: DiskWriter
        var limits: RecordingLimits
        var streaming = StreamingLimits()
        var log: Log
    }

    private struct HeldFence {
        var epoch: UInt64
        var taps: Set<OutputID>
        var due: Instant
    }

    let setup: Setup
    private let commands: Mailbox<WorkerCommand>
    let events: Mailbox<WorkerEvent>
    private var poller: Poller
    private var port: TapPort
    private var recordings: [OutputID: RoomRecording] = [:]
    var streamers: [OutputID: RoomStreamer] = [:]
    var outputs: [OutputID: RTPForwarder] = [:]
    /// Live stream processes that have been told to end and may not have exited.
    var children: [Int32] = []
    /// Taps that read each publication.
    private var listeners: [PublicationID: [OutputID]] = [:]
    /// Recordings that have ended but are not completely on disk, with their files.
    private var ending: [OutputID: RoomRecording] = [:]
    /// Taps opened or closed since the last fence.
    private var unsettled: Set<OutputID> = []
    private var held: [HeldFence] = []
    private var nextLook: Instant
    private var nextFiles: Instant
    private var gapsSaid: [PublicationID: Instant] = [:]

    /// Interval at which the rings are polled while any tap exists.
    ///
    /// Workers do not wake this thread, so they make no system calls for it. At this interval a
    /// ring carries 51,200 packets a second.
    private static let pollMilliseconds: Int64 = 10
    private static let lookMilliseconds: Int64 = 100
    private static let filesMilliseconds: Int64 = 1_000
    /// Longest time that a fence waits for the disk.
    private static let holdMilliseconds: Int64 = 1_000

    init(
        _ setup: Setup,
        _ poller: consuming Poller,
        _ commands: Mailbox<WorkerCommand>,
        _ events: Mailbox<WorkerEvent>
    ) {
        self.setup = setup
        self.commands = commands
        self.events = events
        self.poller = poller
        port = TapPort(setup.relays.mesh.port(of: setup.index))
        nextLook = .monotonic()
        nextFiles = nextLook
    }

    static func poller(
        for setup: Setup,
        _ commands: Mailbox<WorkerCommand>
    ) throws(SystemError) -> Poller {
        let poller = try Poller()
        try poller.add(commands.descriptor, for: .readable, token: 0)
        try poller.add(setup.disk.notices.descriptor, for: .readable, token: 1)
        return poller
    }

    /// Runs until the mailbox is closed.
    mutating func run() {
        var now = Instant.monotonic()
        while true {
            let ready = poller.wait(until: deadline(at: now), at: now)
            now = .monotonic()
            var isOpen = true
            for index in 0..<ready {
                if poller[index].token == 0 {
                    isOpen = takeCommands(at: now)
                } else {
                    for notice in setup.disk.notices.drain().messages { take(notice, at: now) }
                }
            }
            receive(at: now)
            look(at: now)
            serveStreamers(at: now)
            releaseFences(at: now)
            guard isOpen else { break }
        }
        for tap in recordings.keys.sorted() { end(tap, reason: "shutdown", at: now) }
        for tap in streamers.keys.sorted() { drop(streamer: tap) }
        for tap in outputs.keys.sorted() { drop(output: tap) }
        // After an upgrade the process is the same, but nobody would know of these children.
        for child in children { kernel_child_await(child) }
    }

    private func deadline(at now: Instant) -> Instant? {
        let isIdle =
            recordings.isEmpty && streamers.isEmpty && outputs.isEmpty && children.isEmpty
            && held.isEmpty
        guard !isIdle else { return nil }
        return now.advanced(milliseconds: Self.pollMilliseconds)
    }
}

// Commands and fences.
extension RecorderLoop {
    private mutating func takeCommands(at now: Instant) -> Bool {
        let (messages, closed) = commands.drain()
        for command in messages { apply(command, at: now) }
        return !closed
    }

    private mutating func apply(_ command: WorkerCommand, at now: Instant) {
        switch command {
        case .mirror(let mirror):
            let wasOpen = port.isOpen(mirror.configuration.id)
            port.mirror(mirror, at: now)
            if wasOpen != mirror.open { gate(mirror.configuration.id, open: mirror.open, at: now) }
        case .unmirror(let id): port.unmirror(id)
        case .gate(let id, let open):
            let wasOpen = port.isOpen(id)
            port.gate(id, open: open, at: now)
            // A mirror with another gate has told it already.
            if wasOpen != open { gate(id, open: open, at: now) }
        case .tap(let order): apply(order, at: now)
        case .fence(let epoch): fence(epoch, at: now)
        case .configure, .close, .resume, .endResumption, .postponeResumption, .bind, .limit,
            .feature, .relay, .hold,
            .explain, .report, .reportTransports, .lease, .link:
            break  // For transports and subscriptions; the recorder has none.
        }
    }

    private mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        for tap in listeners[id] ?? [] {
            recordings[tap]?.gate(id, open: open, at: now)
            streamers[tap]?.gate(id, open: open, at: now)
            outputs[tap]?.gate(id, open: open)
        }
    }

    private mutating func apply(_ order: OutputCommand, at now: Instant) {
        switch order {
        case .open(let tap):
            open(tap, at: now)
        case .attach(let tap, let track):
            guard recordings[tap] != nil || streamers[tap] != nil || outputs[tap] != nil
            else { return }
            listeners[track.publication, default: []].append(tap)
            let isOpen = port.isOpen(track.publication)
            recordings[tap]?.attach(track, isOpen: isOpen, at: now)
            streamers[tap]?.attach(track)
            outputs[tap]?.attach(track)
        case .detach(let tap, let id):
            listeners[id]?.removeAll { $0 == tap }
            if listeners[id]?.isEmpty == true { listeners[id] = nil }
            recordings[tap]?.detach(id)
            streamers[tap]?.detach(id)
            outputs[tap]?.detach(id)
        case .forget(let tap, let id): streamers[tap]?.forget(id)
        case .tiles(let tap, let streams): streamers[tap]?.show(streams)
        case .note(let tap, let note): recordings[tap]?.note(note, at: now)
        case .close(let tap):
            if streamers[tap] != nil {
                unsettled.insert(tap)
                streamers[tap]?.end(at: now)
            }
            drop(output: tap)
            guard recordings[tap] != nil else { return }
            unsettled.insert(tap)
            end(tap, reason: nil, at: now)
        }
    }

    private mutating func open(_ tap: OutputSetup, at now: Instant) {
        switch tap.purpose {
        case .streaming(let target):
            streamers[tap.id] = RoomStreamer(tap, target, setup.streaming, at: now)
        case .output(let output): outputs[tap.id] = RTPForwarder(tap, output)
        case .recording:
            let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
            recordings[tap.id] = RoomRecording(tap, setup.limits, at: now, unixTime: unixTime)
            unsettled.insert(tap.id)
            setup.disk.post([.open(tap.id, directory: tap.directory)])
        }
    }

    private mutating func fence(_ epoch: UInt64, at now: Instant) {
        var taps: Set<OutputID> = []
        swap(&taps, &unsettled)
        guard !taps.isEmpty else {
            events.post([.fenced(epoch: epoch, at: now, packets: 0)])
            return
        }
        let due = now.advanced(milliseconds: Self.holdMilliseconds)
        held.append(HeldFence(epoch: epoch, taps: taps, due: due))
    }

    mutating func settled(_ tap: OutputID) {
        for index in held.indices { held[index].taps.remove(tap) }
    }

    private mutating func releaseFences(at now: Instant) {
        guard !held.isEmpty else { return }
        for fence in held where fence.due <= now {
            // The disk is slow: report the files as far as they are known.
            for tap in fence.taps { tellEnded(tap) }
        }
        let passed = held.filter { $0.taps.isEmpty || $0.due <= now }
        held.removeAll { $0.taps.isEmpty || $0.due <= now }
        events.post(passed.map { .fenced(epoch: $0.epoch, at: now, packets: 0) })
    }
}

// Media.
extension RecorderLoop {
    private mutating func receive(at now: Instant) {
        var packets: [TapPacket] = []
        port.receive { packets.append($0) }
        for packet in packets {
            if packet.followsGap { sayGap(packet.publication, at: now) }
            for tap in listeners[packet.publication] ?? [] {
                recordings[tap]?.receive(packet, at: now)
                streamers[tap]?.receive(packet, at: now)
                outputs[tap]?.receive(packet, at: now)
            }
        }
    }

    /// Logs that the ring overflowed because this thread is too slow, once a second per
    /// publication.
    private mutating func sayGap(_ id: PublicationID, at now: Instant) {
        if let said = gapsSaid[id], now.milliseconds(since: said) < 1_000 { return }
        gapsSaid = gapsSaid.filter { now.milliseconds(since: $0.value) < 1_000 }
        gapsSaid[id] = now
        for tap in listeners[id] ?? [] {
            guard
                let tap = recordings[tap]?.setup ?? streamers[tap]?.setup ?? outputs[tap]?.setup
            else { continue }
            let fields = [("room", tap.room), ("tap", tap.name)]
            setup.log.warning("packets lost on the way to the recorder", fields)
        }
    }

    private mutating func look(at now: Instant) {
        guard nextLook <= now else { return }
        nextLook = now.advanced(milliseconds: Self.lookMilliseconds)
        let tellsFiles = nextFiles <= now
        if tellsFiles { nextFiles = now.advanced(milliseconds: Self.filesMilliseconds) }
        for tap in recordings.keys.sorted() {
            ask(for: recordings[tap]?.expire(at: now) ?? [])
            post(tap, at: now)
            if tellsFiles, let recording = recordings[tap] {
                events.post([.tap(.files(tap, present(of: recording)))])
            }
        }
        for tap in streamers.keys.sorted() { ask(for: streamers[tap]?.expire(at: now) ?? []) }
        tendOutputs(at: now, tellsCounts: tellsFiles)
    }

    mutating func ask(for wishes: [(PublicationID, position: Int)]) {
        for (publication, position) in wishes {
            guard let worker = port.requestKeyframe(of: publication, position: position) else {
                continue
            }
            setup.relays.wakeups[worker].ring()
        }
    }

    private mutating func post(_ tap: OutputID, at now: Instant) {
        guard let jobs = recordings[tap]?.takeJobs() else { return }
        setup.disk.post(jobs)
        for end in recordings[tap]?.takeEnds() ?? [] { say(end, of: tap) }
        if recordings[tap]?.takeGapsEnd() == true { sayGapsEnd(of: tap) }
        if setup.disk.isTooSlow(for: tap, at: now) {
            setup.disk.abandon(tap)
            end(tap, reason: "too-slow", at: now)
        } else if recordings[tap]?.isFull == true {
            end(tap, reason: "too-many-files", at: now)
        }
    }

    private func sayGapsEnd(of tap: OutputID) {
        guard let recording = recordings[tap]?.setup else { return }
        let fields = [("room", recording.room), ("recording", recording.name)]
        setup.log.warning("gaps are no longer listed", cause: recording.name, fields)
    }

    private func say(_ end: RoomRecording.TrackEnd, of tap: OutputID) {
        guard let setup = recordings[tap]?.setup else { return }
        let kind = end.track.kind == .audio ? "audio" : "video"
        let fields = [
            ("room", setup.room), ("recording", setup.name),
            ("participant", end.track.participant), ("stream", end.track.stream),
            ("kind", kind), ("reason", end.reason),
        ]
        self.setup.log.warning("a track is no longer recorded", cause: setup.name, fields)
    }

    private mutating func take(_ notice: DiskWriter.Notice, at now: Instant) {
        switch notice {
        case .ready(let tap):
            if recordings[tap] != nil { events.post([.tap(.started(tap))]) }
            settled(tap)
        case .failed(let tap, let reason):
            if recordings[tap] != nil { end(tap, reason: reason, at: now) }
            settled(tap)
        case .ended(let tap):
            tellEnded(tap)
            setup.disk.forget(tap)
            settled(tap)
        }
    }

    /// Ends a recording.
    ///
    /// With a reason it is reported at once, otherwise when the disk has taken everything.
    private mutating func end(_ tap: OutputID, reason: String?, at now: Instant) {
        guard var recording = recordings.removeValue(forKey: tap) else { return }
        recording.finish(at: now)
        setup.disk.post(recording.takeJobs())
        stopListening(tap)
        guard let reason else {
            ending[tap] = recording
            return
        }
        events.post([.tap(.ended(tap, reason: reason, kept(of: recording)))])
    }

    mutating func stopListening(_ tap: OutputID) {
        for id in Array(listeners.keys) {
            listeners[id]?.removeAll { $0 == tap }
            if listeners[id]?.isEmpty == true { listeners[id] = nil }
        }
    }

    private mutating func tellEnded(_ tap: OutputID) {
        guard let recording = ending.removeValue(forKey: tap) else { return }
        events.post([.tap(.ended(tap, reason: nil, kept(of: recording)))])
    }

    /// Returns the recording's files, with the durations that are on disk.
    private func kept(of recording: RoomRecording) -> [OutputFile] {
        let kept = setup.disk.kept(of: recording.setup.id)
        return recording.files.compactMap { file in
            guard let kept = kept[file.number] else { return nil }
            var shown = file.shown(in: recording.setup.directory)
            shown.duration = kept.seconds
            shown.bytes = kept.bytes
            return shown
        }
    }

    /// Returns a running recording's files, with media that is not on disk yet.
    private func present(of recording: RoomRecording) -> [OutputFile] {
        let kept = setup.disk.kept(of: recording.setup.id)
        return zip(recording.files, recording.shownFiles).map { file, shown in
            var shown = shown
            shown.bytes = kept[file.number]?.bytes ?? 0
            return shown
        }
    }
}
