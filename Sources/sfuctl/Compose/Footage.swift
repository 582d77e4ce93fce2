import Contract

/// Findings about one file.
struct Probe: Equatable, Sendable {
    /// Timestamp of the first sample, in seconds; `ffmpeg` maps it to 0.
    var begin: Double
    /// Timestamp of the last sample's end, in seconds.
    var end: Double
    /// Size of the first picture.
    var size: PixelSize?
}

/// The usable part of one file, in session time: seconds since the recording began.
struct Clip: Equatable, Sendable {
    var path: String
    var participant: String
    var isVideo: Bool
    var isScreen: Bool
    /// Time from the first sample to the last.
    var span: Range<Double>
    /// Parts of `span` without samples; sorted and disjoint.
    var gaps: [Range<Double>]
    /// Largest picture size, if known.
    var size: PixelSize?

    init(
        path: String,
        participant: String,
        isVideo: Bool,
        isScreen: Bool = false,
        span: Range<Double>,
        gaps: [Range<Double>] = [],
        size: PixelSize? = nil
    ) {
        self.path = path
        self.participant = participant
        self.isVideo = isVideo
        self.isScreen = isScreen
        self.span = span
        self.gaps = Clip.joined(gaps, within: span)
        self.size = size
    }

    private static func joined(
        _ gaps: [Range<Double>],
        within span: Range<Double>
    ) -> [Range<Double>] {
        var joined: [Range<Double>] = []
        for gap in gaps.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            let gap = gap.clamped(to: span)
            guard !gap.isEmpty else { continue }
            if let last = joined.last, gap.lowerBound <= last.upperBound {
                let end = max(last.upperBound, gap.upperBound)
                joined[joined.count - 1] = last.lowerBound..<end
            } else {
                joined.append(gap)
            }
        }
        return joined
    }
}

/// All usable files of a session on one clock.
struct Footage: Equatable, Sendable {
    var clips: [Clip]
    /// Unix time of the session's second 0.
    var origin: Double
    /// Seconds from the start of the recording to its end.
    var duration: Double

    /// Longest session that can be composed, in seconds.
    static let durationLimit = 24.0 * 3_600

    /// Whether a file's times can belong to the session.
    static func isPlausible(
        _ file: RecordedFile,
        _ probe: Probe,
        in session: RecordedSession
    ) -> Bool {
        let begin = file.start + probe.begin - session.started
        let end = file.start + probe.end - session.started
        return begin < end && begin > -60 && end <= durationLimit
    }
}

extension Footage {
    /// Places the files that have a probe on the session's clock.
    ///
    /// `probes` has as many elements as the session has files.
    ///
    /// - Throws: `ComposeError` if no file remains.
    init(_ session: RecordedSession, probes: [Probe?]) throws(ComposeError) {
        let usable = zip(session.files, probes).compactMap { file, probe in
            probe.map { (file, $0) }
        }
        let begins = usable.map { file, probe in file.start + probe.begin }
        // A participant's clock may place its first media before the start of the recording.
        let origin = min(session.started, begins.min() ?? session.started)
        let clips = usable.map { file, probe in Clip(session, file, probe, since: origin) }
        let last = clips.map(\.span.upperBound).max() ?? 0
        let duration = max(session.stopped.map { $0 - origin } ?? 0, last)
        guard !clips.isEmpty, last > 0 else {
            throw ComposeError("there is nothing to compose: no file can be used")
        }
        guard duration <= Self.durationLimit else {
            throw ComposeError("the session is longer than 24 hours")
        }
        self.init(clips: clips, origin: origin, duration: duration)
    }
}

extension Clip {
    fileprivate init(
        _ session: RecordedSession,
        _ file: RecordedFile,
        _ probe: Probe,
        since origin: Double
    ) {
        let begin = file.start + probe.begin - origin
        let end = max(begin, file.start + probe.end - origin)
        let gaps = (file.gaps ?? []).compactMap { gap -> Range<Double>? in
            let from = gap.start - origin
            let until = gap.end.map { $0 - origin } ?? end
            return from < until ? from..<until : nil
        }
        self.init(
            path: file.path,
            participant: file.participant,
            isVideo: file.kind == "video",
            isScreen: file.source == "screen",
            span: begin..<end,
            gaps: gaps,
            size: file.kind == "video" ? Self.largest(session, file, probe) : nil
        )
    }

    /// Returns the largest picture size given by events or by the file's header.
    private static func largest(
        _ session: RecordedSession,
        _ file: RecordedFile,
        _ probe: Probe
    ) -> PixelSize? {
        var largest = probe.size
        let times = (file.start + probe.begin - 1)...(file.start + max(probe.begin, probe.end))
        for event in session.events
        where event.type == "size" && event.stream == file.stream && times.contains(event.time) {
            guard let width = event.width, let height = event.height,
                (1...16_384).contains(width), (1...16_384).contains(height)
            else { continue }
            let size = PixelSize(width: width, height: height)
            if size.area > largest?.area ?? 0 { largest = size }
        }
        return largest
    }
}
