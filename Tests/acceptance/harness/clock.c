// For LD_PRELOAD: the wall clock is as many nanoseconds off as the file WALL_CLOCK_OFFSET says now.

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void find_offset(void) {
    const char *path = getenv("WALL_CLOCK_OFFSET");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *place = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) offset = place;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int status = (int)syscall(SYS_clock_gettime, clock, time);
    if (status != 0 || offset == NULL) return status;
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
    int64_t nanoseconds = time->tv_sec * 1000000000LL + time->tv_nsec + *offset;
    time->tv_sec = nanoseconds / 1000000000LL;
    time->tv_nsec = nanoseconds % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place != NULL) *place = now.tv_sec;
    return now.tv_sec;
}
