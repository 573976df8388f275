#pragma once
#include "baseline.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct baseline_database {
    sqlite3 *handle;
};

#define INSERT "INSERT INTO task(id, title, note, weight, done) VALUES (?1, ?2, ?3, ?4, ?5)"

static inline sqlite3_stmt *prepare(baseline_database *database, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(database->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL)) {
        fprintf(stderr, "baseline: %s: %s\n", sql, sqlite3_errmsg(database->handle));
        exit(70);
    }
    return statement;
}

static inline int run(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE) fprintf(stderr, "baseline: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return code != SQLITE_DONE;
}

static inline void bind_key(sqlite3_stmt *statement, int by_uuid, const baseline_row *row) {
    if (by_uuid) {
        sqlite3_bind_blob(statement, 1, row->uuid, 16, SQLITE_STATIC);
    } else {
        sqlite3_bind_int64(statement, 1, row->key);
    }
}

static inline void bind_values(sqlite3_stmt *statement, const baseline_row *row) {
    sqlite3_bind_text(statement, 2, row->title, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, row->note, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 4, row->weight);
    sqlite3_bind_int64(statement, 5, row->done);
}
