import Testing

@testable import SFU
@testable import WorkerInterface

@Suite struct LadderTests {
    /// Three simulcast encodings with three temporal layers each.
    static let camera: [LayerOption] = [(320, 180, 150), (640, 360, 500), (1_280, 720, 1_500)]
        .enumerated().flatMap { encoding, size in
            [(7.5, 0.5), (15.0, 0.7), (30.0, 1.0)].enumerated().map { temporal, share in
                LayerOption(
                    target: LayerTarget(
                        encoding: EncodingIndex(encoding),
                        spatial: 0,
                        temporal: UInt8(temporal)
                    ),
                    width: size.0,
                    height: size.1,
                    frameRate: share.0,
                    bitrate: Int(Double(size.2) * 1_000 * share.1)
                )
            }
        }

    struct Row: CustomTestStringConvertible {
        var name: String
        var preference = LayerCap.none
        var roleCap = LayerCap.none
        var isScreen = false
        var options = LadderTests.camera
        /// Encoding and temporal layer of each rung, as two digits.
        var rungs: [Int]
        var limit = LayerLimit.none
        var testDescription: String { name }
    }

    static func cap(
        _ width: Int? = nil,
        _ height: Int? = nil,
        frames: Double? = nil,
        bits: Int? = nil
    ) -> LayerCap {
        LayerCap(width: width, height: height, frameRate: frames, bitrate: bits)
    }

    static let rows = [
        Row(name: "no cap", rungs: [0, 1, 2, 12, 22]),
        Row(
            name: "O-12 the highest within the preference",
            preference: cap(640, 360),
            rungs: [0, 1, 2, 12],
            limit: .preference
        ),
        Row(
            name: "O-12 a portrait viewer has the same long and short side",
            preference: cap(360, 640),
            rungs: [0, 1, 2, 12],
            limit: .preference
        ),
        Row(
            name: "O-12 between two sizes it is the lower",
            preference: cap(1_279, 720),
            rungs: [0, 1, 2, 12],
            limit: .preference
        ),
        Row(
            name: "O-12 nothing is so small: the lowest",
            preference: cap(160, 90),
            rungs: [0],
            limit: .preference
        ),
        Row(
            name: "O-12 fewer frames by temporal layers",
            preference: cap(frames: 15),
            rungs: [0, 1, 11, 21],
            limit: .preference
        ),
        Row(
            name: "an encoder a little faster than asked for",
            preference: cap(frames: 28),
            rungs: [0, 1, 2, 12, 22]
        ),
        Row(
            name: "R-1 never above a role's size",
            roleCap: cap(640, 480),
            rungs: [0, 1, 2, 12],
            limit: .role
        ),
        Row(
            name: "R-1 nor above its bitrate",
            roleCap: cap(bits: 400_000),
            rungs: [0, 1, 2],
            limit: .role
        ),
        Row(name: "R-1 all is above", roleCap: cap(100, 100), rungs: [], limit: .role),
        Row(
            name: "the preference is the tighter one",
            preference: cap(320, 180),
            roleCap: cap(640, 480),
            rungs: [0, 1, 2],
            limit: .preference
        ),
        Row(
            name: "a screen gives up frames before size",
            isScreen: true,
            rungs: [0, 10, 20, 21, 22]
        ),
        Row(name: "nothing is offered", options: [], rungs: []),
        Row(
            name: "without layers a preference means nothing",
            preference: cap(160, 90, frames: 5),
            options: [camera[8]],
            rungs: [22]
        ),
    ]

    @Test(arguments: rows)
    func `caps cut a ladder`(_ row: Row) {
        var ladder = Ladder()
        for option in row.options { ladder.offer(option) }
        ladder.build(
            within: Ladder.Bounds(
                preference: row.preference,
                roleCap: row.roleCap,
                isScreen: row.isScreen
            )
        )
        var rungs: [Int] = []
        for index in 0..<ladder.rungs.count {
            let target = ladder.rungs[index].target
            rungs.append(target.encoding.offset * 10 + Int(target.temporal))
        }
        let limit = ladder.limit
        #expect(rungs == row.rungs)
        #expect(limit == row.limit)
    }
}
