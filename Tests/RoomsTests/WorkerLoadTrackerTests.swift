import RTP
import Testing

@testable import Rooms
@testable import WorkerInterface

/// Admission by the workers' measured load.
struct WorkerLoadTrackerTests {
    /// One step of a story: a report or an admission request with its outcome.
    enum Step: Sendable {
        case told(worker: Int, busy: Int, WorkerOverload.Step, transports: Int)
        case passed(seconds: Int)
        case admitted(Int)
        case refused(load: Int)
    }

    struct Story: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var workers = 1
        var limit = 85
        var steps: [Step]
    }

    static let stories = [
        Story(testDescription: "nothing is known", steps: [.admitted(1_000)]),
        Story(
            testDescription: "a worker that says no more",
            steps: [
                .told(worker: 0, busy: 91, .joins, transports: 100), .refused(load: 91),
                .told(worker: 0, busy: 74, .none, transports: 100), .admitted(1),
            ]
        ),
        Story(
            testDescription: "a crowd counts before it is measured",
            steps: [
                .told(worker: 0, busy: 50, .none, transports: 100), .admitted(70),
                .refused(load: 85), .passed(seconds: 5), .admitted(70), .refused(load: 85),
            ]
        ),
        Story(
            testDescription: "what one costs is not known of few",
            steps: [.told(worker: 0, busy: 80, .none, transports: 2), .admitted(200)]
        ),
        Story(
            testDescription: "another worker has room",
            workers: 2,
            steps: [
                .told(worker: 0, busy: 95, .video, transports: 100), .admitted(1),
                .told(worker: 1, busy: 90, .joins, transports: 100), .refused(load: 90),
            ]
        ),
        Story(
            testDescription: "at 100 only harm counts",
            limit: 100,
            steps: [
                .told(worker: 0, busy: 99, .none, transports: 100), .admitted(500),
                .told(worker: 0, busy: 99, .layers, transports: 100), .refused(load: 99),
            ]
        ),
    ]

    @Test(arguments: stories)
    func `lets in by what was measured`(_ story: Story) throws {
        var book = WorkerLoadTracker(workers: story.workers, loadPercent: story.limit)
        var now = Instant(nanoseconds: 5_000_000_000)
        var refused: UInt64 = 0
        for step in story.steps {
            switch step {
            case .told(let worker, let busy, let what, let transports):
                var pressure = WorkerOverload()
                pressure.busyPercent = busy
                pressure.step = what
                book.note(pressure, transports: transports, of: worker)
            case .passed(let seconds): now = now.advanced(milliseconds: Int64(seconds) * 1_000)
            case .admitted(let count):
                for _ in 0..<count { try book.admit(at: now) }
            case .refused(let load):
                refused += 1
                let error = #expect(throws: CallError.self) { try book.admit(at: now) }
                #expect(error?.code == 4029)
                #expect(error?.details["load"] == .number(load))
                #expect(error?.details["value"] == .number(story.limit))
            }
        }
        let counted = book.refused
        #expect(counted == refused)
    }
}
