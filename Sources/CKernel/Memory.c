#define _GNU_SOURCE 1

#include "CKernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int kernel_memory_create(const char *name, uint64_t bytes) {
    int memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0) return -errno;
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (ftruncate(memory, (off_t)bytes) < 0 || fcntl(memory, F_ADD_SEALS, seals) < 0) {
        int status = -errno;
        close(memory);
        return status;
    }
    return memory;
}

int64_t kernel_memory_bytes(int memory) {
    int seals = fcntl(memory, F_GET_SEALS);
    if (seals < 0) return -errno;
    // Without this seal, whoever has the descriptor could shrink the file under the mapping.
    if (!(seals & F_SEAL_SHRINK)) return -EPERM;
    struct stat file;
    if (fstat(memory, &file) < 0) return -errno;
    return file.st_size;
}

void *kernel_memory_map(int memory, uint64_t bytes, bool writable) {
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *start = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, memory, 0);
    if (start == MAP_FAILED) return NULL;
    madvise(start, bytes, MADV_DONTDUMP);
    return start;
}

void kernel_memory_unmap(void *start, uint64_t bytes) { munmap(start, bytes); }

void kernel_memory_release(void *start, uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = ((uint64_t)start + page - 1) / page * page;
    uint64_t end = ((uint64_t)start + bytes) / page * page;
    // On failure the pages merely stay in use.
    if (end > first) madvise((void *)first, end - first, MADV_REMOVE);
}

void kernel_store_release(void *place, uint64_t value) {
    atomic_store_explicit((_Atomic uint64_t *)place, value, memory_order_release);
}

static _Atomic(uint64_t *) fault_mark;

static void mark_fault(int signal_number) {
    uint64_t *place = atomic_load(&fault_mark);
    if (place) atomic_store((_Atomic uint64_t *)place, 1);
    // The default action follows: the signal is blocked until this handler returns.
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void kernel_mark_faults(void *place) {
    static const int faults[] = {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    atomic_store(&fault_mark, place);
    struct sigaction action = {.sa_handler = mark_fault};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct sigaction present;
        // A backtracer or a sanitizer has its own.
        if (sigaction(faults[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL)
            sigaction(faults[i], &action, NULL);
    }
}
