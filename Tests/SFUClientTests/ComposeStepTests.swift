import Foundation
import Testing

@testable import sfuctl

@Suite struct ComposeStepTests {
    static let canvas = PixelSize(width: 1_280, height: 720)

    private static func video(_ span: Range<Double>, gaps: [Range<Double>] = []) -> Clip {
        Clip(path: "v", participant: "a", isVideo: true, span: span, gaps: gaps)
    }

    private static func sound(_ span: Range<Double>, gaps: [Range<Double>] = []) -> Clip {
        Clip(path: "a", participant: "a", isVideo: false, span: span, gaps: gaps)
    }

    @Test func `a reel leaves long gaps out and keeps short ones`() {
        let clip = Self.video(1..<101, gaps: [10..<12, 40..<70])
        let reel = Reel(of: clip, index: 0, size: Self.canvas)
        #expect(reel.begin == 30)
        // Two seconds of the long gap are kept at either end.
        #expect(reel.cuts == [1_260..<2_040])
        #expect(reel.count == 3_000 - 780)
        #expect(reel.picture(for: 30) == 0)
        #expect(reel.picture(for: 1_260) == 1_230)
        #expect(reel.picture(for: 1_500) == 1_230)
        #expect(reel.picture(for: 2_040) == 1_230)
        #expect(reel.picture(for: 3_029) == reel.count - 1)
    }

    @Test func `gaps are sorted, joined and kept within the file`() {
        let clip = Self.video(2..<20, gaps: [15..<30, 0..<3, 5..<7, 6..<8, 9..<9])
        #expect(clip.gaps == [2..<3, 5..<8, 15..<20])
        #expect(clip.stretches() == [3..<5, 8..<15])
        #expect(clip.stretches(gapsOver: 2) == [2..<5, 8..<15])
    }

    @Test func `sound is cut into windows that have an exact number of samples`() {
        let plan = AudioPlan([Self.sound(0..<1_000)], frames: 20_000)
        #expect(plan.windows.map(\.frames) == [0..<9_000, 9_000..<18_000, 18_000..<20_000])
        #expect(plan.windows.reduce(0) { $0 + $1.samples } == 20_000 * 1_600)
        #expect(plan.windows.allSatisfy { $0.pieces.count == 1 })
    }

    @Test func `a window with many pieces is split`() {
        let gaps = stride(from: 0.0, to: 280, by: 7).map { $0..<$0 + 6 }
        let clips = (0..<10).map { _ in Self.sound(0..<290, gaps: gaps) }
        let plan = AudioPlan(clips, frames: 8_700)
        #expect(plan.windows.count > 1)
        for (window, next) in zip(plan.windows, plan.windows.dropFirst()) {
            #expect(window.frames.upperBound == next.frames.lowerBound)
        }
        #expect(plan.windows.allSatisfy { $0.pieces.count <= AudioPlan.pieceLimit })
    }

    private static func steps(
        _ clips: [Clip],
        seconds: Double = 100,
        identity: String = "1",
        options: ComposeOptions = ComposeOptions()
    ) -> ComposeSteps {
        let session = RecordedSession(
            version: 1,
            recording: "rec",
            room: "r",
            started: 0,
            stopped: seconds,
            files: [],
            events: [RecordedEvent(time: 0, type: "joined", participant: "a", name: "%{n}: 'A'")]
        )
        let footage = Footage(clips: clips, origin: 0, duration: seconds)
        return ComposeSteps(
            ComposePlan(session, footage, options),
            paths: clips.map { "/rec/\($0.path)" },
            identities: clips.map { _ in identity }
        )
    }

    @Test func `no part is longer than a minute`() {
        let steps = Self.steps([Self.video(0..<200)], seconds: 200)
        #expect(steps.parts.map(\.seconds) == [60, 60, 60, 20])
    }

    @Test func `a step keeps its name until something of it changes`() {
        let clips = [Self.video(0..<100), Self.sound(0..<100)]
        let steps = Self.steps(clips)
        #expect(steps == Self.steps(clips))
        #expect(Set(steps.all.map(\.name)).count == steps.all.count)
        let rewritten = Self.steps(clips, identity: "2")
        #expect(Set(steps.all.map(\.name)).isDisjoint(with: rewritten.all.map(\.name)))
        var options = ComposeOptions()
        options.size = PixelSize(width: 640, height: 360)
        let smaller = Self.steps(clips, options: options)
        #expect(smaller.sounds == steps.sounds)
        #expect(smaller.parts.map(\.name) != steps.parts.map(\.name))
    }

    @Test func `a name is never a part of a filter's description`() {
        let steps = Self.steps([Self.video(0..<50)])
        #expect(steps.parts.contains { $0.texts.values.contains("%{n}: 'A'") })
        for step in steps.all {
            #expect(!step.arguments.contains { $0.contains("%{n}") })
        }
    }

    static let seconds: [Row<Double, String>] = [
        Row("nothing", 0, "0.000000"), Row("a third", 1.0 / 3, "0.333333"),
        Row("before", -0.05, "-0.050000"), Row("rounded up", 1.999_999_9, "2.000000"),
    ]

    @Test(arguments: seconds)
    func `writes seconds`(_ row: Row<Double, String>) {
        #expect(ffmpegSeconds(row.input) == row.output)
    }

    static let complaints: [Row<String, Bool>] = [
        Row("a full disk", "av_interleaved_write_frame(): No space left on device", true),
        Row("a bad file", "Invalid data found when processing input", false),
    ]

    @Test(arguments: complaints)
    func `a full disk is not blamed on a file`(_ row: Row<String, Bool>) {
        #expect(
            ExternalProgram.RunResult(status: 1, errorOutput: row.input).isOutOfSpace == row.output
        )
    }

    @Test func `estimates the remaining time`() {
        var progress = ComposeProgress(total: 100, found: 20, duration: 600)
        #expect(progress.line(elapsed: 0) == " 20 %")
        progress.done = 60
        // A run of 100 s made 40 of 100: 240 s of the session.
        #expect(progress.line(elapsed: 100) == " 60 %  2.4 x real time  1:40 left")
        progress.done = 100
        #expect(progress.line(elapsed: 200) == "100 %  2.4 x real time  0:00 left")
        #expect(ComposeProgress.clock(3_661) == "1:01:01")
    }

    @Test func `fractions add up to the whole`() {
        var progress = ComposeProgress(total: 0, found: 0, duration: 1)
        progress.total = [0.1, 0.2, 0.3].reversed().reduce(0, +)
        for part in [0.1, 0.2, 0.3].reversed() { progress.done += part - 1e-16 }
        #expect(progress.percent == 100)
    }
}

@Suite struct RecordedSessionTests {
    static let text = """
        {"version": 1, "recording": "rec-1", "room": "r1", "started": 1000, "stopped": null,
         "new": 1, "files": [
          {"path": "a.webm", "participant": "a", "name": "A", "stream": "s", "source": "camera",
           "kind": "video", "codec": "VP8", "start": 1000.5, "duration": 9.5, "complete": true,
           "gaps": [{"start": 1003, "end": 1004, "reason": "muted"}, {"start": 1008}]},
          {"path": "b.webm", "participant": "b", "stream": "t", "source": "microphone",
           "kind": "audio", "codec": "OPUS", "start": 999, "duration": null, "complete": false}],
         "events": [{"time": 1002.5, "type": "size", "stream": "s", "width": 640, "height": 360},
          {"time": 1003, "type": "muted", "participant": "a", "kind": "video"}]}
        """

    @Test func `reads a description, and ignores unknown parts`() throws {
        let session = try RecordedSession(parsing: Self.text.bytes)
        #expect(session.stopped == nil)
        #expect(session.files.map(\.complete) == [true, false])
        let probes = [
            Probe(begin: 0, end: 9.5, size: PixelSize(width: 320, height: 180)),
            Probe(begin: -0.5, end: 12),
        ]
        let footage = try Footage(session, probes: probes)
        // The second file begins before the recording did.
        #expect(footage.origin == 998.5)
        #expect(footage.duration == 12.5)
        #expect(footage.clips[0].span == 2..<11.5)
        #expect(footage.clips[0].gaps == [4.5..<5.5, 9.5..<11.5])
        #expect(footage.clips[0].size == PixelSize(width: 640, height: 360))
        #expect(footage.clips[1].span == 0..<12.5)
    }

    static let broken: [Row<String, String>] = [
        Row("no JSON", "{", "no JSON"), Row("another version", #"{"version":2}"#, "version 1"),
        Row("a list", "[]", "version 1"), Row("no files", #"{"version":1}"#, "recording"),
    ]

    @Test(arguments: broken)
    func `reports errors in a description`(_ row: Row<String, String>) {
        let error = #expect(throws: ComposeError.self) {
            try RecordedSession(parsing: row.input.bytes)
        }
        #expect(error?.message.contains(row.output) == true)
    }

    @Test func `without a file that can be used there is nothing to compose`() throws {
        let session = try RecordedSession(parsing: Self.text.bytes)
        #expect(throws: ComposeError.self) { try Footage(session, probes: [nil, nil]) }
    }

    static let times: [Row<Probe, Bool>] = [
        Row("within", Probe(begin: 0, end: 10), true),
        Row("nothing in it", Probe(begin: 0, end: 0), false),
        Row("long before", Probe(begin: -100, end: 10), false),
        Row("endless", Probe(begin: 0, end: 1e300), false),
    ]

    @Test(arguments: times)
    func `rejects impossible times`(_ row: Row<Probe, Bool>) throws {
        let session = try RecordedSession(parsing: Self.text.bytes)
        #expect(Footage.isPlausible(session.files[0], row.input, in: session) == row.output)
    }

    static let heads: [Row<String, Probe?>] = [
        Row(
            "a video",
            #"{"streams":[{"width":640,"height":360,"nb_read_frames":"9"}],"#
                + #""format":{"start_time":"0.5"}}"#,
            Probe(begin: 0.5, end: 0.5, size: PixelSize(width: 640, height: 360))
        ),
        Row(
            "sound",
            #"{"streams":[{"nb_read_frames":"9"}],"format":{"start_time":"-0.007000"}}"#,
            Probe(begin: -0.007, end: -0.007)
        ),
        Row("no picture", #"{"streams":[{"nb_read_frames":"0"}],"format":{}}"#, nil),
        Row("no stream", #"{"streams":[],"format":{}}"#, nil), Row("nothing", "", nil),
    ]

    @Test(arguments: heads)
    func `reads ffprobe's output`(_ row: Row<String, Probe?>) {
        #expect(Prober.head(row.input.bytes) == row.output)
    }
}

@Suite struct ComposeInvocationTests {
    private static func options(_ change: (inout ComposeOptions) -> Void) -> Invocation {
        var options = ComposeOptions(directory: "d", output: "o.mp4")
        change(&options)
        return Invocation(verb: .compose(options))
    }

    static let lines: [Row<[String], Invocation>] = [
        Row("plain", ["compose", "d", "-o", "o.mp4"], options { _ in }),
        Row(
            "all",
            ["compose", "--layout=stage", "d", "--size", "640x360", "--output=o.mp4", "--font=f"],
            options {
                $0.layout = .stage
                $0.size = PixelSize(width: 640, height: 360)
                $0.font = "f"
            }
        ),
        Row(
            "dry",
            ["compose", "d", "--dry-run", "--layout", "side-by-side"],
            options {
                $0.output = ""
                $0.isDryRun = true
                $0.layout = .sideBySide
            }
        ),
        Row("help", ["compose", "--help"], Invocation(verb: .help(.compose))),
    ]

    @Test(arguments: lines)
    func `reads the command line`(_ row: Row<[String], Invocation>) throws {
        #expect(try Invocation(row.input) == row.output)
    }

    static let refused: [Row<[String], String>] = [
        Row("no output", ["compose", "d"], "-o FILE"),
        Row("no value", ["compose", "d", "-o"], "-o needs a value"),
        Row("no directory", ["compose", "-o", "o"], "usage: sfuctl compose DIR"),
        Row("no layout", ["compose", "d", "-o", "o", "--layout", "x"], "grid, stage"),
        Row("odd size", ["compose", "d", "-o", "o", "--size", "641x360"], "no size"),
        Row("huge size", ["compose", "d", "-o", "o", "--size", "99999x360"], "no size"),
        Row("size of one", ["compose", "d", "-o", "o", "--size", "640"], "no size"),
        Row("another command's option", ["rooms", "--layout", "grid"], "no option --layout"),
    ]

    @Test(arguments: refused)
    func `refuses what makes no sense`(_ row: Row<[String], String>) {
        let error = #expect(throws: UsageError.self) { try Invocation(row.input) }
        #expect(error?.message.contains(row.output) == true)
    }

    static let paths: [Row<String, String?>] = [
        Row("a file", "a.webm", "/rec/a.webm"), Row("in a folder", "x/a.webm", "/rec/x/a.webm"),
        Row("absolute", "/etc/passwd", nil), Row("upwards", "x/../../a", nil), Row("none", "", nil),
        Row("a zero in it", "a\0b", nil),
    ]

    @Test(arguments: paths)
    func `stays in the recording`(_ row: Row<String, String?>) {
        let directory = URL(filePath: "/rec", directoryHint: .isDirectory)
        #expect(Prober.location(row.input, in: directory)?.path == row.output)
    }
}
