#pragma once
#include <poll.h>
#include <time.h>

// Calls that Swift's Glibc module does not show.

/// poll() with a timeout in nanoseconds.
int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds);

/// A lock and a condition variable. A change of the wall clock moves none of its timeouts.
typedef struct martlet_monitor martlet_monitor;

martlet_monitor *martlet_monitor_new(void);
void martlet_monitor_free(martlet_monitor *monitor);
void martlet_monitor_lock(martlet_monitor *monitor);
void martlet_monitor_unlock(martlet_monitor *monitor);

/// Wakes all threads that wait.
void martlet_monitor_broadcast(martlet_monitor *monitor);

/// Waits to be woken, for at most this long, while another thread may take the lock. May return sooner for no reason.
void martlet_monitor_wait(martlet_monitor *monitor, long long nanoseconds);

/// The time in nanoseconds. Swift on a static standard library shows a `timespec`, and not what is in it.
long long martlet_nanoseconds(struct timespec time);

/// Gives back memory that this process has no use for at the moment: what its allocator holds free, and the pages of code that were
/// read from files. Code that runs again is mapped again from the kernel's cache, a few microseconds for each 64 KiB.
///
/// What a debugger wrote into code (breakpoints), or something moved to memory of no file, is lost.
void martlet_release_memory(void);

/// Writes what standard output still buffers. Returns 0, an error number if anything that was printed is
/// lost, or -1 if the reason is not known.
int martlet_flush_output(void);
