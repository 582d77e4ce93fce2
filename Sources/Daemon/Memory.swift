import Foundation
import Glibc
import RTP

/// What the process has resident, measured not more often than somebody could care.
struct ResidentMemory {
    private var latest = 0
    private var next: Instant?

    /// Bytes, as they were less than a tenth of a second ago.
    mutating func bytes(at now: Instant) -> Int {
        if next.map({ $0 <= now }) ?? true {
            latest = Self.bytes
            next = now.advanced(milliseconds: 100)
        }
        return latest
    }

    /// Bytes, now.
    static var bytes: Int {
        // Fields in pages: size, resident, … (proc(5)).
        let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let fields = statm?.split(separator: " ") ?? []
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(getpagesize())
    }
}

/// How much memory the system lets a process have.
enum MemoryAllowance {
    /// Bytes: the machine's, or what a control group of this process may have, if that is less.
    static func current() -> Int {
        let physical = Int(clamping: ProcessInfo.processInfo.physicalMemory)
        let groups = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
        return files(groups: groups).reduce(physical) { least, file in
            min(least, bytes((try? String(contentsOfFile: file, encoding: .utf8)) ?? ""))
        }
    }

    /// The files that bound the memory of a process with such a `/proc/self/cgroup`.
    ///
    /// They are of its group and of those around it, in either version (cgroups(7)).
    static func files(groups: String) -> [String] {
        groups.split(separator: "\n").flatMap { line -> [String] in
            // The hierarchy, its controllers, the group.
            let fields = line.split(
                separator: ":",
                maxSplits: 2,
                omittingEmptySubsequences: false
            )
            guard fields.count == 3 else { return [] }
            let root: String
            let file: String
            if fields[0] == "0", fields[1].isEmpty {
                (root, file) = ("/sys/fs/cgroup", "memory.max")
            } else if fields[1].split(separator: ",").contains("memory") {
                (root, file) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            } else {
                return []
            }
            let names = fields[2].split(separator: "/")
            return (0...names.count).map { depth in
                ([root] + names.prefix(depth).map(String.init) + [file]).joined(separator: "/")
            }
        }
    }

    /// What such a file says; `Int.max` where it names no bound, or is not there.
    static func bytes(_ text: String) -> Int {
        Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? .max
    }

    /// The `limits.memoryMegabytes` to go by, in 2^20 bytes, where `configured` was asked for.
    ///
    /// Where nothing was (0), it is nine tenths of what the system allows.
    static func megabytes(configured: Int, allowed: Int) -> Int {
        configured > 0 ? configured : max((allowed / 10 * 9) >> 20, 1)
    }
}
