import Foundation
import RTP
import Testing

@testable import SFU

/// What a viewer of three encodings sees through paths of several rates.
struct LayerFollowingTests {
    @Test func explore() throws {
        let environment = ProcessInfo.processInfo.environment
        let rate = Double(environment["RATE"] ?? "600")! * 1e3
        let end = Double(environment["END"] ?? "30")!
        let isFull = environment["SHORT"] == nil
        for seed in 1...(UInt64(environment["SEEDS"] ?? "1")!) {
            var settings = LayeredCall.Settings()
            settings.capacity = [(0, rate)]
            if let then = environment["THEN"] {
                for part in then.split(separator: ",") {
                    let two = part.split(separator: ":")
                    settings.capacity.append((Double(two[0])!, Double(two[1])! * 1e3))
                }
            }
            if let rates = environment["RATES"] {
                settings.rates = rates.split(separator: ",").map { Double($0)! * 1e3 }
            }
            if let fps = environment["FPS"] { settings.framesPerSecond = Int(fps)! }
            var call = try LayeredCall(settings, seed: seed)
            call.run(until: end)
            print("== seed", seed, "changes", call.changes.map { "\($0.second):\($0.width)" })
            let longest = zip(call.viewer.frames, call.viewer.frames.dropFirst()).map {
                (Double($1.time - $0.time) / 1e6, Double($1.time) / 1e9)
            }.max { $0.0 < $1.0 }
            print(
                "   stands", call.stands(in: 0...end), "longest", longest ?? (0, 0), "silent",
                call.silentShare(0...end, bufferMilliseconds: 150), "dropped",
                call.link.bottleneck.dropped, "rtx", call.viewer.retransmissions, "padding",
                call.viewer.padding, "plis", call.viewer.keyframesAsked, "keyframes",
                call.source.keyframes
            )
            if isFull {
                let start = call.call.now.nanoseconds - Int64(call.second * 1e9)
                if let explained = call.call.core.explain(
                    SlotID(index: 0, generation: 1),
                    at: call.call.now
                ) {
                    for turn in explained.decisions {
                        print(
                            "   turn", Double(turn.at.nanoseconds - start) / 1e9,
                            turn.from?.width ?? 0, "->", turn.to?.width ?? 0, turn.cause
                        )
                    }
                    print("   limit", explained.limit, "needed", explained.needed ?? 0)
                }
                for event in call.call.takeEvents() {
                    if case .videoHeld(_, _, let reason) = event { print("   held", reason as Any) }
                }
                for note in call.notes { print("   ", note) }
            }
        }
    }
}
