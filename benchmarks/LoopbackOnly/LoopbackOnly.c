// LD_PRELOAD library that presents loopback as the only interface, and as an ordinary one.
//
// Janus and libnice never use an interface with IFF_LOOPBACK, and have no option for it. They
// bind their sockets to any other interface (IP_UNICAST_IF), so that their datagrams would never
// reach a peer on 127.0.0.0/8, where a load must stay.

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
        // Marks other interfaces as down, and hides that loopback is one.
        unsigned hidden = entry->ifa_flags & IFF_LOOPBACK ? IFF_LOOPBACK : IFF_UP;
        entry->ifa_flags &= ~hidden;
    }
    return 0;
}
