#include "statements.h"

#include <string.h>

enum { COLLECTED_CLOCKS = 20000 };

// What loading a snapshot writes of each row. Clocks by integer key are written beside their rows; clocks by stable ID are collected, and
// written many at a time in the order of their IDs.
typedef struct {
    int by_uuid;
    sqlite3_stmt *clock, *row, *log, *collect, *forget;
    uint8_t *identities;
    int collected, written;
} loading;

static loading begin_loading(baseline_database *database, int by_uuid, int logs, int per_commit) {
    return (loading){
        .by_uuid = by_uuid,
        .clock = prepare(
            database, by_uuid ? "INSERT INTO _martlet_side_1(ident, hlc, node) VALUES (?1, ?2, 1)"
                              : "INSERT INTO _martlet_side_1(ident, hlc, node, row) VALUES (?1, ?2, 1, ?3)"),
        .row = prepare(database, INSERT),
        .log = !logs     ? NULL
               : by_uuid ? prepare(database, INTO_LOG "c1, c2, c3, c4, c5) VALUES (1, NULL, 1, NULL, ?6, ?1, ?2, ?3, ?4, ?5)")
                         : prepare(database, INTO_LOG "c1, c2, c3, c4) VALUES (1, ?1, 1, NULL, ?6, ?2, ?3, ?4, ?5)"),
        .collect = prepare(database, "INSERT INTO _martlet_recent(clocks) VALUES (?1)"),
        .forget = prepare(database, "DELETE FROM _martlet_recent"),
        .identities = calloc((size_t)(COLLECTED_CLOCKS + per_commit), IDENTITY_BYTES),
    };
}

static int set_clock(loading *load, const uint8_t *identity, int64_t key) {
    sqlite3_bind_blob(load->clock, 1, identity, IDENTITY_BYTES, SQLITE_TRANSIENT);
    sqlite3_bind_int64(load->clock, 2, ((sqlite3_int64)1 << 60) + key);
    if (!load->by_uuid) sqlite3_bind_int64(load->clock, 3, key);
    return run(load->clock);
}

static int load_row(loading *load, const baseline_row *row, int place) {
    uint8_t *identity = load->identities + IDENTITY_BYTES * load->collected;
    make_identity(identity, load->by_uuid, row);
    if (load->by_uuid) load->collected++;
    else if (set_clock(load, identity, row->key)) return 1;
    bind_key(load->row, load->by_uuid, row);
    bind_values(load->row, row);
    if (run(load->row)) return 1;
    if (!load->log) return 0;
    bind_key(load->log, load->by_uuid, row);
    bind_values(load->log, row);
    sqlite3_bind_int64(load->log, 6, 1700000000000 + place);
    return run(load->log);
}

static int compare_identities(const void *a, const void *b) { return memcmp(a, b, IDENTITY_BYTES); }

// At the end of a commit.
static int put_clocks(loading *load) {
    if (!load->collected) return 0;
    if (load->collected < COLLECTED_CLOCKS) {
        int added = load->collected - load->written;
        // A clock takes 12 bytes beside its ID.
        sqlite3_bind_zeroblob(load->collect, 1, added * (IDENTITY_BYTES + 12));
        load->written = load->collected;
        return run(load->collect);
    }
    qsort(load->identities, (size_t)load->collected, IDENTITY_BYTES, compare_identities);
    for (int i = 0; i < load->collected; i++) {
        if (set_clock(load, load->identities + IDENTITY_BYTES * i, i)) return 1;
    }
    load->collected = load->written = 0;
    return run(load->forget);
}

double baseline_load(
    baseline_database *database, int by_uuid, int logs, const baseline_row *rows, int count, int per_commit) {
    // As on the applier's connection.
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    loading load = begin_loading(database, by_uuid, logs, per_commit);
    sqlite3_stmt *begin = prepare(database, "BEGIN IMMEDIATE"), *commit = prepare(database, "COMMIT");
    sqlite3_stmt *mark = prepare(
        database, "INSERT INTO _martlet_log(e, r, k, t, c1, c2) VALUES (0, ?1, 0, ?2, 'martlet.sync', 'snapshot')");
    int failed = 0;
    double start = baseline_now();
    for (int i = 0; i < count && !failed; i++) {
        if (i % per_commit == 0) failed |= run(begin);
        failed |= load_row(&load, &rows[i], i);
        if ((i + 1) % per_commit && i + 1 != count) continue;
        sqlite3_bind_int64(mark, 1, i / per_commit * (per_commit + 1) + 1);
        sqlite3_bind_int64(mark, 2, 1700000000000 + i);
        failed |= run(mark) || put_clocks(&load) || run(commit);
    }
    double time = baseline_now() - start;
    sqlite3_stmt *all[] = {load.clock, load.row, load.log, load.collect, load.forget, begin, commit, mark};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    free(load.identities);
    return failed ? -1 : time;
}
