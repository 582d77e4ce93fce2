import RTP
import Recording
import SFU
import WorkerInterface

/// Records a track of arbitrary packets that passed ingress, beside an honest track.
///
/// The first byte names the codec; each packet then has a byte of flags, the difference of its
/// number from the last one's, and its payload, preceded by two bytes of length.
///
/// Everything is muxed, and the files' bytes are discarded. Whatever the hostile track holds, the
/// honest track's file must be complete.
func readTrack(_ bytes: [UInt8]) throws(Violation) -> Int {
    var cursor = Cursor(bytes)
    let codecs: [Codec] = [.opus, .vp8, .vp9, .h264, .av1]
    let codec = codecs[Int(cursor.byte()) % codecs.count]
    var trial = TrackTrial(codec)
    while !cursor.isAtEnd {
        let flags = cursor.byte()
        let distance = Int64(Int8(bitPattern: cursor.byte()))
        if flags & 0x80 != 0 {
            if distance == 0 { trial.mute() }
            trial.pass(milliseconds: 10 * abs(distance), hasReport: flags & 0x40 != 0)
        } else {
            trial.send(flags, distance, cursor.chunk())
        }
    }
    return try trial.finish()
}

/// A recording of two tracks, one of them hostile.
private struct TrackTrial {
    private static let hostile = PublicationID(index: 1, generation: 1)
    private static let honest = PublicationID(index: 2, generation: 1)

    private let codec: Codec
    private var recording: RoomRecording
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var number: Int64 = 1_000
    private var timestamp: UInt32 = 0xffff_0000
    private var epoch: UInt32 = 1
    /// Capture time that the next packet claims, in nanoseconds before its arrival.
    private var claim: Int64?
    private var honestNumber: Int64 = 0
    private var sum = 0

    init(_ codec: Codec) {
        self.codec = codec
        let setup = OutputSetup(id: 1, name: "rec", room: "r", directory: "/x", started: 1)
        var limits = RecordingLimits()
        limits.files = 100
        recording = RoomRecording(setup, limits, at: now, unixTime: 1)
        for (id, kind) in [(Self.hostile, codec.kind), (Self.honest, .video)] {
            let track = OutputTrack(
                publication: id,
                participant: "p\(id.index)",
                name: "",
                stream: "s",
                source: .camera,
                kind: kind
            )
            recording.attach(track, isOpen: true, at: now)
        }
        sendHonest()
    }

    mutating func mute() {
        recording.gate(Self.hostile, open: false, at: now)
        recording.gate(Self.hostile, open: true, at: now)
    }

    mutating func pass(milliseconds: Int64, hasReport: Bool) {
        now = now.advanced(milliseconds: milliseconds)
        // From milliseconds to centuries, in both directions.
        claim = hasReport ? milliseconds &<< (milliseconds & 0x3f) : nil
        expire()
    }

    mutating func send(_ flags: UInt8, _ distance: Int64, _ payload: [UInt8]) {
        if flags & 0x10 != 0 { epoch += 1 }
        if flags & 0x40 == 0 { timestamp &+= 3_000 }
        number += distance
        var packet = TapPacket(
            publication: Self.hostile,
            codec: codec,
            number: number,
            timestamp: timestamp,
            arrival: now,
            payload: payload
        )
        packet.isKeyframeStart = flags & 0x01 != 0
        packet.isMarked = flags & 0x02 != 0
        packet.isPadding = flags & 0x04 != 0
        packet.followsGap = flags & 0x08 != 0
        packet.position = flags & 0x20 != 0 ? 1 : 0
        packet.best = packet.position
        packet.epoch = epoch
        packet.width = codec.kind == .video ? 640 : 0
        packet.height = codec.kind == .video ? 360 : 0
        if let claim {
            packet.captured = (Instant(nanoseconds: now.nanoseconds &- claim), timestamp)
        }
        now = now.advanced(milliseconds: 1)
        recording.receive(packet, at: now)
    }

    /// Sends one complete frame on time.
    private mutating func sendHonest() {
        let isFirst = honestNumber == 0
        var packet = TapPacket(
            publication: Self.honest,
            codec: .vp8,
            number: honestNumber,
            timestamp: UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000 * 90),
            arrival: now,
            payload: [0x10, isFirst ? 0x10 : 0x11, 1, 2, 3]
        )
        packet.isKeyframeStart = isFirst
        packet.isMarked = true
        packet.width = 640
        packet.height = 360
        honestNumber += 1
        recording.receive(packet, at: now)
    }

    private mutating func expire() {
        sendHonest()
        sum &+= recording.expire(at: now).count
        for job in recording.takeJobs() {
            if case .write(_, _, let run, _) = job { sum &+= run.bytes.count }
        }
    }

    /// Ends the recording and checks the honest track's file.
    mutating func finish() throws(Violation) -> Int {
        pass(milliseconds: 10_000, hasReport: false)
        recording.finish(at: now)
        let files = recording.shownFiles
        let honest = files.filter { $0.participant == "p2" }
        guard honest.count == 1, honest.allSatisfy(\.gaps.isEmpty) else {
            throw Violation("the honest track has \(honest.count) files, or gaps")
        }
        let seconds = Double(now.nanoseconds - 1_000_000_000) / 1e9
        guard abs(honest[0].duration - seconds) < 0.002 else {
            throw Violation("the honest track has \(honest[0].duration) s of \(seconds)")
        }
        guard files.count <= 11 else { throw Violation("one track has \(files.count) files") }
        for file in files where !(-10...seconds + 2).contains(file.start - 1) {
            throw Violation("a file begins at \(file.start)")
        }
        for job in recording.takeJobs() {
            if case .write(_, _, let run, _) = job { sum &+= run.bytes.count }
        }
        return sum &+ files.count &+ recording.takeEnds().count
    }
}
