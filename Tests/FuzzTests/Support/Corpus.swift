import Foundation
import FuzzTargets

/// Input that is kept: what was once found worth it, of our own making.
enum Corpus {
    /// The inputs of a target: a line each, in hexadecimal digits; `#` begins a comment.
    static func inputs(of target: FuzzTarget) -> [[UInt8]] {
        let file = here.appending(path: "Corpus/\(target.rawValue).txt")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let digits = line.compactMap(\.hexDigitValue)
            precondition(digits.count == line.utf8.count && digits.count.isMultiple(of: 2))
            return stride(from: 0, to: digits.count, by: 2).map { place in
                let byte: Int = digits[place] << 4 | digits[place + 1]
                return UInt8(byte)
            }
        }
    }

    /// The files of samples that lie beside the repository; none where they do not.
    static let samples: [[UInt8]] = {
        let root =
            ProcessInfo.processInfo.environment["SFUD_SHARED"].map { URL(filePath: $0) }
            ?? here.appending(path: "../../../shared").standardized
        return [
            "corpora/stun", "corpora/rtp", "corpora/dependency_descriptor", "corpora/sdp", "sdp",
        ]
        .flatMap { folder in
            let directory = root.appending(path: folder)
            let names = try? FileManager.default.contentsOfDirectory(atPath: directory.path)
            return (names ?? []).sorted().compactMap { name in
                (try? Data(contentsOf: directory.appending(path: name))).map { [UInt8]($0) }
            }
        }
    }()

    private static let here = URL(filePath: #filePath).appending(path: "../..").standardized
}
