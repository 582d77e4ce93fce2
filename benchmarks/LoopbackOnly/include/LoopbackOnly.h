#pragma once

struct ifaddrs;

/// As getifaddrs(3), but loopback is no loopback, and every other interface is one that is down.
int getifaddrs(struct ifaddrs **list);
