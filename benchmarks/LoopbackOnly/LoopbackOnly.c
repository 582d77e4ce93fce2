// For LD_PRELOAD: loopback is the one interface, and an ordinary one.
//
// Janus and libnice never use an interface with IFF_LOOPBACK, and have no option for it. On any
// other they bind their sockets to the interface (IP_UNICAST_IF), so that nothing of theirs would
// ever come to a peer on 127.0.0.0/8. A load must stay there.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>

#include "LoopbackOnly.h"

int getifaddrs(struct ifaddrs **list) {
    int (*next)(struct ifaddrs **) = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    int status = next(list);
    if (status != 0) return status;
    for (struct ifaddrs *entry = *list; entry != NULL; entry = entry->ifa_next) {
        // What is no loopback looks down, and what is one looks like none.
        unsigned hidden = entry->ifa_flags & IFF_LOOPBACK ? IFF_LOOPBACK : IFF_UP;
        entry->ifa_flags &= ~hidden;
    }
    return 0;
}
