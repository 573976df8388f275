#pragma once
#include <sqlite3.h>

// Swift can't call variadic C functions; sqlite3_db_config is one.

/// Stops triggers from running on this connection. Returns SQLite's result code.
int martlet_disable_triggers(sqlite3 *connection);
