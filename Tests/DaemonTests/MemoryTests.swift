import Foundation
import RTP
import Testing

@testable import Daemon

/// I6: available memory, as the system reports it.
struct MemoryTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var groups: String
        var files: [String]
    }

    static let rows = [
        Row(testDescription: "no groups", groups: "", files: []),
        Row(
            testDescription: "version 2, a container's own root",
            groups: "0::/\n",
            files: ["/sys/fs/cgroup/memory.max"]
        ),
        Row(
            testDescription: "version 2, a unit within a slice",
            groups: "0::/system.slice/sfud.service\n",
            files: [
                "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/system.slice/sfud.service/memory.max",
            ]
        ),
        Row(
            testDescription: "version 1, beside others",
            groups: "7:cpu,cpuacct:/a\n5:hugetlb,memory:/b\n0::/c\nnonsense\n",
            files: [
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max",
                "/sys/fs/cgroup/c/memory.max",
            ]
        ),
    ]

    @Test func `open descriptors are counted, and their limit is known`() throws {
        let files = (0..<20).compactMap { _ in FileHandle(forReadingAtPath: "/dev/null") }
        defer { for file in files { try? file.close() } }
        let process = ProcessStatistics.current(startTime: 0)
        let open = try #require(process.openDescriptors)
        #expect(files.count == 20 && open > 20)
        #expect(try #require(process.descriptorLimit) > open)
    }

    @Test(arguments: rows)
    func `I6 groups around a process bound it too`(_ row: Row) {
        #expect(SystemMemoryLimit.files(groups: row.groups) == row.files)
    }

    @Test(arguments: [
        ("67108864\n", 67_108_864), ("max\n", Int.max), ("", .max),
        ("9223372036854771712\n", 9_223_372_036_854_771_712),
    ])
    func `I6 a file says bytes, or that there is no bound`(_ text: String, _ bytes: Int) {
        #expect(SystemMemoryLimit.bytes(text) == bytes)
    }

    @Test
    func `I6 without a word of the operator a tenth of what is allowed stays free`() {
        #expect(SystemMemoryLimit.megabytes(configured: 0, allowed: 1_000 << 20) == 900)
        #expect(SystemMemoryLimit.megabytes(configured: 64, allowed: 1_000 << 20) == 64)
        #expect(SystemMemoryLimit.megabytes(configured: 0, allowed: 0) == 1)
    }

    @Test
    func `I6 the machine says what it has, and this process takes some of it`() {
        var resident = ResidentMemory()
        let now = Instant(nanoseconds: 1)
        let bytes = resident.bytes(at: now)
        #expect(bytes > 1 << 20)
        #expect(bytes < SystemMemoryLimit.current())
        #expect(resident.bytes(at: now.advanced(milliseconds: 99)) == bytes)
    }
}
