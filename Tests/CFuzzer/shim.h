#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int (*fuzzer_target)(const uint8_t *bytes, size_t count);

/// libFuzzer's entry point, which has no header; weak, so that builds without it link too.
__attribute__((weak)) int LLVMFuzzerRunDriver(int *argc, char ***argv, fuzzer_target run);

/// Runs libFuzzer, or returns -1 where the program was linked without it.
static inline int fuzzer_run(int *argc, char ***argv, fuzzer_target run)
{
    return LLVMFuzzerRunDriver ? LLVMFuzzerRunDriver(argc, argv, run) : -1;
}
