extension ProcessStatistics {
    /// Adds the metrics of the process; `memoryLimit` is in bytes, 0 for none.
    func add(memoryLimit: Int, to page: inout MetricsPage) {
        page.add(
            "process_cpu_seconds_total",
            .counter,
            "User and system time.",
            Double(cpuNanoseconds) / 1e9
        )
        page.add(
            "process_resident_memory_bytes",
            .gauge,
            "Resident memory.",
            Double(residentBytes)
        )
        if let heapBytes {
            page.add(
                "sfud_heap_bytes",
                .gauge,
                "What is allocated, with what was reserved and never touched.",
                Double(heapBytes)
            )
        }
        page.add(
            "sfud_memory_limit_bytes",
            .gauge,
            "Resident memory from which on nobody new is let in; 0: no limit.",
            Double(memoryLimit)
        )
        if let openDescriptors {
            page.add("process_open_fds", .gauge, "Open descriptors.", Double(openDescriptors))
        }
        if let descriptorLimit {
            page.add("process_max_fds", .gauge, "Limit of those.", Double(descriptorLimit))
        }
        page.add("process_start_time_seconds", .gauge, "Unix time of the start.", startTime)
    }
}
