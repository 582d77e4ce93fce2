import RTP

@testable import Sockets
@testable import WorkerInterface

/// Reference model of a send queue: a list that is searched from its beginning.
struct QueueModel {
    struct Item {
        var word: String
        var content: DatagramContent
        var since: Instant
    }

    let limit: Int
    private(set) var items: [Item] = []
    private(set) var drops = SendDrops()
    /// Time until which each incomplete frame is remembered, by word.
    private var broken: [String: Instant] = [:]

    init(limit: Int) { self.limit = limit }

    mutating func push(_ word: String, at now: Instant) {
        let content = SendQueueTests.meaning(of: word).content
        var isLost = false
        guard content == .other || !isBroken(word, at: now) else {
            drops[.full, content] += 1
            return
        }
        while !isLost, items.count >= limit {
            let lower: [DatagramContent] =
                switch content {
                case .video: [.video]
                case .audio: [.video, .audio]
                case .other: [.video, .audio, .other]
                }
            if let victim = lower.compactMap({ oldest($0) }).first {
                drop(victim, .full, at: now)
            } else {
                isLost = true
            }
        }
        if isLost || (content != .other && isBroken(word, at: now)) {
            drops[.full, content] += 1
            if isLost { broken[word] = now.advanced(milliseconds: 200) }
        } else {
            items.append(Item(word: word, content: content, since: now))
        }
    }

    mutating func take(_ number: Int) -> [String] {
        defer { items.removeFirst(min(number, items.count)) }
        return items.prefix(number).map(\.word)
    }

    mutating func expire(at now: Instant) {
        for content in DatagramContent.allCases {
            let patience: Int64 = content == .other ? 1_000 : 200
            while let first = oldest(content),
                items[first].since.advanced(milliseconds: patience) <= now
            {
                drop(first, .stale, at: now)
            }
        }
    }

    mutating func withdraw(_ ssrc: UInt32) {
        items.removeAll { item in
            let meaning = SendQueueTests.meaning(of: item.word)
            guard item.content != .other, meaning.ssrc == ssrc else { return false }
            drops[.withdrawn, item.content] += 1
            return true
        }
    }

    private func oldest(_ content: DatagramContent) -> Int? {
        items.firstIndex { $0.content == content }
    }

    private func isBroken(_ word: String, at now: Instant) -> Bool {
        broken[word].map { now < $0 } ?? false
    }

    private mutating func drop(_ index: Int, _ cause: SendDrops.Cause, at now: Instant) {
        let victim = items[index]
        guard victim.content != .other else {
            drops[cause, .other] += 1
            items.remove(at: index)
            return
        }
        broken[victim.word] = now.advanced(milliseconds: 200)
        items.removeAll { item in
            guard item.word == victim.word else { return false }
            drops[cause, item.content] += 1
            return true
        }
    }
}
