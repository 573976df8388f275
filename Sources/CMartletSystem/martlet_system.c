#define _GNU_SOURCE
#include "martlet_system.h"

int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds) {
    struct timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return ppoll(descriptors, count, &timeout, 0);
}

long long martlet_nanoseconds(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }
