#pragma once

struct ifaddrs;

/// Same as getifaddrs(3), but loopback lacks IFF_LOOPBACK and all other interfaces are down.
int getifaddrs(struct ifaddrs **list);
