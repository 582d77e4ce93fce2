import Kernel
import RTP
import SFU
import Testing

@testable import Daemon

/// The memory of a life, and whether the next one goes on from it.
@Suite struct LifeMemoryTests {
    static let shape = LifeMemory.Shape(workers: 2, transports: 4, slots: 8, addresses: 7)
    static let begin = Instant(nanoseconds: 1_000_000_000_000)

    /// Memory of a life that can be continued.
    static func memory(
        life: UInt64 = 1,
        suspicion: UInt64 = 0,
        _ identity: DTLSIdentity? = nil
    ) throws -> LifeMemory {
        let memory = try LifeMemory(shape, life: life, suspicion: suspicion, at: begin)
        memory.save(try identity ?? DTLSIdentity())
        memory.publish(.usable)
        return memory
    }

    /// A change of the memory, and why it is not continued then.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var shape = LifeMemoryTests.shape
        var refusal: PreviousLife.Refusal?
        var change: @Sendable (LifeMemory) -> Void = { _ in }
    }

    static let rows: [Row] = [
        Row(testDescription: "it was killed"),
        Row(testDescription: "it has handed over") { $0.publish(.handedOver) },
        Row(testDescription: "it had not begun", refusal: .nothing) { $0.publish(.new) },
        Row(testDescription: "another life went on", refusal: .nothing) { $0.publish(.consumed) },
        Row(testDescription: "an unknown state", refusal: .nothing) { life in
            life.memory.publish(9, at: 16)
        },
        Row(testDescription: "other memory", refusal: .damaged) { $0.memory.publish(1, at: 0) },
        Row(testDescription: "a later format", refusal: .otherFormat) { life in
            life.memory.publish(2, at: 8)
        },
        Row(
            testDescription: "another worker",
            shape: LifeMemory.Shape(workers: 3, transports: 4, slots: 8, addresses: 7),
            refusal: .otherConfiguration
        ),
        Row(
            testDescription: "another limit",
            shape: LifeMemory.Shape(workers: 2, transports: 5, slots: 8, addresses: 7),
            refusal: .otherConfiguration
        ),
        Row(
            testDescription: "another address",
            shape: LifeMemory.Shape(workers: 2, transports: 4, slots: 8, addresses: 8),
            refusal: .otherConfiguration
        ),
        Row(testDescription: "no certificate", refusal: .damaged) { $0.memory.publish(0, at: 80) },
        Row(testDescription: "an endless certificate", refusal: .damaged) { life in
            life.memory.publish(.max, at: 80)
        },
        Row(testDescription: "a spoilt certificate", refusal: .damaged) { life in
            life.memory.publish(0x5a5a, at: 128)
        },
    ]

    @Test("only a whole life of the same shape is continued", arguments: rows)
    func refusal(row: Row) throws {
        let memory = try Self.memory()
        row.change(memory)
        var refusal: PreviousLife.Refusal?
        do throws(PreviousLife.Refusal) {
            _ = try PreviousLife(memory.memory, row.shape, at: Self.begin)
        } catch {
            refusal = error
        }
        #expect(refusal == row.refusal)
    }

    @Test("the next life has the same certificate, and nobody goes on twice")
    func once() throws {
        let identity = try DTLSIdentity()
        let memory = try Self.memory(life: 3, identity)
        let previous = try PreviousLife(memory.memory, Self.shape, at: Self.begin)
        #expect(previous.identity.fingerprint == identity.fingerprint)
        #expect(previous.life == 3)
        previous.consume()
        #expect(throws: PreviousLife.Refusal.nothing) {
            try PreviousLife(memory.memory, Self.shape, at: Self.begin)
        }
    }

    @Test("what kills each life that begins to go on from it is given up")
    func attempts() throws {
        let memory = try Self.memory(life: 3)
        for _ in 0..<3 {
            _ = try PreviousLife(memory.memory, Self.shape, at: Self.begin)
        }
        #expect(throws: PreviousLife.Refusal.poison) {
            try PreviousLife(memory.memory, Self.shape, at: Self.begin)
        }
    }

    /// How lives end, one after the other.
    enum End: Sendable {
        /// By a signal from outside, after so many milliseconds.
        case kill(Int64)
        case fault(Int64)
        case upgrade(Int64)
    }

    struct Story: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var ends: [End]
        /// Number of the life that does not go on; `nil` if all do.
        var cleanAfter: Int?
    }

    static let stories: [Story] = [
        // The first life had nothing to go on with, so its end says nothing of the calls.
        Story(testDescription: "a fault at once", ends: [.fault(10), .fault(10)]),
        Story(
            testDescription: "two faults after going on",
            ends: [.fault(10), .fault(29_999), .fault(29_999)],
            cleanAfter: 3
        ),
        Story(
            testDescription: "faults with a quiet time between",
            ends: [.fault(10), .fault(10), .fault(30_001), .fault(10), .fault(30_001)]
        ),
        Story(
            testDescription: "kills in quick succession",
            ends: [End](repeating: .kill(999), count: 7),
            cleanAfter: 7
        ),
        Story(
            testDescription: "kills now and then",
            ends: [End](repeating: .kill(1_000), count: 50)
        ),
        Story(
            testDescription: "kills with an upgrade among them",
            ends: [.kill(10), .kill(10), .kill(10), .kill(10), .kill(10), .upgrade(10)]
                + [.kill(10), .kill(10), .kill(10), .kill(10), .kill(10)]
        ),
        Story(
            testDescription: "upgrades in quick succession",
            ends: [End](repeating: .upgrade(5), count: 50)
        ),
    ]

    @Test("calls that end lives are given up, and no others", arguments: stories)
    func poison(story: Story) throws {
        let identity = try DTLSIdentity()
        var (life, suspicion, cleanAfter): (UInt64, UInt64, Int?) = (1, 0, nil)
        for (number, end) in story.ends.enumerated() where cleanAfter == nil {
            let memory = try Self.memory(life: life, suspicion: suspicion, identity)
            let milliseconds: Int64
            switch end {
            case .kill(let time): milliseconds = time
            case .fault(let time):
                memory.noteFault()
                milliseconds = time
            case .upgrade(let time):
                memory.publish(.handedOver)
                milliseconds = time
            }
            do throws(PreviousLife.Refusal) {
                let now = Self.begin.advanced(milliseconds: milliseconds)
                let previous = try PreviousLife(memory.memory, Self.shape, at: now)
                (life, suspicion) = (previous.life + 1, previous.suspicion)
            } catch {
                #expect(error == .poison)
                cleanAfter = number + 1
            }
        }
        #expect(cleanAfter == story.cleanAfter)
    }
}
