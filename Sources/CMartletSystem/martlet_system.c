#define _GNU_SOURCE
#include "martlet_system.h"
#include <time.h>

int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds) {
    struct timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return ppoll(descriptors, count, &timeout, 0);
}
