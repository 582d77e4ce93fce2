import CKernel

/// CPU time and memory of the whole process.
struct ProcessStatistics: Equatable {
    var cpuNanoseconds: Int64
    var residentBytes: Int
    /// Allocated heap bytes; `nil` if the C library does not report them.
    var heapBytes: Int?
    /// Start of the process, as Unix time in seconds.
    var startTime: Double

    /// Measures the process now.
    static func current(startTime: Double) -> Self {
        let heap = kernel_heap_bytes()
        return Self(
            cpuNanoseconds: kernel_process_nanoseconds(),
            residentBytes: ResidentMemory.bytes,
            heapBytes: heap < 0 ? nil : Int(heap),
            startTime: startTime
        )
    }
}
