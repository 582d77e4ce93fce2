import RTP

@testable import Rooms
@testable import SFU

/// People with a microphone and a speech detector each, and a room with one active speaker.
struct Conversation {
    var runs: [DetectorRun]
    var ranking = ActiveSpeakerRanking()
    /// Active speakers by the time, in milliseconds, at which each was selected.
    var heard: [(at: Int, person: Int)] = []

    /// Number of changes of the list, its first entry not counted.
    var switches: Int { max(0, heard.count - 1) }

    init(_ microphones: [[AudioLevel?]]) {
        runs = microphones.map { _ in DetectorRun() }
        var said = microphones.map { _ in 0 }
        for step in 0..<(microphones.map(\.count).max() ?? 0) {
            for person in runs.indices {
                runs[person].hear([microphones[person][step]])
                for (_, change) in runs[person].changes[said[person]...] {
                    if change == .stopped {
                        ranking.stopped("\(person)")
                    } else {
                        ranking.started("\(person)")
                    }
                    note(at: step)
                }
                said[person] = runs[person].changes.count
            }
        }
    }

    /// Returns the dominant speaker at each step.
    func dominant(steps: Int) -> [Int?] {
        var changes = heard[...]
        var person: Int?
        return (0..<steps).map { step in
            while let next = changes.first, next.at <= step * LevelTraces.stepMilliseconds {
                person = next.person
                changes.removeFirst()
            }
            return person
        }
    }

    private mutating func note(at step: Int) {
        let first = ranking.list(limit: 1, pins: [], excluding: nil).first
        guard let first, let person = Int(first.participant) else { return }
        guard heard.last?.person != person else { return }
        heard.append((step * LevelTraces.stepMilliseconds, person))
    }
}
