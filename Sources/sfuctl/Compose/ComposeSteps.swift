/// The runs of `ffmpeg` that carry out a plan.
struct ComposeSteps: Equatable, Sendable {
    /// Reels, by clip.
    var reels: [Int: ComposeStep]
    /// Parts, in order of time.
    var parts: [ComposeStep]
    var sounds: [ComposeStep]

    /// All steps, in an order in which they can be run.
    var all: [ComposeStep] {
        reels.sorted { $0.key < $1.key }.map(\.value) + parts + sounds
    }

    /// Longest part, in frames; an interruption loses no more than one part.
    static let longestPart = 60 * ComposePlan.frameRate

    /// Creates the steps of a plan whose clips' files are at `paths`.
    ///
    /// `identities` distinguish a file from a former one with the same name.
    init(_ plan: ComposePlan, paths: [String], identities: [String]) {
        let named = Naming(identities: identities)
        let reels = plan.reels
        let steps = reels.mapValues { reel in
            named.step(
                .reel,
                reel.arguments(plan.clips[reel.clip], path: paths[reel.clip]),
                sources: [reel.clip],
                frames: reel.count,
                cost: 0.1 + 0.5 * Double(reel.size.area) / 921_600
            )
        }
        self.reels = steps
        let files = steps.mapValues(\.name)
        parts = plan.segments.flatMap { segment in
            stride(
                from: segment.frames.lowerBound,
                to: segment.frames.upperBound,
                by: Self.longestPart
            )
            .map { begin in
                let end = min(begin + Self.longestPart, segment.frames.upperBound)
                let picture = PartFilterGraph(
                    tiles: segment.tiles,
                    frames: begin..<end,
                    size: plan.options.size,
                    reels: reels,
                    files: files
                )
                return named.step(
                    .part,
                    picture.arguments,
                    texts: picture.texts,
                    frames: end - begin,
                    cost: Double(plan.options.size.area) / 921_600
                )
            }
        }
        sounds = AudioPlan(plan.clips, frames: plan.frames).windows.map { window in
            named.step(
                .sound,
                window.arguments(plan.clips, paths: paths),
                sources: window.pieces.map(\.clip),
                frames: window.frames.count,
                cost: 0.01 + 0.01 * Double(window.pieces.count)
            )
        }
    }
}

/// Naming of steps by everything that determines their result.
private struct Naming {
    var identities: [String]

    func step(
        _ kind: ComposeStep.Kind,
        _ arguments: [String],
        sources: [Int] = [],
        texts: [String: String] = [:],
        frames: Int,
        cost: Double
    ) -> ComposeStep {
        var fingerprint = Fingerprint()
        for argument in arguments { fingerprint.add(argument) }
        for source in sources { fingerprint.add(identities[source]) }
        let seconds = Double(frames) / Double(ComposePlan.frameRate)
        let suffix = kind == .sound ? "s16" : "mp4"
        return ComposeStep(
            kind: kind,
            arguments: arguments,
            sources: sources,
            texts: texts,
            seconds: seconds,
            cost: cost * seconds,
            name: "\(kind.rawValue)-\(fingerprint.text).\(suffix)"
        )
    }
}

/// Parameters of all encoded pictures.
enum VideoEncoding {
    /// Time base of reels and parts; a frame is a whole number of ticks.
    static let timescale = "\(1_000 * ComposePlan.frameRate)"

    /// Cameras send BT.601 at any size, and their files seldom say so.
    static let colours = [
        "-pix_fmt", "yuv420p", "-color_range", "tv", "-colorspace", "smpte170m",
        "-color_primaries", "smpte170m", "-color_trc", "smpte170m",
    ]

    /// Color of tiles without a picture.
    static let tileColour = "0x26282c"
    static let talkingColour = "0x3fb068"
}

extension Reel {
    func arguments(_ clip: Clip, path: String) -> [String] {
        let rate = Double(ComposePlan.frameRate)
        let shift = clip.span.lowerBound - Double(begin) / rate
        var time = "T+\(ffmpegSeconds(shift))"
        for cut in cuts {
            let from = ffmpegSeconds(Double(cut.lowerBound - begin) / rate)
            time += "-clip(T+\(ffmpegSeconds(shift))-\(from),0,"
            time += "\(ffmpegSeconds(Double(cut.count) / rate)))"
        }
        // Picture sizes change within a file. These filters adapt to that; rebuilding the graph
        // would restart the timestamps.
        let filters = [
            "setpts='(\(time))/TB'",
            "fps=fps=\(ComposePlan.frameRate):start_time=0",
            "scale=w=\(size.width):h=\(size.height):force_original_aspect_ratio=decrease"
                + ":flags=bilinear:out_color_matrix=bt601:out_range=tv",
            "pad=w=\(size.width):h=\(size.height):x=-1:y=-1:eval=frame"
                + ":color=\(VideoEncoding.tileColour)",
            "setsar=1",
        ]
        return [
            "-reinit_filter", "0", "-i", "file:\(path)", "-map", "0:v:0",
            "-vf", filters.joined(separator: ","), "-fps_mode", "passthrough",
            "-frames:v", "\(count)", "-c:v", "libx264", "-preset", "ultrafast",
            "-tune", "fastdecode", "-crf", "19", "-g", "\(ComposePlan.frameRate)",
        ] + VideoEncoding.colours + [
            "-video_track_timescale", VideoEncoding.timescale, "-f", "mp4",
        ]
    }
}

extension AudioPlan.Window {
    func arguments(_ clips: [Clip], paths: [String]) -> [String] {
        let begin = Double(frames.lowerBound) / Double(ComposePlan.frameRate)
        var inputs: [String] = []
        var chains: [String] = []
        for (index, piece) in pieces.enumerated() {
            let skipped = piece.span.lowerBound - clips[piece.clip].span.lowerBound
            let delay = max(0, piece.span.lowerBound - begin) * Double(AudioPlan.sampleRate)
            if skipped > 0 { inputs += ["-ss", ffmpegSeconds(skipped)] }
            inputs += [
                "-t", ffmpegSeconds(piece.span.upperBound - piece.span.lowerBound),
                "-i", "file:\(paths[piece.clip])",
            ]
            // `aresample` fills missing packets with silence of their length, and follows clock
            // drift by stretching.
            chains.append(
                "[\(index):a:0]aresample=\(AudioPlan.sampleRate):async=480:min_comp=0.005"
                    + ":min_hard_comp=0.05:first_pts=0,"
                    + "aformat=sample_fmts=fltp:channel_layouts=stereo,"
                    + "adelay=delays=\(Int(delay.rounded()))S:all=1[a\(index)]"
            )
        }
        let voices = pieces.indices.map { "[a\($0)]" }.joined()
        let mix =
            pieces.isEmpty
            ? "anullsrc=sample_rate=\(AudioPlan.sampleRate):channel_layout=stereo"
            : voices + "amix=inputs=\(pieces.count):normalize=0:dropout_transition=0,"
                + "alimiter=limit=0.95:level=false:latency=true"
        chains.append("\(mix),apad=whole_len=\(samples),atrim=end_sample=\(samples)[out]")
        return inputs + [
            "-filter_complex", chains.joined(separator: ";"), "-map", "[out]",
            "-c:a", "pcm_s16le", "-ar", "\(AudioPlan.sampleRate)", "-ac", "2", "-f", "s16le",
        ]
    }
}
