import Contract
import Foundation

/// Composition of a recording's directory into one file.
struct Composer {
    private let options: ComposeOptions
    private let isJSON: Bool
    private let directory: URL
    private let ffmpeg: ExternalProgram
    private let prober: Prober
    private let interruption = Interruption()

    /// Default fonts for names; the first existing one is used.
    private static let fonts = [
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    ]

    /// Executes the options and reports on the standard streams.
    static func run(_ options: ComposeOptions, isJSON: Bool) -> Outcome {
        do {
            return try Composer(options, isJSON: isJSON).run()
        } catch let error as ComposeError {
            Output.error("sfuctl: \(error.message)")
            return .refused
        } catch is Interrupted {
            Output.error("sfuctl: interrupted; the same command goes on from here")
            return .interrupted
        } catch {
            Output.error("sfuctl: \(error)")
            return .refused
        }
    }

    private init(_ options: ComposeOptions, isJSON: Bool) throws(ComposeError) {
        self.options = options
        self.isJSON = isJSON
        directory =
            URL(filePath: options.directory, directoryHint: .isDirectory)
            .absoluteURL.standardizedFileURL
        ffmpeg = try ExternalProgram(named: "ffmpeg")
        prober = Prober(
            ffprobe: try ExternalProgram(named: "ffprobe"),
            directory: directory,
            interruption: interruption
        )
    }

    private func run() throws -> Outcome {
        let session = try RecordedSession.read(in: directory)
        if session.stopped == nil {
            warn("the recording has not ended: what there is of it is composed")
        }
        var probes = try session.files.map { try probe($0, session) }
        if options.isDryRun {
            let plan = ComposePlan(session, try Footage(session, probes: probes), options)
            Output.text(
                isJSON ? PrettyJSON.text(ComposeReport.json(plan)) : ComposeReport.text(plan)
            )
            return .done
        }
        let output = URL(filePath: options.output).absoluteURL
        let place = output.deletingLastPathComponent()
        guard FileManager.default.isWritableFile(atPath: place.path) else {
            throw ComposeError("\(place.path) cannot be written")
        }
        let working = try ComposeDirectory(for: options)
        try link(font: try font(), in: working)
        while true {
            let footage = try Footage(session, probes: probes)
            let plan = ComposePlan(session, footage, options)
            do {
                try make(plan, output, in: working)
                break
            } catch let failure as ReelFailure {
                // The file's first packets could be decoded, but not the whole clip.
                warn("\(plan.clips[failure.clip].path) is left out: \(failure.cause)")
                for (index, file) in session.files.enumerated()
                where file.path == plan.clips[failure.clip].path { probes[index] = nil }
            }
        }
        working.removeAll()
        return .done
    }

    private func warn(_ text: String) { Output.error("sfuctl: \(Table.printable(text))") }

    private func probe(_ file: RecordedFile, _ session: RecordedSession) throws -> Probe? {
        switch try prober.probeResult(file, in: session) {
        case .usable(let probe): return probe
        case .damaged(let cause, let probe):
            warn("\(file.path): \(cause)")
            return probe
        case .useless(let cause):
            warn("\(file.path) is left out: \(cause)")
            return nil
        }
    }

    private func font() throws(ComposeError) -> String {
        let choice = options.font.map { [$0] } ?? Self.fonts
        guard let font = choice.first(where: FileManager.default.isReadableFile) else {
            throw ComposeError(
                options.font.map { "\($0) cannot be read" }
                    ?? "there is no font (Debian: apt-get install fonts-dejavu-core, or --font)"
            )
        }
        return URL(filePath: font).absoluteURL.path
    }

    /// Links the font under a name that needs no quoting.
    private func link(
        font: String,
        in working: ComposeDirectory
    ) throws(ComposeError) {
        working.remove(PartFilterGraph.font)
        do {
            try FileManager.default.createSymbolicLink(
                atPath: working.url.appending(path: PartFilterGraph.font).path,
                withDestinationPath: font
            )
        } catch {
            throw ComposeError("\(working.url.path) cannot be written")
        }
    }

    private func make(
        _ plan: ComposePlan,
        _ output: URL,
        in working: ComposeDirectory
    ) throws {
        let paths = plan.clips.map { directory.appending(path: $0.path).path }
        let steps = ComposeSteps(plan, paths: paths, identities: paths.map(identity))
        let all = steps.all
        let texts = all.reduce(into: [:]) { $0.merge($1.texts) { first, _ in first } }
        working.keepOnly(Set(all.map(\.name) + [PartFilterGraph.font]))
        for (name, text) in texts { try working.write(text, to: name) }

        let duration = Double(plan.frames) / Double(ComposePlan.frameRate)
        let finalCost = 0.03 * duration
        let meter = ProgressDisplay(
            ComposeProgress(
                total: all.reduce(finalCost) { $0 + $1.cost },
                found: all.filter { working.contains($0.name) }.reduce(0) { $0 + $1.cost },
                duration: duration
            )
        )
        defer { meter.close() }
        for step in all where !working.contains(step.name) {
            let part = "unfinished"
            let ending = try encode(step.arguments + [part], in: working) { seconds in
                meter.show(done: min(1, seconds / step.seconds) * step.cost)
            }
            guard ending.isSuccess else {
                working.remove(part)
                if step.kind == .reel, !ending.isOutOfSpace, let clip = step.sources.first {
                    throw ReelFailure(clip: clip, cause: ending.errorOutput)
                }
                throw ComposeError("ffmpeg failed: \(ending.errorOutput)")
            }
            try Rename.move(
                working.url.appending(path: part),
                to: working.url.appending(path: step.name)
            )
            meter.finish(step.cost)
        }
        try join(steps, plan, output, in: working) { seconds in
            meter.show(done: min(1, seconds / duration) * finalCost)
        }
        meter.finish(finalCost)
    }

    /// Returns the file's size and modification time, to detect a replaced file.
    private func identity(_ path: String) -> String {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        let size = attributes?[.size] as? NSNumber
        let written = attributes?[.modificationDate] as? Date
        return "\(size?.int64Value ?? -1) \(written?.timeIntervalSince1970 ?? -1)"
    }

    /// Concatenates the parts and adds the sound.
    private func join(
        _ steps: ComposeSteps,
        _ plan: ComposePlan,
        _ output: URL,
        in working: ComposeDirectory,
        onSeconds: (Double) -> Void
    ) throws {
        let parts = steps.parts.map { "file \($0.name)\n" }.joined()
        try working.write("ffconcat version 1.0\n" + parts, to: "parts.txt")
        try working.write(steps.sounds.map { $0.name + "\n" }.joined(), to: "sounds.txt")
        // Written beside the output, because a rename is atomic only within a file system.
        let half = output.deletingLastPathComponent()
            .appending(path: ".\(output.lastPathComponent).part")
        defer { try? FileManager.default.removeItem(at: half) }
        let ending = try encode(
            [
                "-f", "concat", "-i", "parts.txt", "-f", "s16le",
                "-ar", "\(AudioPlan.sampleRate)", "-ac", "2", "-i", "concatf:sounds.txt",
                "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac", "-b:a", "128k",
                "-video_track_timescale", VideoEncoding.timescale, "-movflags", "+faststart",
                "-f", "mp4", "file:\(half.path)",
            ],
            in: working,
            onSeconds: onSeconds
        )
        guard ending.isSuccess else { throw ComposeError("ffmpeg failed: \(ending.errorOutput)") }
        try Rename.move(half, to: output)
    }

    private func encode(
        _ arguments: [String],
        in working: ComposeDirectory,
        onSeconds: (Double) -> Void
    ) throws -> ExternalProgram.RunResult {
        try ffmpeg.run(
            ["-nostdin", "-hide_banner", "-v", "error", "-y", "-progress", "pipe:1", "-nostats"]
                + arguments,
            in: working.url,
            interruption: interruption
        ) { line in
            guard line.hasPrefix("out_time_us="), let time = Double(line.dropFirst(12)) else {
                return
            }
            onSeconds(max(0, time / 1_000_000))
        }
    }
}

/// Failure to create the reel of a clip.
private struct ReelFailure: Error {
    var clip: Int
    var cause: String
}
