#pragma once
#include <stdint.h>

// A machine that a simulation runs on: SQLite's clock and disk, by thread. Threads that never call anything here keep the
// real ones.

/// Puts the simulated machine between SQLite and the operating system, for this process. Returns SQLite's result code.
int martlet_simulator_install(void);

/// True on a thread that has the simulated clock and disk.
int martlet_simulator_is_on(void);

/// Sets what SQLite's clock says on this thread, in milliseconds since 1970.
void martlet_simulator_set_time(int64_t milliseconds);

/// Lets this many writes to files succeed on this thread. All after those fail, as if the machine had died. Negative: all
/// succeed.
void martlet_simulator_set_writes(int64_t count);

/// Lets files grow by this many bytes in all on this thread. SQLite finds the disk full then. Negative: there is always room.
void martlet_simulator_set_room(int64_t bytes);

/// What is left of it.
int64_t martlet_simulator_room(void);

/// True once a write has failed on this thread since ``martlet_simulator_set_writes`` was last called.
int martlet_simulator_has_died(void);

/// Gives this thread the real clock and the real disk back.
void martlet_simulator_leave(void);
