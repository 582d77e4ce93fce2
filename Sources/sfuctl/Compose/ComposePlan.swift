import JSON

/// Layout of the composed video over time, with the files it uses.
struct ComposePlan: Equatable, Sendable {
    var options: ComposeOptions
    var clips: [Clip]
    /// Length of the video, in frames.
    var frames: Int
    /// Segments in order, without gaps.
    var segments: [Segment]

    /// Period with an unchanged set of tiles.
    struct Segment: Equatable, Sendable {
        /// Frames since the start of the session.
        var frames: Range<Int>
        var tiles: [Tile]
    }

    /// Frames a second.
    static let frameRate = 30
    /// Shortest segment, in frames; shorter ones would flicker.
    static let shortest = 30

    init(_ session: RecordedSession, _ footage: Footage, _ options: ComposeOptions) {
        self.options = options
        clips = footage.clips
        frames = max(1, Self.frame(footage.duration, .up))
        var stage = SessionState(session, footage)
        let layout = TileLayout(kind: options.layout, size: options.size)
        var looks: [(frame: Int, tiles: [Tile])] = [(0, [])]
        for (frame, changes) in Change.all(session, footage, stage.people) where frame < frames {
            for change in changes { stage.apply(change) }
            looks.append((frame, layout.tiles(stage.scene)))
        }
        segments = Self.mergingShortSegments(looks, frames: frames)
    }

    /// Returns the frame number at a second of the session.
    static func frame(_ seconds: Double, _ rule: FloatingPointRoundingRule) -> Int {
        let limit = Footage.durationLimit
        return Int((min(max(seconds, -limit), limit) * Double(frameRate)).rounded(rule))
    }

    /// Merges layout changes into segments of at least `shortest` frames.
    ///
    /// A change soon after another is shown from the first one on: a joining participant's camera
    /// starts a moment later, and a pause of half a second is ignored.
    private static func mergingShortSegments(
        _ looks: [(frame: Int, tiles: [Tile])],
        frames: Int
    ) -> [Segment] {
        var calm: [(frame: Int, tiles: [Tile])] = []
        for look in looks {
            if let last = calm.last, look.frame - last.frame < shortest {
                calm.removeLast()
                if calm.last?.tiles != look.tiles { calm.append((last.frame, look.tiles)) }
            } else if calm.last?.tiles != look.tiles {
                calm.append(look)
            }
        }
        if calm.count > 1, let last = calm.last, frames - last.frame < shortest {
            calm.removeLast()
        }
        return calm.indices.map { index in
            let end = index + 1 < calm.count ? calm[index + 1].frame : frames
            return Segment(frames: calm[index].frame..<end, tiles: calm[index].tiles)
        }
    }
}

/// Event that changes the visible participants.
private enum Change {
    case came(String)
    case left(String)
    /// The clip has samples from here on.
    case began(Int)
    case ended(Int)
    case talkers([String])
    case pins([String])

    /// Returns all changes, ordered by frame.
    static func all(
        _ session: RecordedSession,
        _ footage: Footage,
        _ people: [Person]
    ) -> [(frame: Int, changes: [Change])] {
        var changes: [Int: [Change]] = [:]
        func add(_ change: Change, _ seconds: Double) {
            changes[ComposePlan.frame(max(0, seconds), .toNearestOrEven), default: []]
                .append(change)
        }
        for person in people {
            for stay in person.stays {
                add(.came(person.participant), stay.lowerBound)
                add(.left(person.participant), stay.upperBound)
            }
        }
        for (index, clip) in footage.clips.enumerated() where clip.isVideo {
            for stretch in clip.stretches() {
                add(.began(index), stretch.lowerBound)
                add(.ended(index), stretch.upperBound)
            }
        }
        for event in session.events where event.type == "talkers" {
            add(.talkers(event.talkers ?? []), event.time - footage.origin)
        }
        for event in session.events where event.type == "pins" {
            add(.pins(event.pins ?? []), event.time - footage.origin)
        }
        return changes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}

/// Participants, clips, speakers and pins at one moment of the session.
private struct SessionState {
    /// All participants that ever appear, in the order in which they joined.
    let people: [Person]
    private let clips: [Clip]
    private var present: Set<String> = []
    private var live: Set<Int> = []
    private var talking: String?
    private var recency: [String] = []
    private var pins: [String] = []

    init(_ session: RecordedSession, _ footage: Footage) {
        people = Person.all(session, footage)
        clips = footage.clips
    }

    mutating func apply(_ change: Change) {
        switch change {
        case .came(let participant): present.insert(participant)
        case .left(let participant): present.remove(participant)
        case .began(let clip): live.insert(clip)
        case .ended(let clip): live.remove(clip)
        case .talkers(let talkers):
            talking = talkers.first
            recency = talkers + recency.filter { !talkers.contains($0) }
        case .pins(let pinned): pins = pinned
        }
    }

    var scene: Scene {
        // If a participant has several live camera clips, the one that started last is shown.
        let showing = live.sorted { clips[$0].span.lowerBound < clips[$1].span.lowerBound }
        var cameras: [String: Int] = [:]
        var screens: [String: Int] = [:]
        for clip in showing {
            if clips[clip].isScreen {
                screens[clips[clip].participant] = clip
            } else {
                cameras[clips[clip].participant] = clip
            }
        }
        let faces = people.filter { present.contains($0.participant) }.map { person in
            Face(
                participant: person.participant,
                name: person.name,
                isTalking: person.participant == talking,
                clip: cameras[person.participant]
            )
        }
        let names = Dictionary(people.map { ($0.participant, $0.name) }) { first, _ in first }
        let shared = showing.filter { screens[clips[$0].participant] == $0 }.map { clip in
            let participant = clips[clip].participant
            return Face(
                participant: participant,
                name: "\(names[participant] ?? participant) (screen)",
                isScreen: true,
                clip: clip
            )
        }
        return Scene(faces: faces + shared, recency: recency, pins: pins)
    }
}

extension Clip {
    /// Returns the parts of the span that have samples, ignoring gaps up to `shortest` seconds.
    func stretches(gapsOver shortest: Double = 0) -> [Range<Double>] {
        var stretches: [Range<Double>] = []
        var begin = span.lowerBound
        for gap in gaps where gap.upperBound - gap.lowerBound > shortest {
            if begin < gap.lowerBound { stretches.append(begin..<gap.lowerBound) }
            begin = gap.upperBound
        }
        if begin < span.upperBound { stretches.append(begin..<span.upperBound) }
        return stretches
    }
}
