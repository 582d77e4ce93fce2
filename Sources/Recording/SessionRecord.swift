import JSON
package import WorkerInterface

/// Content of a recording's `session.json`: its files and the events of the room.
///
/// The format is described in `docs/recording.md`.
struct SessionRecord: Sendable {
    /// Maximum number of events of one recording; later ones are left out.
    static let noteLimit = 100_000
    /// Shortest and longest time in milliseconds between two writes.
    ///
    /// Within them there is a millisecond for each entry, as the whole record is written each time.
    private static let intervals: ClosedRange<Int64> = 1_000...60_000

    private let setup: OutputSetup
    private var notes: [JSON] = []
    var stopped: Double?
    /// Whether the record has changed since it was last written.
    private var isDirty = true
    /// Whether a file has begun or ended since then.
    private var hasOtherFiles = false

    init(_ setup: OutputSetup) { self.setup = setup }

    mutating func note(_ type: String, at time: Double, _ more: [String: JSON]) {
        guard notes.count < Self.noteLimit else { return }
        var members = more
        members["time"] = .number(time)
        members["type"] = .string(type)
        notes.append(.object(members))
        isDirty = true
    }

    mutating func note(_ note: OutputNote, at time: Double) {
        switch note {
        case .joined(let participant, let name):
            self.note(
                "joined",
                at: time,
                ["participant": .string(participant), "name": .string(name)]
            )
        case .left(let participant):
            self.note("left", at: time, ["participant": .string(participant)])
        case .talkers(let participants): self.note("talkers", participants, at: time)
        case .pins(let participants): self.note("pins", participants, at: time)
        }
    }

    /// Notes a list of participants, as a member of the event's own name.
    private mutating func note(_ type: String, _ participants: [String], at time: Double) {
        note(type, at: time, [type: .array(participants.map { JSON.string($0) })])
    }

    mutating func touch() { isDirty = true }

    /// Notes that a file has begun or ended: without its record nobody would find it after a crash.
    mutating func touchFiles() {
        isDirty = true
        hasOtherFiles = true
    }

    /// Whether the record is to be written now, so many milliseconds after it was last written;
    /// `others` is the number of its entries that are not notes.
    func isDue(after milliseconds: Int64, others: Int) -> Bool {
        guard isDirty else { return false }
        let entries = Int64(notes.count + others)
        let longest = min(max(entries, Self.intervals.lowerBound), Self.intervals.upperBound)
        let interval = hasOtherFiles ? max(longest / 10, Self.intervals.lowerBound) : longest
        return milliseconds >= interval
    }

    /// Returns a function that encodes the record as it is now.
    ///
    /// A long record takes tenths of a second, which the recorder thread does not have.
    mutating func snapshot(_ files: [RecordingFile]) -> @Sendable () -> [UInt8] {
        isDirty = false
        hasOtherFiles = false
        let record = self
        return { record.text(files) }
    }

    private func text(_ files: [RecordingFile]) -> [UInt8] {
        let record: JSON = [
            "version": 1,
            "recording": .string(setup.name),
            "room": .string(setup.room),
            "started": .number(setup.started),
            "stopped": stopped.map { .number($0) } ?? .null,
            "files": .array(files.map(\.json)),
            "events": .array(notes),
        ]
        return JSON.encoded(record) + [UInt8(ascii: "\n")]
    }
}

/// File of a recording, as far as it is known.
package struct RecordingFile: Sendable {
    var track: OutputTrack
    package var number: Int
    /// File name within the recording's directory.
    var name: String
    var codec: Codec
    /// Unix time of the first sample, in seconds.
    var start: Double
    /// Duration, in seconds.
    var duration = 0.0
    var gaps: [OutputGap] = []
    /// Whether the writer has closed the file.
    var isComplete = false

    package func shown(in directory: String) -> OutputFile {
        OutputFile(
            path: "\(directory)/\(name)",
            participant: track.participant,
            stream: track.stream,
            kind: track.kind,
            start: start,
            duration: duration,
            gaps: gaps
        )
    }

    fileprivate var json: JSON {
        [
            "path": .string(name),
            "participant": .string(track.participant),
            "name": .string(track.name),
            "stream": .string(track.stream),
            "source": .string(track.source.rawValue),
            "kind": .string(track.kind == .audio ? "audio" : "video"),
            "codec": .string(codec.sessionName),
            "start": .number(start),
            "duration": .number(duration),
            "complete": .bool(isComplete),
            "gaps": .array(
                gaps.map { gap in
                    [
                        "start": .number(gap.start), "end": .number(gap.end),
                        "reason": .string(gap.reason),
                    ]
                }
            ),
        ]
    }
}

extension Codec {
    fileprivate var sessionName: String {
        switch self {
        case .opus, .red: "OPUS"
        case .vp8: "VP8"
        case .vp9: "VP9"
        case .h264: "H264"
        case .av1: "AV1"
        }
    }
}
