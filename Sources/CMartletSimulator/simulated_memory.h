#pragma once

// Makes SQLite allocate by thread, without locks, where it has not been used before in this process.
void martlet_simulator_use_memory(void);
