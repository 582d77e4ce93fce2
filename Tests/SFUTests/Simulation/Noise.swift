import Foundation

/// How much noise a test makes, and the seeded source of it.
struct Noise: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count + 7)
        while result.count < count {
            let word = next()
            for shift in 0..<8 { result.append(UInt8(truncatingIfNeeded: word >> (8 * shift))) }
        }
        result.removeLast(result.count - count)
        return result
    }

    /// `full` in a run that `SFUD_NOISE=full` asks for, a twentieth of it in an ordinary one.
    static func count(_ full: Int) -> Int {
        ProcessInfo.processInfo.environment["SFUD_NOISE"] == "full" ? full : full / 20
    }

    /// The bytes of each file in a folder of the corpora beside the repository, if it is there.
    static func corpus(_ folder: String) -> [[UInt8]] {
        let root =
            ProcessInfo.processInfo.environment["SFUD_SHARED"].map { URL(filePath: $0) }
            ?? URL(filePath: #filePath).appending(path: "../../../../../shared").standardized
        let directory = root.appending(path: "corpora").appending(path: folder)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        return names.sorted().compactMap { name in
            (try? Data(contentsOf: directory.appending(path: name))).map { [UInt8]($0) }
        }
    }
}
