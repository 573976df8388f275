#pragma once
#include <poll.h>
#include <time.h>

// Calls that Swift's Glibc module does not show.

/// poll() with a timeout in nanoseconds.
int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds);

/// The time in nanoseconds. Swift on a static standard library shows a `timespec`, and not what is in it.
long long martlet_nanoseconds(struct timespec time);

/// Gives back memory that this process has no use for at the moment: what its allocator holds free, and the pages of code that were
/// read from files. Code that runs again is mapped again from the kernel's cache, a few microseconds for each 64 KiB.
///
/// What a debugger wrote into code (breakpoints), or something moved to memory of no file, is lost.
void martlet_release_memory(void);
