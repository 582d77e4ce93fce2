import JSON
import RTP
import Testing

@testable import Nodes

/// Removals from the registry by the first of the nodes, in hours of virtual time.
@Suite struct TidyingTests {
    /// The node `b`, and a registry that answers at once.
    private struct Rig {
        var cluster: Cluster
        var now = Instant(nanoseconds: 1_000_000_000)
        /// Another node that lives.
        var other: String?
        /// Whether the broker removes marks.
        var forgets = true
        var asked = 0
        /// Marks that were removed, each with its key and revision.
        var forgotten: [String] = []
        /// Rooms that have journals, and those whose journals were removed, each with the sequence
        /// before which that was.
        var journals: [String] = []
        var purged: [String] = []
        private var revision: UInt64 = 0

        init() {
            let setup = NodeSetup(
                name: NodeWorld.name("b"),
                boot: "life1",
                link: "127.0.0.1:7000",
                fingerprint: "b"
            )
            cluster = Cluster(setup, rooms: [:], at: now)
            cluster.receive(.snapshot, at: now)
            cluster.receive(.complete, at: now)
        }

        mutating func run(seconds: Int64) {
            for _ in 0..<seconds * 2 {
                now = now.advanced(milliseconds: 500)
                beatOfOther()
                cluster.expire(at: now)
                carryOut()
            }
        }

        private mutating func beatOfOther() {
            guard let other else { return }
            let record = MemberRecord(boot: "life2", link: "127.0.0.1:7001", fingerprint: "other")
            note(RegistryKey.member(NodeWorld.name(other)).text, JSON.encoded(record))
        }

        /// Removes a room's record; returns the mark that stays.
        mutating func remove(_ room: String) -> String {
            let key = RegistryKey.room(room).text
            note(key, nil)
            return "\(key) \(revision)"
        }

        /// Writes the record of a room that the other node has.
        mutating func make(_ room: String) {
            let home = NodeWorld.name(other ?? "c")
            let record = RoomRecord(home: home, boot: "life2", term: 1)
            note(RegistryKey.room(room).text, JSON.encoded(record))
        }

        private mutating func note(_ key: String, _ value: [UInt8]?) {
            revision += 1
            cluster.receive(.entry(key: key, revision: revision, value: value), at: now)
        }

        private mutating func carryOut() {
            var output = cluster.takeOutput()
            while !output.isEmpty {
                for case .registry(let request) in output { carryOut(request) }
                output = cluster.takeOutput()
            }
        }

        private mutating func carryOut(_ request: RegistryRequest) {
            switch request {
            case .write(let number, let key, let value, _):
                note(key, value)
                cluster.receive(.outcome(.stored(revision: revision), of: number), at: now)
            case .forget(let number, let key, let revision):
                asked += 1
                if forgets { forgotten.append("\(key) \(revision)") }
                let outcome: RegistryOutcome = forgets ? .stored(revision: revision) : .failed
                cluster.receive(.outcome(outcome, of: number), at: now)
            case .journals(let number):
                cluster.receive(.outcome(.journals(journals, last: 70), of: number), at: now)
            case .purge(let room, let sequence): purged.append("\(room) \(sequence)")
            case .read, .append, .last, .journal, .watchAgain: break
            }
        }
    }

    @Test func `the mark of a removed record goes after an hour`() {
        var rig = Rig()
        rig.run(seconds: 1)
        let marks = [rig.remove("r"), rig.remove("other")]
        rig.run(seconds: 3_590)
        #expect(rig.forgotten == [])
        rig.run(seconds: 20)
        #expect(rig.forgotten == marks)
        #expect(rig.cluster.leftovers.marks == [])
    }

    @Test func `marks go one by one, and none for ten minutes after a failure`() {
        var rig = Rig()
        rig.run(seconds: 1)
        let marks = (0..<120).map { rig.remove("r\($0)") }
        rig.forgets = false
        rig.run(seconds: 3_800)
        #expect(rig.asked == 1)
        rig.forgets = true
        rig.run(seconds: 600)
        #expect(rig.asked == 121 && Set(rig.forgotten) == Set(marks))
    }

    @Test func `all but the first node leave the marks to it`() {
        var rig = Rig()
        rig.other = "a"
        rig.run(seconds: 1)
        _ = rig.remove("r")
        rig.run(seconds: 7_220)
        #expect(rig.asked == 0)
        #expect(rig.cluster.leftovers.marks == [])
    }

    @Test func `journals of rooms that are no more go, and none of a room that is there`() {
        var rig = Rig()
        rig.other = "c"
        rig.run(seconds: 1)
        rig.make("known")
        rig.journals = ["known", "late", "stray"]
        rig.run(seconds: 605)
        // Its home has claimed the name and begun the journal before the list was made.
        rig.make("late")
        rig.run(seconds: 50)
        #expect(rig.purged == [])
        rig.run(seconds: 10)
        #expect(rig.purged == ["stray 71"])
        rig.journals = ["known", "late"]
        rig.run(seconds: 1_300)
        #expect(rig.purged.count == 1)
    }

    @Test func `many journals go a few at a time, and none while the registry is away`() {
        var rig = Rig()
        rig.run(seconds: 1)
        rig.journals = (0..<25).map { "r\($0)" }
        rig.run(seconds: 605)
        rig.cluster.receive(.away("silence"), at: rig.now)
        rig.cluster.receive(.snapshot, at: rig.now)
        rig.cluster.receive(.complete, at: rig.now)
        rig.run(seconds: 100)
        #expect(rig.purged == [], "they are listed again")
        rig.run(seconds: 556)
        #expect(rig.purged.count == 10)
        rig.run(seconds: 60)
        #expect(rig.purged.count == 25 && Set(rig.purged).count == 25)
    }

    @Test func `a registry that is read again tells its marks again`() {
        var rig = Rig()
        rig.run(seconds: 1)
        _ = rig.remove("r")
        rig.cluster.receive(.snapshot, at: rig.now)
        rig.cluster.receive(.complete, at: rig.now)
        rig.run(seconds: 3_700)
        #expect(rig.asked == 0)
    }
}
