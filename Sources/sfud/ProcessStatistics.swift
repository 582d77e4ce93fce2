import CKernel

/// What the whole process uses.
struct ProcessStatistics: Equatable {
    var cpuNanoseconds: Int64
    var residentBytes: Int
    /// Unix time, in seconds.
    var startTime: Double

    /// As it is now.
    static func current(startTime: Double) -> Self {
        Self(
            cpuNanoseconds: kernel_process_nanoseconds(),
            residentBytes: ResidentMemory.bytes,
            startTime: startTime
        )
    }
}
