#pragma once
#include <poll.h>

// Calls that Swift's Glibc module does not show.

/// poll() with a timeout in nanoseconds.
int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds);
