#pragma once
#include <poll.h>
#include <time.h>

// Calls that Swift's Glibc module does not show.

/// poll() with a timeout in nanoseconds.
int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds);

/// The time in nanoseconds. Swift on a static standard library shows a `timespec`, and not what is in it.
long long martlet_nanoseconds(struct timespec time);
