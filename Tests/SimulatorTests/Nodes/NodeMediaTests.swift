import Foundation
import TestSupport
import Testing

/// Rooms over nodes with their media, in virtual time.
@Suite struct NodeMediaTests {
    /// Seeds of the histories: as many as `SFUD_MEDIA_SEEDS` says, from `SFUD_MEDIA_FIRST` on.
    static let seeds: [UInt64] = {
        let first = UInt64(Trials.number("SFUD_MEDIA_FIRST", usually: 1))
        let count = Trials.number("SFUD_MEDIA_SEEDS", usually: Extent.count(12, short: 4))
        return Array(first..<first + UInt64(count))
    }()

    @Test(arguments: seeds)
    func `everybody plays after the faults, the muted are silent, and nothing is left`(
        seed: UInt64
    ) throws {
        let story = try NodeStory(seed: seed)
        var failures: [String] = []
        do {
            try story.play(acts: 12)
            try story.calm()
            try story.end()
        } catch {
            failures.append("\(error)")
        }
        failures += story.failures + story.daemon.violations
        guard !failures.isEmpty else { return }
        let text = (failures.prefix(60) + story.course).joined(separator: "\n")
        Issue.record("seed \(seed): \(text)")
    }
}
