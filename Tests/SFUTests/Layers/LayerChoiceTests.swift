import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Layer selection under caps alone, and the number of keyframe requests.
struct LayerChoiceTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var preference = LayerCap.none
        var roleCap = LayerCap.none
        var isScreen = false
        /// Width, height, frame rate and kbit/s of each layer.
        var options = Self.simulcast
        var chosen: Int

        /// Three sizes with three frame rates each.
        static let simulcast: [(Int, Int, Double, Int)] = [
            (320, 180, 7.5, 80), (320, 180, 15, 110), (320, 180, 30, 150),
            (640, 360, 7.5, 250), (640, 360, 15, 370), (640, 360, 30, 500),
            (1_280, 720, 7.5, 800), (1_280, 720, 15, 1_200), (1_280, 720, 30, 1_700),
        ]
        static let portrait: [(Int, Int, Double, Int)] = simulcast.map { ($1, $0, $2, $3) }
        static let single: [(Int, Int, Double, Int)] = [(1_280, 720, 30, 1_700)]
        static let unknown: [(Int, Int, Double, Int)] = [(0, 0, 0, 0), (0, 0, 0, 0)]
    }

    static let rows: [Row] = [
        Row(testDescription: "no cap", chosen: 8),
        Row(
            testDescription: "a cap above all",
            preference: LayerCap(width: 1_920, height: 1_080),
            chosen: 8
        ),
        Row(
            testDescription: "exactly the top",
            preference: LayerCap(width: 1_280, height: 720),
            chosen: 8
        ),
        Row(
            testDescription: "a pixel less",
            preference: LayerCap(width: 1_279, height: 720),
            chosen: 5
        ),
        Row(testDescription: "by height alone", preference: LayerCap(height: 360), chosen: 5),
        Row(
            testDescription: "a portrait wish for a landscape",
            preference: LayerCap(width: 360, height: 640),
            chosen: 5
        ),
        Row(
            testDescription: "a landscape wish for a portrait",
            preference: LayerCap(width: 640, height: 360),
            options: Row.portrait,
            chosen: 5
        ),
        Row(
            testDescription: "below the lowest",
            preference: LayerCap(width: 160, height: 90),
            chosen: 0
        ),
        Row(testDescription: "fifteen frames", preference: LayerCap(frameRate: 15), chosen: 7),
        Row(testDescription: "a little below", preference: LayerCap(frameRate: 14), chosen: 7),
        Row(
            testDescription: "fewer frames than there are",
            preference: LayerCap(frameRate: 5),
            chosen: 0
        ),
        Row(
            testDescription: "size and frame rate",
            preference: LayerCap(width: 640, height: 360, frameRate: 10),
            chosen: 3
        ),
        Row(
            testDescription: "a stream without layers",
            preference: LayerCap(width: 64, height: 64),
            options: Row.single,
            chosen: 0
        ),
        Row(
            testDescription: "sizes unknown",
            preference: LayerCap(width: 64, height: 64),
            options: Row.unknown,
            chosen: 1
        ),
        Row(testDescription: "nothing there", options: [], chosen: -1),
        Row(
            testDescription: "the role's cap",
            roleCap: LayerCap(width: 640, height: 480),
            chosen: 5
        ),
        Row(
            testDescription: "the lower of wish and role",
            preference: LayerCap(width: 320, height: 180),
            roleCap: LayerCap(width: 640, height: 480),
            chosen: 2
        ),
        Row(
            testDescription: "a role's bits, a camera keeps its frames",
            roleCap: LayerCap(bitrate: 1_000_000),
            chosen: 5
        ),
        Row(
            testDescription: "a role's bits, a screen keeps its pixels",
            roleCap: LayerCap(bitrate: 1_000_000),
            isScreen: true,
            chosen: 6
        ),
    ]

    @Test(arguments: rows)
    func `O-12 a preference is a cap: the highest layer within it, else the lowest`(_ row: Row) {
        var ladder = Ladder()
        for (index, option) in row.options.enumerated() {
            ladder.offer(
                LayerOption(
                    target: LayerTarget(
                        encoding: EncodingIndex(index / 3),
                        spatial: 0,
                        temporal: UInt8(index % 3)
                    ),
                    width: option.0,
                    height: option.1,
                    frameRate: option.2,
                    bitrate: option.3 * 1_000
                )
            )
        }
        ladder.build(
            within: Ladder.Bounds(
                preference: row.preference,
                roleCap: row.roleCap,
                isScreen: row.isScreen
            )
        )
        let count = ladder.rungs.count
        let top = count > 0 ? ladder.rungs[count - 1].target : nil
        #expect(top.map { $0.encoding.offset * 3 + Int($0.temporal) } ?? -1 == row.chosen)
    }

    static func binding(_ preference: LayerCap, roleCap: LayerCap = .none) -> Binding {
        var binding = Binding(
            publication: PublicationID(index: 1, generation: 1),
            subscription: 7,
            open: true
        )
        binding.preference = preference
        binding.roleCap = roleCap
        return binding
    }

    /// Makes a simulcast publisher and a viewer; `change` is made after two of six seconds.
    static func layers(
        cap: LayerCap = .none,
        _ change: (inout Call) -> Void
    ) throws -> (received: [[UInt8]], layers: [String?]) {
        var call = try Call()
        var publication = Media.video(1, rids: ["q", "h", "f"])
        publication.cap = cap
        call.join(publications: [publication])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.apply(.bind(SlotID(index: 0, generation: 1), binding(.none)))
        var asked: Set<UInt32> = []
        for step in 0..<180 as Range<UInt16> {
            if step == 60 { change(&call) }
            for (layer, rid) in ["q", "h", "f"].enumerated() {
                let ssrc = 0x5000 + UInt32(layer)
                call.sendVideo(
                    ssrc: ssrc,
                    rid: rid,
                    sequence: step,
                    pictureID: step,
                    isKeyframe: step == 0 || asked.remove(ssrc) != nil,
                    width: 320 << UInt16(layer)
                )
            }
            call.run(milliseconds: 33)
            for report in call.peers[0].reports {
                var blocks = RTCPBlocks(report.span)
                while let block = blocks.next() {
                    guard block.type == RTCPType.payloadFeedback, block.count == 1 else { continue }
                    if let loss = try? PictureLossIndication(block) {
                        asked.insert(loss.media.rawValue)
                    }
                }
            }
            call.peers[0].reports = []
        }
        let layers = call.takeEvents().compactMap { event -> String?? in
            if case .layerChanged(_, _, _, let to) = event { .some(to?.rid) } else { nil }
        }
        return (call.peers[1].received, layers)
    }

    @Test func `O-12 a cap that changes is met without a new stream, and its end brings all back`()
        throws
    {
        let slot = SlotID(index: 0, generation: 1)
        let (received, layers) = try Self.layers { call in
            call.apply(.bind(slot, Self.binding(LayerCap(width: 640, height: 360))))
            call.run(milliseconds: 1)
        }
        #expect(layers.last == "h")
        let numbers = received.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        #expect(numbers.count >= 178)
        #expect(numbers.isContiguous)
        let (_, back) = try Self.layers { call in
            call.apply(.bind(slot, Self.binding(LayerCap(width: 640, height: 360))))
            call.apply(.bind(slot, Self.binding(.none)))
        }
        #expect(back.last == "f")
    }

    @Test func `R-1 a layer above the publisher's cap goes to nobody`() throws {
        let (_, layers) = try Self.layers(cap: LayerCap(width: 640, height: 480)) { _ in }
        #expect(layers.contains("h") && !layers.contains("f"))
        let (received, none) = try Self.layers(cap: LayerCap(width: 160, height: 90)) { _ in }
        #expect(none.isEmpty && received.isEmpty)
        let (later, changed) = try Self.layers { call in
            call.apply(.limit(PublicationID(index: 1, generation: 1), LayerCap(width: 400)))
        }
        #expect(changed.last == "q")
        #expect(later.count > 170)
    }

    /// Other warm pictures have taken all places, so that none is kept of this publisher.
    @Test func `L-8 a hundred joiners in a second cost two keyframes, and wait a second at most`()
        throws
    {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        for index in 0..<100 as Range<UInt32> {
            call.join(slots: [Media.slot(index, ssrc: 0xa000 + 2 * index)])
        }
        for index in 0...100 { call.connect(index) }
        var step: UInt16 = 0
        var isAsked = false
        var keyframes = 0
        var joined: [Int: Instant] = [:]
        var waits: [Int64] = []
        let send: (inout Call) -> Void = { call in
            if isAsked, step > 0 { keyframes += 1 }
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: isAsked || step == 0)
            isAsked = false
            step += 1
        }
        for time in 0..<5_000 {
            if time % 33 == 0 { send(&call) }
            call.core.receiver.pool.warmCount = call.core.receiver.pool.capacity
            if time >= 2_000, time < 3_000, time % 10 == 0 {
                let viewer = (time - 2_000) / 10
                joined[viewer] = call.now
                call.bind(slot: UInt32(viewer), publication: 1)
            }
            call.run(milliseconds: 1)
            if call.keyframeRequests(at: 0) > 0 { isAsked = true }
            call.peers[0].reports = []
            for (viewer, start) in joined where !call.peers[viewer + 1].received.isEmpty {
                waits.append(call.now.milliseconds(since: start))
                joined[viewer] = nil
            }
        }
        #expect(keyframes <= 2)
        #expect(waits.count == 100)
        #expect((waits.max() ?? .max) <= 1_000)
        let wishes = call.statistics().keyframeRequestCounts
        #expect(wishes.asked >= 1 && wishes.shared >= 90)
    }
}
