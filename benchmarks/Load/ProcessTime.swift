import Foundation

/// User and system time of another process.
enum ProcessTime {
    /// In nanoseconds, as coarse as the kernel's clock tick; `nil` where there is no such process.
    static func nanoseconds(of pid: Int32) -> Int64? {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            // The name in parentheses may hold anything, spaces and parentheses too.
            let name = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[name...].split(separator: " ")
        guard fields.count > 13, let user = Int64(fields[12]), let system = Int64(fields[13])
        else { return nil }
        let ticks = Int64(sysconf(Int32(_SC_CLK_TCK)))
        return (user + system) * (1_000_000_000 / max(1, ticks))
    }
}
