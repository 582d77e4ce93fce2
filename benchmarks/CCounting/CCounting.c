#define _GNU_SOURCE
#include "CCounting.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <valgrind/callgrind.h>

static atomic_int counting;
static int is_started;
static struct {
    atomic_ullong allocations, frees, retains, releases, checks, locks;
    atomic_llong bytes;
} counted;

#define COUNT(what) \
    do { \
        if (atomic_load_explicit(&counting, memory_order_relaxed)) \
            atomic_fetch_add_explicit(&counted.what, 1, memory_order_relaxed); \
    } while (0)

// Counts the usable size of the block and its header, which is what the allocator reserves.
static void *count_bytes(void *block) {
    if (block && atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(&counted.bytes, (long long)malloc_usable_size(block) + 8,
                                  memory_order_relaxed);
    return block;
}

static void forget_bytes(void *block) {
    if (block && atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_sub_explicit(&counted.bytes, (long long)malloc_usable_size(block) + 8,
                                  memory_order_relaxed);
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) {
    COUNT(allocations);
    return count_bytes(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    COUNT(allocations);
    return count_bytes(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size) {
    COUNT(allocations);
    forget_bytes(old);
    return count_bytes(__libc_realloc(old, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    COUNT(allocations);
    return count_bytes(__libc_memalign(alignment, size));
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    COUNT(allocations);
    *result = count_bytes(__libc_memalign(alignment, size));
    return *result ? 0 : 12;
}

void free(void *memory) {
    if (memory) COUNT(frees);
    forget_bytes(memory);
    __libc_free(memory);
}

// Real functions of the runtime and pthread, looked up once before counting.
static void *(*real_retain)(void *);
static void (*real_release)(void *);
static void (*real_begin_access)(void *, void *, uintptr_t, void *);
static int (*real_lock)(pthread_mutex_t *);

__attribute__((constructor)) static void find_real(void) {
    real_retain = dlsym(RTLD_NEXT, "swift_retain");
    real_release = dlsym(RTLD_NEXT, "swift_release");
    real_begin_access = dlsym(RTLD_NEXT, "swift_beginAccess");
    real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
}

void *swift_retain(void *object) {
    COUNT(retains);
    if (!real_retain) find_real();
    return real_retain(object);
}

void swift_release(void *object) {
    COUNT(releases);
    if (!real_release) find_real();
    real_release(object);
}

void swift_beginAccess(void *pointer, void *buffer, uintptr_t flags, void *pc) {
    COUNT(checks);
    if (!real_begin_access) find_real();
    real_begin_access(pointer, buffer, flags, pc);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    COUNT(locks);
    if (!real_lock) find_real();
    return real_lock(mutex);
}

void counting_start(void) {
    atomic_store(&counted.allocations, 0);
    atomic_store(&counted.frees, 0);
    atomic_store(&counted.retains, 0);
    atomic_store(&counted.releases, 0);
    atomic_store(&counted.checks, 0);
    atomic_store(&counted.locks, 0);
    atomic_store(&counted.bytes, 0);
    is_started = 1;
    atomic_store(&counting, 1);
}

void counting_pause(void) { atomic_store(&counting, 0); }

void counting_resume(void) { atomic_store(&counting, is_started); }

struct counted_calls counting_stop(void) {
    atomic_store(&counting, 0);
    is_started = 0;
    return (struct counted_calls){
        .allocations = atomic_load(&counted.allocations),
        .frees = atomic_load(&counted.frees),
        .retains = atomic_load(&counted.retains),
        .releases = atomic_load(&counted.releases),
        .exclusivity_checks = atomic_load(&counted.checks),
        .locks = atomic_load(&counted.locks),
        .bytes = atomic_load(&counted.bytes),
    };
}

void counting_instructions_start(void) { CALLGRIND_START_INSTRUMENTATION; }

void counting_instructions_stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
