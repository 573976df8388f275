#pragma once
#include "baseline.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct baseline_database {
    sqlite3 *handle;
};

#define INSERT "INSERT INTO task(id, title, note, weight, done) VALUES (?1, ?2, ?3, ?4, ?5)"
#define UPDATE "UPDATE task SET done = ?2, weight = ?3 WHERE id = ?1"
#define DELETE "DELETE FROM task WHERE id = ?1"

// What Martlet writes beside the rows, of each change, transaction and commit.
#define INTO_LOG "INSERT INTO _martlet_log(e, r, k, m, t, "
#define MARK \
    "INSERT INTO _martlet_log(e, r, k, t, c1, c2, c3, c4, c5, c6, c7, c8) " \
    "VALUES (0, ?1, 0, ?2, 'martlet.sync', NULL, NULL, ?3, ?4, 'app', ?2, 'origin')"
#define FIND_TOMBSTONE "SELECT hlc, node FROM _martlet_tombstones WHERE entity = 1 AND ident = ?1"
#define SET_TOMBSTONE "INSERT OR REPLACE INTO _martlet_tombstones(entity, ident, hlc, node) VALUES (1, ?1, ?2, 1)"
#define NOTE \
    "INSERT OR FAIL INTO _martlet_meta(key, value) " \
    "VALUES ('offset/0/t', ?1), ('origin/1', ?1), ('clock', ?1), ('registered', ?1) " \
    "ON CONFLICT DO UPDATE SET value = excluded.value"

enum { IDENTITY_BYTES = 18 };

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

static inline void bind_update(sqlite3_stmt *statement, const baseline_row *row, int step) {
    sqlite3_bind_int64(statement, 2, 1 - row->done);
    sqlite3_bind_double(statement, 3, row->weight + 1 + step);
}

// The stable ID of a row: the UUID that is its key, or one that ascends with its integer key, as those that Martlet assigns do.
static inline void make_identity(uint8_t *identity, int by_uuid, const baseline_row *row) {
    identity[0] = 4;
    identity[1] = 16;
    memcpy(identity + 2, row->uuid, 16);
    if (by_uuid) return;
    memset(identity + 2, 0x5a, 4);
    for (int i = 0; i < 5; i++) identity[6 + i] = (uint8_t)(row->key >> (8 * (4 - i)));
}

// Looks something up by a stable ID. Returns 0 if that went well, whether there is anything or not.
static inline int asks(sqlite3_stmt *statement, const uint8_t *identity) {
    sqlite3_bind_blob(statement, 1, identity, IDENTITY_BYTES, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code != SQLITE_ROW && code != SQLITE_DONE;
}

// `set` is SET_TOMBSTONE.
static inline int store_tombstone(sqlite3_stmt *set, const uint8_t *identity, int64_t time) {
    sqlite3_bind_blob(set, 1, identity, IDENTITY_BYTES, SQLITE_STATIC);
    sqlite3_bind_int64(set, 2, time);
    return run(set);
}
