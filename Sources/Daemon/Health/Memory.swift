import CKernel
import Foundation
import Glibc
import Kernel
import RTP

/// Resident memory of the process, measured at most every 100 ms.
struct ResidentMemory {
    private var latest = 0
    private var next: Instant?

    /// Returns the resident bytes, at most 100 ms old.
    mutating func bytes(at now: Instant) -> Int {
        if next.map({ $0 <= now }) ?? true {
            latest = Self.bytes
            next = now.advanced(milliseconds: 100)
        }
        return latest
    }

    /// Current resident bytes.
    static var bytes: Int {
        // Fields in pages: size, resident, … (proc(5)).
        let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let fields = statm?.split(separator: " ") ?? []
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(getpagesize())
    }
}

/// Memory that the system allows this process.
enum SystemMemoryLimit {
    /// Returns the least of the machine's memory and the limits of the process's control groups, in
    /// bytes.
    static func current() -> Int {
        let physical = Int(clamping: ProcessInfo.processInfo.physicalMemory)
        let groups = (try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8)) ?? ""
        return files(groups: groups).reduce(physical) { least, file in
            min(least, bytes((try? String(contentsOfFile: file, encoding: .utf8)) ?? ""))
        }
    }

    /// Returns the paths of the memory limit files for the contents of a `/proc/self/cgroup`.
    ///
    /// They belong to the process's group and its ancestors, in either version (cgroups(7)).
    static func files(groups: String) -> [String] {
        groups.split(separator: "\n").flatMap { line -> [String] in
            // Hierarchy ID, controllers, path of the group.
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

    /// Parses the contents of a limit file; returns `Int.max` if it has no limit, or is missing.
    static func bytes(_ text: String) -> Int {
        Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? .max
    }

    /// Returns the effective `limits.memoryMegabytes`, in units of 2^20 bytes.
    ///
    /// If `configured` is 0, it is nine tenths of `allowed` bytes.
    static func megabytes(configured: Int, allowed: Int) -> Int {
        configured > 0 ? configured : max((allowed / 10 * 9) >> 20, 1)
    }
}

/// CPU time and memory of the whole process.
struct ProcessStatistics: Equatable {
    var cpuNanoseconds: Int64
    var residentBytes: Int
    /// Allocated heap bytes; `nil` if the C library does not report them.
    var heapBytes: Int?
    /// Start of the process, as Unix time in seconds.
    var startTime: Double
    /// Open descriptors, and the limit of them; `nil` if unknown.
    var openDescriptors: Int?
    var descriptorLimit: Int?

    /// Measures the process now.
    static func current(startTime: Double) -> Self {
        let heap = kernel_heap_bytes()
        return Self(
            cpuNanoseconds: kernel_process_nanoseconds(),
            residentBytes: ResidentMemory.bytes,
            heapBytes: heap < 0 ? nil : Int(heap),
            startTime: startTime,
            openDescriptors: Self.openDescriptors,
            descriptorLimit: Self.descriptorLimit
        )
    }
}

extension ProcessStatistics {
    /// Number of open descriptors; the one that reads their list does not count.
    private static var openDescriptors: Int? {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return names.map { $0.count - 1 }
    }

    private static var descriptorLimit: Int? {
        let limits = try? String(contentsOfFile: "/proc/self/limits", encoding: .utf8)
        return limits.flatMap(ProcessLimits.openFiles)
    }
}

/// Schedule for returning free heap memory to the system after transports come or go.
///
/// A handshake frees most of the memory that it took, and a leaving participant frees the rest, but
/// the C library keeps free chunks between used ones. Other threads may have to wait for an
/// allocation during a trim, so trimming is delayed until there is little change.
struct HeapTrimmer {
    private var seen = 0
    /// Time of the first change since the last trim.
    private var first: Instant?
    private(set) var deadline: Instant?

    /// Takes the number of transports that have come or gone since the start; returns whether to
    /// trim now.
    mutating func isDue(changes: Int, at now: Instant) -> Bool {
        if changes != seen {
            seen = changes
            let start = first ?? now
            first = start
            deadline = min(
                now.advanced(milliseconds: Self.quietMilliseconds),
                start.advanced(milliseconds: Self.longestMilliseconds)
            )
        }
        guard let deadline, deadline <= now else { return false }
        self.deadline = nil
        first = nil
        return true
    }

    static let quietMilliseconds: Int64 = 2_000
    static let longestMilliseconds: Int64 = 60_000
}
