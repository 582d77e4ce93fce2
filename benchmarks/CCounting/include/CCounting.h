#pragma once
#include <stdint.h>

/// Counts of operations that the packet path must not do, from the time that counting was on.
///
/// The functions are interposed: this library defines them, counts, and calls the real ones.
struct counted_calls {
    uint64_t allocations;
    uint64_t frees;
    uint64_t retains;
    uint64_t releases;
    uint64_t exclusivity_checks;
    uint64_t locks;
    /// Net growth of the heap while counting, in bytes; includes malloc's headers.
    int64_t bytes;
};

/// Resets all counters and starts counting, on all threads.
void counting_start(void);

/// Suspend and resume counting, once it was started.
void counting_pause(void);
void counting_resume(void);

/// Ends counting and returns the counts.
struct counted_calls counting_stop(void);

/// Begin and end the count of instructions by callgrind, which without it is much faster, if the
/// process runs under `--instr-atstart=no`.
void counting_instructions_start(void);
void counting_instructions_stop(void);
