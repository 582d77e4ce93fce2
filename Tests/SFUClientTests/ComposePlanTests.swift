import TestSupport
import Testing

@testable import sfuctl

@Suite struct ComposePlanTests {
    /// The layout over time, in words: `(a)` without a camera, `a*` for the last speaker.
    typealias Looks = [String]

    private static func video(
        _ who: String,
        _ span: Range<Double>,
        gaps: [Range<Double>] = []
    )
        -> Clip
    {
        Clip(path: "\(who).webm", participant: who, isVideo: true, span: span, gaps: gaps)
    }

    private static func screen(_ who: String, _ span: Range<Double>) -> Clip {
        Clip(path: "\(who)-s.webm", participant: who, isVideo: true, isScreen: true, span: span)
    }

    private static func sound(_ who: String, _ span: Range<Double>) -> Clip {
        Clip(path: "\(who)-a.webm", participant: who, isVideo: false, span: span)
    }

    private static func event(_ time: Double, _ type: String, _ who: String) -> RecordedEvent {
        RecordedEvent(time: 1_000 + time, type: type, participant: who)
    }

    private static func talkers(_ time: Double, _ who: String...) -> RecordedEvent {
        RecordedEvent(time: 1_000 + time, type: "talkers", talkers: who)
    }

    private static func pins(_ time: Double, _ who: String...) -> RecordedEvent {
        RecordedEvent(time: 1_000 + time, type: "pins", pins: who)
    }

    /// A session of 20 s that began at the Unix second 1000.
    struct Story: Sendable {
        var clips: [Clip]
        var events: [RecordedEvent] = []
        var layout = ComposeLayout.grid

        var plan: ComposePlan {
            let session = RecordedSession(
                version: 1,
                recording: "rec",
                room: "r",
                started: 1_000,
                stopped: 1_020,
                files: [],
                events: events
            )
            let footage = Footage(clips: clips, origin: 1_000, duration: 20)
            return ComposePlan(session, footage, ComposeOptions(layout: layout))
        }

        var looks: Looks {
            plan.segments.map { segment in
                let names = segment.tiles.map { tile in
                    let name = tile.face.clip == nil ? "(\(tile.face.name))" : tile.face.name
                    return tile.face.isTalking ? "\(name)*" : name
                }
                return (["\(segment.frames.lowerBound)"] + names).joined(separator: " ")
            }
        }
    }

    static let stories: [Row<Story, Looks>] = [
        Row("one camera", Story(clips: [video("a", 0..<20)]), ["0 a"]),
        Row(
            "black before and behind",
            Story(clips: [video("a", 5..<15)]),
            ["0", "150 a", "450"]
        ),
        Row(
            "there before the camera, and after it",
            Story(
                clips: [video("a", 5..<15)],
                events: [event(2, "joined", "a"), event(18, "left", "a")]
            ),
            ["0", "60 (a)", "150 a", "450 (a)", "540"]
        ),
        Row(
            "an audience that sends nothing is not seen",
            Story(
                clips: [sound("a", 0..<20)],
                events: [event(1, "joined", "viewer"), event(3, "joined", "a")]
            ),
            ["0 (a)"]
        ),
        Row(
            "in the order of coming",
            Story(clips: [video("b", 0..<20), video("a", 4..<20), video("c", 4..<20)]),
            ["0 b", "120 b a c"]
        ),
        Row(
            "a muted camera shows the name",
            Story(clips: [video("a", 0..<20, gaps: [5..<8])]),
            ["0 a", "150 (a)", "240 a"]
        ),
        Row(
            "a mute of half a second does not flicker",
            Story(clips: [video("a", 0..<20, gaps: [5..<5.5])]),
            ["0 a"]
        ),
        Row(
            "a camera soon after the join comes with it",
            Story(
                clips: [video("a", 0..<20), video("b", 5.4..<20)],
                events: [event(5, "joined", "b")]
            ),
            ["0 a", "150 a b"]
        ),
        Row(
            "what changes in the last second does not",
            Story(clips: [video("a", 0..<20), video("b", 0..<19.5)]),
            ["0 a b"]
        ),
        Row(
            "who speaks is marked",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20)],
                events: [talkers(4, "b"), talkers(8, "a", "b"), talkers(12)]
            ),
            ["0 a b", "120 a b*", "240 a* b", "360 a b"]
        ),
        Row(
            "a word in between is not followed",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20)],
                events: [talkers(4, "b"), talkers(8, "a", "b"), talkers(8.6, "b", "a")]
            ),
            ["0 a b", "120 a b*"]
        ),
        Row(
            "a screen has a tile, before all others",
            Story(clips: [video("a", 0..<20), screen("a", 6..<12)]),
            ["0 a", "180 a (screen) a", "360 a"]
        ),
        Row(
            "a codec changes: another file",
            Story(clips: [video("a", 0..<10), video("a", 10..<20)]),
            ["0 a", "300 a"]
        ),
        Row(
            "gone and back",
            Story(
                clips: [video("a", 0..<20), video("b", 2..<6), video("b", 12..<20)],
                events: [event(2, "joined", "b"), event(6, "left", "b"), event(12, "joined", "b")]
            ),
            ["0 a", "60 a b", "180 a", "360 a b"]
        ),
        Row(
            "the stage is the talker's, and stays when that one falls silent",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20), video("c", 0..<20)],
                events: [talkers(4, "b"), talkers(8)],
                layout: .stage
            ),
            ["0 a b c", "120 b* a c", "240 b a c"]
        ),
        Row(
            "the stage is free again when its talker leaves",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<10)],
                events: [talkers(4, "a"), talkers(6, "b", "a")],
                layout: .stage
            ),
            ["0 a b", "120 a* b", "180 b* a", "300 a"]
        ),
        Row(
            "the screen has the stage",
            Story(
                clips: [video("a", 0..<20), screen("a", 6..<12)],
                layout: .stage
            ),
            ["0 a", "180 a (screen) a", "360 a"]
        ),
        Row(
            "the two who spoke last are side by side",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20), video("c", 0..<20)],
                events: [talkers(4, "c"), talkers(8, "b", "c")],
                layout: .sideBySide
            ),
            ["0 a b", "120 a c*", "240 b* c"]
        ),
    ]

    static let pinned: [Row<Story, Looks>] = [
        Row(
            "those who are pinned are on the stage, side by side, whoever talks",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20), video("c", 0..<20)],
                events: [pins(4, "c", "b"), talkers(8, "a"), pins(12, "b"), pins(16)],
                layout: .stage
            ),
            ["0 a b c", "120 c b a", "240 c b a*", "360 b a* c", "480 a* b c"]
        ),
        Row(
            "the screen and those who are pinned have the stage",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20), screen("a", 6..<12)],
                events: [pins(3, "b")],
                layout: .stage
            ),
            ["0 a b", "90 b a", "180 a (screen) b a", "360 b a"]
        ),
        Row(
            "a pinned person without a picture leaves the stage to the talker",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20, gaps: [8..<12])],
                events: [pins(4, "b")],
                layout: .stage
            ),
            ["0 a b", "120 b a", "240 a (b)", "360 b a"]
        ),
        Row(
            "pinned people come before the talkers in halves",
            Story(
                clips: [video("a", 0..<20), video("b", 0..<20), video("c", 0..<20)],
                events: [pins(4, "c"), talkers(8, "b")],
                layout: .sideBySide
            ),
            ["0 a b", "120 a c", "240 b* c"]
        ),
    ]

    @Test(arguments: stories + pinned)
    func `shows who is there`(_ row: Row<Story, Looks>) {
        #expect(row.input.looks == row.output)
    }

    @Test(arguments: [UInt64](1...20))
    func `a random session is covered without gap or flicker`(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        func time() -> Double { Double.random(in: 0..<20, using: &random) }
        var story = Story(clips: [Self.video("a", 0..<20)])
        story.layout = ComposeLayout.allCases.randomElement(using: &random) ?? .grid
        for _ in 0..<30 {
            let (begin, end) = (time(), time())
            let who = ["a", "b", "c", "d"].randomElement(using: &random) ?? "a"
            if begin < end {
                story.clips.append(
                    Self.video(who, begin..<end, gaps: [begin..<(begin + end) / 2])
                )
            }
            story.events.append(Self.event(time(), "joined", who))
            story.events.append(Self.event(time(), "left", who))
            story.events.append(Self.talkers(time(), who))
        }
        let segments = story.plan.segments
        #expect(segments.first?.frames.lowerBound == 0)
        #expect(segments.last?.frames.upperBound == 600)
        for (segment, next) in zip(segments, segments.dropFirst()) {
            #expect(segment.frames.upperBound == next.frames.lowerBound)
            #expect(segment.tiles != next.tiles)
        }
        #expect(segments.allSatisfy { $0.frames.count >= ComposePlan.shortest })
    }
}

@Suite struct TileLayoutTests {
    static let canvas = PixelSize(width: 1_280, height: 720)

    private static func scene(_ people: Int, screens: Int = 0, pins: Int = 0) -> Scene {
        let faces = (0..<people).map { Face(participant: "p\($0)", name: "P", clip: $0) }
        let shared = (0..<screens).map { Face(participant: "p\($0)", name: "S", isScreen: true) }
        let pinned = (0..<pins).map { "p\(17 - $0)" }
        return Scene(faces: faces + shared, recency: ["p19", "p18"], pins: pinned)
    }

    static let sizes = [
        canvas, PixelSize(width: 320, height: 180), PixelSize(width: 1_920, height: 1_080),
        PixelSize(width: 720, height: 1_280), PixelSize(width: 640, height: 482),
    ]

    @Test(arguments: ComposeLayout.allCases, sizes)
    func `tiles are even, apart and inside`(_ kind: ComposeLayout, _ size: PixelSize) {
        for people in 0...20 {
            for (screens, pins) in [(0, 0), (1, 0), (2, 0), (0, 18), (1, 18)] {
                let tiles = TileLayout(kind: kind, size: size)
                    .tiles(Self.scene(people, screens: screens, pins: pins))
                let rects = tiles.flatMap { [$0.picture, $0.label] }
                for (index, rect) in rects.enumerated() {
                    let isEven = [rect.x, rect.y, rect.width, rect.height]
                        .allSatisfy { $0.isMultiple(of: 2) && $0 >= 0 }
                    #expect(isEven && rect.width > 0 && rect.height > 0)
                    #expect(rect.x + rect.width <= size.width)
                    #expect(rect.y + rect.height <= size.height)
                    for other in rects[..<index] {
                        let isApart =
                            rect.x >= other.x + other.width || other.x >= rect.x + rect.width
                            || rect.y >= other.y + other.height || other.y >= rect.y + rect.height
                        #expect(isApart, "\(rect) and \(other)")
                    }
                }
            }
        }
    }

    static let counts: [Row<(ComposeLayout, Int, Int), Int>] = [
        Row("nobody", (.grid, 0, 0), 0),
        Row("a full grid", (.grid, 16, 0), 16),
        Row("more than a grid holds", (.grid, 20, 1), 16),
        Row("a stage alone", (.stage, 1, 0), 1),
        Row("a stage and a full row", (.stage, 20, 0), 7),
        Row("a screen on the stage", (.stage, 2, 1), 3),
        Row("two halves", (.sideBySide, 5, 0), 2),
        Row("a screen and a full column", (.sideBySide, 9, 1), 5),
        Row("a screen alone", (.sideBySide, 0, 1), 1),
    ]

    @Test(arguments: counts)
    func `has room for so many`(_ row: Row<(ComposeLayout, Int, Int), Int>) {
        let (kind, people, screens) = row.input
        let tiles = TileLayout(kind: kind, size: Self.canvas)
            .tiles(Self.scene(people, screens: screens))
        #expect(tiles.count == row.output)
    }

    @Test func `the last speaker is in a grid that is too small for all`() {
        let tiles = TileLayout(kind: .grid, size: Self.canvas).tiles(Self.scene(20))
        let seen = tiles.map(\.face.participant)
        #expect(seen == (0..<14).map { "p\($0)" } + ["p18", "p19"])
    }

    @Test func `V-10 pinned participants are seen before the last speakers`() {
        let scene = Self.scene(20, screens: 1, pins: 12)
        func seen(_ kind: ComposeLayout) -> [String] {
            TileLayout(kind: kind, size: Self.canvas).tiles(scene).map(\.face.participant)
        }
        // The screen of p0 comes first.
        let pinned = (6...17).map { "p\($0)" }
        #expect(seen(.grid) == ["p0", "p0"] + pinned + ["p18", "p19"])
        let large = ["p0"] + Array(pinned.reversed().prefix(8))
        #expect(Array(seen(.stage).prefix(9)) == large)
        #expect(seen(.stage).count == 15)
    }

    @Test func `a screen is the large tile`() {
        for kind in [ComposeLayout.stage, .sideBySide] {
            let tiles = TileLayout(kind: kind, size: Self.canvas)
                .tiles(Self.scene(4, screens: 1))
            let largest = tiles.max { $0.picture.size.area < $1.picture.size.area }
            #expect(largest?.face.isScreen == true)
        }
    }

    static let fits: [Row<(PixelSize, PixelSize), PixelSize>] = [
        Row(
            "the same shape",
            (PixelSize(width: 640, height: 360), canvas),
            canvas
        ),
        Row(
            "upright",
            (PixelSize(width: 360, height: 640), canvas),
            PixelSize(width: 406, height: 720)
        ),
        Row(
            "a line",
            (PixelSize(width: 16_384, height: 1), canvas),
            PixelSize(width: 1_280, height: 2)
        ),
    ]

    @Test(arguments: fits)
    func `keeps the shape`(_ row: Row<(PixelSize, PixelSize), PixelSize>) {
        #expect(row.input.0.fitted(into: row.input.1) == row.output)
    }
}
