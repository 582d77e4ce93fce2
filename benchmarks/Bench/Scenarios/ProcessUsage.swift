import Foundation

/// Resources that processes have used so far.
struct ProcessUsage: Sendable {
    struct Worker: Sendable {
        var name: String
        var nanoseconds: Int64
    }

    /// User and system time of each thread, by its id.
    ///
    /// It is `se.sum_exec_runtime` from `/proc/PID/task/TID/schedstat`, exact to the scheduler's
    /// tick.
    var threads: [Int32: Worker] = [:]
    /// Resident memory, in bytes.
    var resident: Int64 = 0
    /// Open descriptors.
    var descriptors = 0

    var nanoseconds: Int64 { threads.values.reduce(0) { $0 + $1.nanoseconds } }

    /// Reads the usage; processes that have ended count as zero.
    static func of(_ processes: [Int32]) -> Self {
        var usage = Self()
        for process in processes {
            let folder = "/proc/\(process)"
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder + "/task"))
            for thread in (names ?? []).compactMap({ Int32($0) }) {
                let place = "\(folder)/task/\(thread)"
                guard let text = text("\(place)/schedstat"),
                    let time = text.split(separator: " ").first.flatMap({ Int64($0) })
                else { continue }
                let name = (self.text("\(place)/comm") ?? "?").split(separator: "\n").first
                usage.threads[thread] = Worker(
                    name: name.map(String.init) ?? "?",
                    nanoseconds: time
                )
            }
            let open = try? FileManager.default.contentsOfDirectory(atPath: folder + "/fd")
            usage.descriptors += open?.count ?? 0
            let pages = text("\(folder)/statm")?.split(separator: " ").dropFirst().first
            let size = Int64(sysconf(Int32(_SC_PAGESIZE)))
            usage.resident += (pages.flatMap { Int64($0) } ?? 0) * size
        }
        return usage
    }

    /// Returns the processes that a process has started and that have not ended.
    static func children(of process: Int32) -> [Int32] {
        let list = text("/proc/\(process)/task/\(process)/children") ?? ""
        return list.split(separator: " ").compactMap { Int32($0) }
    }

    /// Returns the CPU time since `earlier`, in nanoseconds.
    func nanoseconds(since earlier: Self) -> Int64 {
        threadsSince(earlier).reduce(0) { $0 + $1.nanoseconds }
    }

    /// Returns the CPU time since `earlier` by thread, the busiest first.
    func threadsSince(_ earlier: Self) -> [Worker] {
        threads.map { id, worker in
            let before = earlier.threads[id]?.nanoseconds ?? 0
            return Worker(name: worker.name, nanoseconds: worker.nanoseconds - before)
        }
        .sorted { $0.nanoseconds > $1.nanoseconds }
    }

    private static func text(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
