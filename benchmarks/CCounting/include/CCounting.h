#pragma once
#include <stdint.h>

/// How often the process did what the packet path must not do, while counting was on.
///
/// The functions are interposed: this library defines them, counts, and calls the real ones.
struct counted_calls {
    uint64_t allocations;
    uint64_t frees;
    uint64_t retains;
    uint64_t releases;
    uint64_t exclusivity_checks;
    uint64_t locks;
    /// Heap bytes that are still allocated, less those that had been before; with malloc's own.
    int64_t bytes;
};

/// Sets all counters to zero and begins to count, on this thread and all others.
void counting_start(void);

/// Leaves out what the process does between the two, once counting was started.
void counting_pause(void);
void counting_resume(void);

/// Ends counting and returns what was counted.
struct counted_calls counting_stop(void);
