import LoadPeer
import RTP

@testable import SFU
@testable import WorkerInterface

/// A call of a publisher with three encodings and a viewer behind a bottleneck, in virtual time.
///
/// The whole core is between them.
struct LayeredCall: ~Copyable {
    struct Settings {
        /// Bits a second of the encodings, the lowest first.
        var rates = [150e3, 400e3, 1.5e6]
        var framesPerSecond = 30
        /// One-way delay.
        var delayMilliseconds = 20.0
        var queueMilliseconds = 300.0
        var capacity: [(second: Double, bitsPerSecond: Double)] = [(0, 3e6)]
        var loss = 0.0
        /// Packets that are lost in a row, on average; `nil` if each is lost by itself.
        var burst: Double?
        var jitterMilliseconds = 0.0
        var stalls: (running: Double, longest: Double)?
        /// Seconds for which the publisher has been sending when the viewer subscribes.
        var head = 3.0
        /// Seconds in which a resumed encoding reaches its rate.
        ///
        /// The publisher pauses unwatched encodings; with `nil` it always sends all.
        var obeyingWithRamp: Double?
        /// Whether the picture is nearly still.
        var isStill = false
        /// Whether the viewer takes RTX, and so padding.
        var hasRTX = true
    }

    /// The viewer's downlink: takes datagrams from the core, and delivers them later.
    final class Downlink {
        let bottleneck: Bottleneck
        var isOpen = false
        /// Whether everything is lost.
        var isDead = false
        var time: Int64 = 0
        private var isForViewer = false
        private var flights: [(exit: Int64, bytes: [UInt8])] = []
        private var first = 0

        init(_ bottleneck: Bottleneck) { self.bottleneck = bottleneck }

        func note(forViewer: Bool) { isForViewer = forViewer }

        func takes(_ datagram: [UInt8]) -> Bool {
            guard isOpen, isForViewer else { return false }
            if !isDead, let exit = bottleneck.send(bytes: datagram.count + 28, at: time) {
                flights.append((exit, datagram))
            }
            return true
        }

        func next(at now: Int64) -> (exit: Int64, bytes: [UInt8])? {
            guard first < flights.count, flights[first].exit <= now else { return nil }
            defer { first += 1 }
            return flights[first]
        }
    }

    let settings: Settings
    var call: Call
    var viewer = SimulatedViewer()
    var faults = PlantedFaults()
    var source: LayeredSource
    let link: Downlink
    /// Share of packets that the downlink loses, beside planted faults.
    var loss: Double
    private let start: Int64
    private var reports: [(due: Int64, bytes: [UInt8])] = []
    /// Encodings requested of the publisher, and the time at which it learns of it.
    private var wanted: [(due: Int64, mask: UInt8)] = []
    /// Holds of the viewer's video: the reason of each pause, or `nil` for a resumption.
    private var holds: [VideoHold?] = []
    /// Times at which the publisher was asked for other encodings.
    private(set) var wishes: [(second: Double, mask: UInt8)] = []
    /// Load reports of the worker.
    private(set) var pressures: [WorkerOverload] = []
    /// Nanoseconds from the worker to the publisher's encoder by way of signalling.
    private static let signalling: Int64 = 50_000_000

    /// Returns once the viewer has subscribed.
    init(_ settings: Settings, seed: UInt64) throws {
        self.settings = settings
        loss = settings.loss
        call = try Call(seed: seed)
        call.join(publications: [Media.audio(0), Media.video(1, rids: ["q", "h", "f"])])
        call.join(slots: [
            Media.slot(0, hasRTX: settings.hasRTX), Media.slot(1, kind: .audio, ssrc: 0xbbbb),
        ])
        call.connect(0)
        call.connect(1)
        start = call.now.nanoseconds + Int64(settings.head * 1e9)
        source = LayeredSource(
            rates: settings.rates,
            framesPerSecond: settings.framesPerSecond,
            rampSeconds: settings.obeyingWithRamp ?? 0,
            isStill: settings.isStill,
            at: call.now.nanoseconds,
            seed: seed * 7
        )
        var path = PathProperties(capacity: settings.capacity)
        path.delayMilliseconds = settings.delayMilliseconds
        path.queueMilliseconds = settings.queueMilliseconds
        path.loss = settings.loss
        path.burst = settings.burst
        path.jitterMilliseconds = settings.jitterMilliseconds
        path.stalls = settings.stalls
        let link = Downlink(Bottleneck(path, seed: seed))
        self.link = link
        let viewer = call.peers[1].path
        call.inspects = { peer, _ in link.note(forViewer: peer.path == viewer) }
        call.loses = { toCore, datagram in !toCore && link.takes(datagram) }
        run(until: 0)
        call.peers[1].received = []
        link.isOpen = true
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 0)
    }

    /// Seconds since the viewer subscribed.
    var second: Double { Double(call.now.nanoseconds - start) / 1e9 }

    /// Sets the viewer's layer cap for the video, and its role's.
    mutating func prefer(_ preference: LayerCap, roleCap: LayerCap = .none) {
        call.bind(slot: 0, publication: 1, preference: preference, roleCap: roleCap)
    }

    mutating func run(until end: Double) {
        while second < end { step() }
    }

    private mutating func step() {
        link.time = call.now.nanoseconds - start
        let begin = second
        plant(at: begin)
        let isStalled = faults.isOn(.stall, at: begin)
        if isStalled {
            call.now = call.now.advanced(milliseconds: 1)
        } else {
            call.run(milliseconds: 1)
        }
        let now = call.now.nanoseconds - start
        link.time = now
        var packets = faults.pass(source.packets(at: call.now.nanoseconds), at: begin)[...]
        while !packets.isEmpty {
            // A batch has room for as many.
            call.send(Array(packets.prefix(64)), from: 0)
            packets = packets.dropFirst(64)
        }
        takeRequests()
        deliver(at: now)
        if !isStalled { report(at: now) }
        heedEvents()
    }

    private mutating func heedEvents() {
        let now = call.now.nanoseconds
        for event in call.takeEvents() {
            switch event {
            case .videoHeld(_, _, let reason): holds.append(reason)
            case .pressure(let pressure, _): pressures.append(pressure)
            case .layersWanted(_, _, let mask):
                wishes.append((second, mask))
                wanted.append((now + Self.signalling, mask))
            default: break
            }
        }
        while let first = wanted.first, first.due <= now {
            wanted.removeFirst()
            if settings.obeyingWithRamp != nil { source.send(first.mask, at: now) }
        }
    }

    private mutating func takeRequests() {
        for ssrc in call.peers[0].takeKeyframeRequests()
        where !faults.isOn(.keyframeRefused, at: second) {
            source.ask(ssrc, at: call.now.nanoseconds)
        }
    }

    private mutating func deliver(at now: Int64) {
        while let (exit, bytes) = link.next(at: now) {
            for answer in call.take(bytes, at: 1) {
                call.inject(answer, on: call.peers[1].path)
            }
            for packet in call.peers[1].received { viewer.receive(packet, at: exit) }
            for report in call.peers[1].reports { viewer.learn(from: report, at: exit) }
            call.peers[1].received.removeAll(keepingCapacity: true)
            call.peers[1].reports.removeAll(keepingCapacity: true)
        }
    }

    /// Delivers the viewer's RTCP to the core a delay later.
    private mutating func report(at now: Int64) {
        for bytes in viewer.reports(at: now) where !link.isDead {
            var sent = Batch(capacity: 2)
            call.peers[1].peer.sendRTCP(into: &sent) { output in
                for byte in bytes { output.append(byte) }
            }
            let datagram = sent[0].indices.map { sent[0][$0] }
            let delay = link.bottleneck.properties.delayMilliseconds
            reports.append((now + Int64(delay * 1e6), datagram))
        }
        while let first = reports.first, first.due <= now {
            reports.removeFirst()
            call.inject(first.bytes, on: call.peers[1].path)
            call.settle()
        }
    }
}

extension LayeredCall {
    /// Widths by the second at which each was first shown.
    var changes: [(second: Double, width: Int)] {
        var changes: [(second: Double, width: Int)] = []
        for frame in viewer.frames where frame.width != changes.last?.width {
            changes.append((Double(frame.time) / 1e9, frame.width))
        }
        return changes
    }

    /// Changes of width within a period, without the width at its beginning.
    func changes(in seconds: Range<Double>) -> [(second: Double, width: Int)] {
        changes.filter { seconds.contains($0.second) }
    }

    /// Takes the worker's notices on the viewer's video: a pause's reason, or `nil` for a
    /// resumption.
    mutating func takeVideoHolds() -> [VideoHold?] {
        defer { holds = [] }
        return holds
    }

    /// Freeze of the picture at each change of its size, in milliseconds.
    func stands(in seconds: Range<Double>) -> [Double] {
        zip(viewer.frames, viewer.frames.dropFirst()).compactMap { before, after in
            let isSwitch = before.width != after.width
            guard isSwitch, seconds.contains(Double(after.time) / 1e9) else { return nil }
            return Double(after.time - before.time) / 1e6
        }
    }

    /// Share of audio packets that were lost, or came more than 120 ms later than the fastest.
    func silentShare(in seconds: Range<Double>) -> Double {
        let part = viewer.sounds.filter { seconds.contains(Double($0.time) / 1e9) }
        guard let first = part.first, let last = part.last else { return 1 }
        let limit = (part.map(\.transit).min() ?? 0) + 120_000_000
        let heard = part.count { $0.transit <= limit }
        return 1 - Double(heard) / Double(last.number - first.number + 1)
    }
}
