import CKernel

/// What the whole process uses.
struct ProcessStatistics: Equatable {
    var cpuNanoseconds: Int64
    var residentBytes: Int
    /// What is allocated; `nil` where the C library does not tell.
    var heapBytes: Int?
    /// Unix time, in seconds.
    var startTime: Double

    /// As it is now.
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
