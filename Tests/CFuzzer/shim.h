#pragma once

#include <stddef.h>
#include <stdint.h>

/// Where libFuzzer starts; it comes with the compiler, without a header of this.
int LLVMFuzzerRunDriver(
    int *argc, char ***argv, int (*run)(const uint8_t *bytes, size_t count));
