#pragma once
#include <sqlite3.h>
#include <stdint.h>

// Swift can't call variadic C functions; sqlite3_db_config is one.

/// Stops triggers from running on this connection. Returns SQLite's result code.
int martlet_disable_triggers(sqlite3 *connection);

/// Lets triggers run on this connection (1) or not (0). TEMP triggers run anyway.
///
/// @return what was so before, or -1 where SQLite refuses.
int martlet_set_triggers(sqlite3 *connection, int enabled);

/// Gives the connection an SQL function of a number, whose result is that bit of the integer that is returned, as it is
/// then. Numbers that are 64 apart share a bit. It begins as 0.
///
/// @return NULL where SQLite refuses. It is freed with the connection.
uint64_t *martlet_add_switches(sqlite3 *connection, const char *name);

/// A file read as SQLite reads it: what this process has locked of it stays locked when it is closed.
typedef struct martlet_file martlet_file;

/// Opens a database file to be read. Returns NULL where that can't be done.
martlet_file *martlet_file_open(const char *path);

/// Reads so many bytes at the offset. Returns SQLite's result code.
int martlet_file_read(martlet_file *file, void *buffer, int count, int64_t offset);

void martlet_file_close(martlet_file *file);

/// Runs SQLite's integrity check on a connection of its own, which leaves the file and its log as they are. Rows that break
/// a rule of their table don't count.
///
/// @param alone Not 0: as if there were no log.
/// @return 1 where all is well, 0 where it is not, -1 where that can't be found out: the file is busy, or its schema needs a function
///   that this connection does not have.
int martlet_is_sound(const char *path, int alone);
