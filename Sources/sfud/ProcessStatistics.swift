import CKernel
import Foundation

/// What the whole process uses.
struct ProcessStatistics: Equatable {
    var cpuNanoseconds: Int64
    var residentBytes: Int
    /// Unix time, in seconds.
    var startTime: Double

    /// As it is now.
    static func current(startTime: Double) -> Self {
        // Fields in pages: size, resident, … (proc(5)).
        let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = statm.flatMap { text in
            let fields = text.split(separator: " ")
            return fields.count > 1 ? Int(fields[1]) : nil
        }
        return Self(
            cpuNanoseconds: kernel_process_nanoseconds(),
            residentBytes: (pages ?? 0) * Int(getpagesize()),
            startTime: startTime
        )
    }
}
