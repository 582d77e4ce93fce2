import Foundation

/// Seeded source and amount of a test's noise.
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

    /// Returns `full` in a run with `SFUD_NOISE=full`, a twentieth of it in an ordinary one.
    static func count(_ full: Int) -> Int {
        ProcessInfo.processInfo.environment["SFUD_NOISE"] == "full" ? full : full / 20
    }

    /// Returns each file in a folder of the corpora beside the repository; empty where it is
    /// missing.
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
