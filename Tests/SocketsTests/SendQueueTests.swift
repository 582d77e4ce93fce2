import RTP
import TestSupport
import Testing

@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Queuing, dropping when not everything can be sent, and the order of the rest.
struct SendQueueTests {
    /// Datagrams as text: content (`v`, `a`, `o`), stream, timestamp and peer: `v1.7@2`.
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var datagrams = 4
        var bytes = 1 << 20
        var pushed: String
        var left: String
        /// Counts by content.
        var dropped: [DatagramContent: UInt64] = [:]
    }

    static let cases = [
        Case(testDescription: "all fit", pushed: "v1.1 a2.1 o v1.2", left: "v1.1 a2.1 o v1.2"),
        Case(
            testDescription: "the oldest frame of video goes, whole",
            pushed: "v1.1 a2.1 v1.1 v1.2 v1.3",
            left: "a2.1 v1.2 v1.3",
            dropped: [.video: 2]
        ),
        Case(
            testDescription: "what comes later of a frame that lost a part is dropped",
            pushed: "v1.1 v1.2 a2.1 o v1.2 v1.1",
            left: "v1.2 a2.1 o v1.2",
            dropped: [.video: 2]
        ),
        Case(
            testDescription: "the same frame to somebody else stays",
            pushed: "v1.1@1 v1.1@2 v1.1@1 v1.1@2 a2.1@1",
            left: "v1.1@2 v1.1@2 a2.1@1",
            dropped: [.video: 2]
        ),
        Case(
            testDescription: "audio drops video",
            pushed: "a2.1 a2.2 v1.1 a2.3 a2.4",
            left: "a2.1 a2.2 a2.3 a2.4",
            dropped: [.video: 1]
        ),
        Case(
            testDescription: "audio drops older audio where there is no video",
            pushed: "a2.1 a2.2 o a2.3 a2.4",
            left: "a2.2 o a2.3 a2.4",
            dropped: [.audio: 1]
        ),
        Case(
            testDescription: "video drops neither audio nor signalling",
            pushed: "a2.1 a2.2 o o v1.1 v1.1",
            left: "a2.1 a2.2 o o",
            dropped: [.video: 2]
        ),
        Case(
            testDescription: "audio drops no signalling",
            pushed: "o o o o a2.1",
            left: "o o o o",
            dropped: [.audio: 1]
        ),
        Case(
            testDescription: "signalling drops video, then audio, then older signalling",
            datagrams: 2,
            pushed: "a2.1 v1.1 o o o",
            left: "o o",
            dropped: [.video: 1, .audio: 1, .other: 1]
        ),
        Case(
            testDescription: "a frame larger than the queue leaves it empty",
            pushed: "v1.1 v1.1 v1.1 v1.1 v1.1 v1.1",
            left: "",
            dropped: [.video: 6]
        ),
        Case(
            testDescription: "bytes are bounded too",
            datagrams: 100,
            bytes: 3 * SendQueueTests.length,
            pushed: "v1.1 v1.1 a2.1 v1.2",
            left: "a2.1 v1.2",
            dropped: [.video: 2]
        ),
        Case(
            testDescription: "what is larger than all room is dropped",
            bytes: SendQueueTests.length - 1,
            pushed: "v1.1 a2.1 o",
            left: "",
            dropped: [.video: 1, .audio: 1, .other: 1]
        ),
    ]

    @Test(arguments: cases)
    func `video goes before audio and audio before signalling, in whole frames`(_ entry: Case) {
        let limits = SendQueueLimits(datagrams: entry.datagrams, bytes: entry.bytes)
        var queue = SendQueue(limits: limits)
        for word in entry.pushed.split(separator: " ") {
            Self.push(word, to: &queue, at: Instant(nanoseconds: 0))
        }
        let pushed = entry.pushed.split(separator: " ").count
        let kept = queue.count
        let bytes = queue.bytes
        let drops = queue.drops
        #expect(Self.take(&queue) == entry.left)
        #expect(kept == entry.left.split(separator: " ").count && bytes == kept * Self.length)
        for content in DatagramContent.allCases {
            #expect(drops[.full, content] == entry.dropped[content, default: 0], "\(content)")
        }
        #expect(drops.sum(.full) == UInt64(pushed - kept))
        let isEmpty = queue.isEmpty
        #expect(isEmpty)
    }

    @Test
    func `by importance signalling leaves first, then audio, then video`() {
        var queue = SendQueue(limits: SendQueueLimits(), order: .importance)
        for word in ["v1.1", "a2.1", "v1.1", "o", "a2.2", "o@2", "v1.2"] {
            Self.push(word, to: &queue, at: Instant(nanoseconds: 0))
        }
        #expect(Self.take(2, from: &queue) == ["o", "o@2"])
        Self.push("a2.3", to: &queue, at: Instant(nanoseconds: 0))
        #expect(Self.take(&queue) == "a2.1 a2.2 a2.3 v1.1 v1.1 v1.2")
    }

    struct Age: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var milliseconds: Int64
        var left: String
        var stale: UInt64
    }

    static let ages = [
        Age(testDescription: "in time", milliseconds: 199, left: "v1.1 a2.1 o v1.1", stale: 0),
        Age(testDescription: "media is late", milliseconds: 200, left: "o", stale: 3),
        Age(testDescription: "signalling is patient", milliseconds: 999, left: "o", stale: 3),
        Age(testDescription: "signalling is late", milliseconds: 1_000, left: "", stale: 4),
    ]

    @Test(arguments: ages)
    func `stale datagrams are dropped`(_ entry: Age) {
        let start = Instant(nanoseconds: 5)
        var queue = SendQueue(limits: SendQueueLimits())
        for word in ["v1.1", "a2.1", "o"] { Self.push(word, to: &queue, at: start) }
        // It is as old as the oldest packet of its frame.
        Self.push("v1.1", to: &queue, at: start.advanced(milliseconds: 100))
        let deadline = queue.deadline
        #expect(deadline == start.advanced(milliseconds: 200))
        queue.expire(at: start.advanced(milliseconds: entry.milliseconds))
        let drops = queue.drops
        #expect(drops.sum(.stale) == entry.stale)
        #expect(Self.take(&queue) == entry.left)
    }

    @Test
    func `a frame that lost a part is forgotten after a time`() {
        var queue = SendQueue(limits: SendQueueLimits(datagrams: 1))
        let start = Instant(nanoseconds: 0)
        Self.push("v1.1", to: &queue, at: start)
        Self.push("v1.2", to: &queue, at: start)
        let before = queue.isWatching(at: start.advanced(milliseconds: 199))
        let after = queue.isWatching(at: start.advanced(milliseconds: 200))
        #expect(before && !after)
        queue.removeFirst(1)
        Self.push("v1.1", to: &queue, at: start.advanced(milliseconds: 199))
        #expect(Self.take(&queue) == "")
        Self.push("v1.1", to: &queue, at: start.advanced(milliseconds: 200))
        #expect(Self.take(&queue) == "v1.1")
    }

    @Test
    func `only streams that lost their right are withdrawn`() {
        var queue = SendQueue(limits: SendQueueLimits())
        for word in ["v1.1", "a2.1", "o", "v3.1", "v1.1@2", "v1.2", "a4.1"] {
            Self.push(word, to: &queue, at: Instant(nanoseconds: 0))
        }
        queue.withdraw([SSRC(rawValue: 1), SSRC(rawValue: 4)])
        let drops = queue.drops
        #expect(drops[.withdrawn, .video] == 3 && drops[.withdrawn, .audio] == 1)
        #expect(Self.take(&queue) == "a2.1 o v3.1")
        // Under a new right the same stream, even the same frame, continues.
        Self.push("v1.2", to: &queue, at: Instant(nanoseconds: 0))
        #expect(Self.take(&queue) == "v1.2")
    }

    @Test
    func `staging takes datagrams of one path, and leaves them queued`() {
        var queue = SendQueue(limits: SendQueueLimits())
        for word in ["v1.1@1", "a2.1@1", "o@1", "v1.2@1", "v1.1@2"] {
            Self.push(word, to: &queue, at: Instant(nanoseconds: 0))
        }
        var staging = Batch(capacity: 8)
        #expect(queue.stage(into: &staging, limit: 3) == 3)
        staging.removeAll()
        #expect(queue.stage(into: &staging, limit: 8) == 4)
        let contents = (0..<4).map { staging.content(at: $0) }
        #expect(contents == [.video, .audio, .other, .video])
        let count = queue.count
        #expect(count == 5)
    }

    /// Compares random pushes, sends and times with a simple list that follows the same rules.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a random queue agrees with a list`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var queue = SendQueue(limits: SendQueueLimits(datagrams: 16))
        var model = QueueModel(limit: 16)
        var now = Instant(nanoseconds: 0)
        for step in 0..<2_000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<7:
                let word = Self.word(step, using: &random)
                Self.push(word, to: &queue, at: now)
                model.push(word, at: now)
            case 7:
                #expect(Self.take(2, from: &queue) == model.take(2), "step \(step)")
            case 8:
                now = now.advanced(milliseconds: Int64.random(in: 0...60, using: &random))
                queue.expire(at: now)
                model.expire(at: now)
            default:
                let lost = UInt32.random(in: 1...6, using: &random)
                queue.withdraw([SSRC(rawValue: lost)])
                model.withdraw(lost)
            }
            let (count, dropped) = (queue.count, queue.drops)
            try #require(count == model.items.count, "step \(step)")
            try #require(dropped == model.drops, "step \(step)")
        }
        #expect(Self.take(16, from: &queue) == model.take(16))
    }

    private static func word(_ step: Int, using random: inout SeededRandom) -> String {
        let peer = Int.random(in: 1...2, using: &random)
        let kind = ["v", "v", "v", "a", "o"].randomElement(using: &random) ?? "v"
        guard kind != "o" else { return "o@\(peer)" }
        let ssrc = Int.random(in: 1...3, using: &random) + (kind == "a" ? 3 : 0)
        return "\(kind)\(ssrc).\(step / 6)@\(peer)"
    }
}

// Conversion between datagrams and words.
extension SendQueueTests {
    static let length = 100

    /// Returns the content, SSRC, timestamp and peer that a word stands for.
    static func meaning(
        of word: some StringProtocol
    ) -> (content: DatagramContent, ssrc: UInt32, timestamp: UInt32, peer: UInt16) {
        let halves = word.split(separator: "@")
        let numbers = halves[0].dropFirst().split(separator: ".").compactMap { UInt32($0) }
        let peer = halves.count > 1 ? UInt16(halves[1]) ?? 0 : 0
        guard numbers.count == 2 else { return (.other, 0, 0, peer) }
        return (word.first == "a" ? .audio : .video, numbers[0], numbers[1], peer)
    }

    static func push(
        _ word: some StringProtocol,
        to queue: inout SendQueue,
        at now: Instant,
        length: Int = length
    ) {
        let (content, ssrc, timestamp, peer) = meaning(of: word)
        let bytes = packet(ssrc: ssrc, timestamp: timestamp, length: length)
        queue.append(bytes.span, to: path(peer), as: content, at: now)
    }

    /// Makes a packet that begins like RTP and continues with zeros.
    static func packet(ssrc: UInt32, timestamp: UInt32, length: Int) -> [UInt8] {
        var bytes = [0x80, 96, 0, 0] as [UInt8]
        for word in [timestamp, ssrc] {
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
        }
        return bytes + Array(repeating: 0, count: length - bytes.count)
    }

    static func path(_ peer: UInt16) -> Path {
        Path(remote: Address(ipv4: 0x7f00_0001, port: peer), local: 0)
    }

    /// Takes all datagrams out, in order.
    static func take(_ queue: inout SendQueue) -> String {
        take(queue.count, from: &queue).joined(separator: " ")
    }

    /// Takes the first `number` datagrams out, in order.
    static func take(_ number: Int, from queue: inout SendQueue) -> [String] {
        var staging = Batch(capacity: 1)
        return (0..<min(number, queue.count)).map { _ in
            staging.removeAll()
            _ = queue.stage(into: &staging, limit: 1)
            queue.removeFirst(1)
            let path = staging.path(at: 0)
            let peer = path.remote.port == 0 ? "" : "@\(path.remote.port)"
            let content = staging.content(at: 0)
            guard content != .other else { return "o" + peer }
            let frame = MediaFrame(staging[0], to: path)
            let kind = content == .video ? "v" : "a"
            return "\(kind)\(frame.ssrc.rawValue).\(frame.timestamp)" + peer
        }
    }
}
