#include "statements.h"

// What applying writes to a table with an integer key: the clock of each row is beside its integer key, in a table that has an index of
// the stable IDs.
typedef struct {
    sqlite3_stmt *rows[3], *clocks[3], *log[3];
    sqlite3_stmt *find_clock, *find_tombstone, *set_tombstone, *retire, *mark, *note, *begin, *commit;
    int has_tombstones;
} applying;

static applying begin_applying(baseline_database *database) {
    return (applying){
        .rows = {prepare(database, INSERT), prepare(database, UPDATE), prepare(database, DELETE)},
        .clocks = {
            prepare(database, "INSERT INTO _martlet_side_1(ident, hlc, node, row) VALUES (?1, ?2, 1, ?3)"),
            prepare(database, "UPDATE _martlet_side_1 SET attrs = ?2 WHERE row = ?1"),
            prepare(database, "DELETE FROM _martlet_side_1 WHERE row = ?1"),
        },
        .log = {
            prepare(database, INTO_LOG "c1, c2, c3, c4) VALUES (1, ?1, 1, NULL, ?6, ?2, ?3, ?4, ?5)"),
            prepare(database, INTO_LOG "c4, c3) VALUES (1, ?1, 2, 12, ?6, ?2, ?3)"),
            prepare(database, "INSERT INTO _martlet_log(e, r, k, m, t) VALUES (1, ?1, 3, NULL, ?6)"),
        },
        .find_clock = prepare(database, "SELECT hlc, node, attrs, row FROM _martlet_side_1 WHERE ident = ?1"),
        .find_tombstone = prepare(database, FIND_TOMBSTONE),
        .set_tombstone = prepare(database, SET_TOMBSTONE),
        .retire = prepare(
            database, "INSERT OR REPLACE INTO _martlet_retired(entity, row, until, ident) VALUES (1, ?1, ?2, ?3)"),
        .mark = prepare(database, MARK),
        .note = prepare(database, NOTE),
        .begin = prepare(database, "BEGIN IMMEDIATE"),
        .commit = prepare(database, "COMMIT"),
    };
}

static void end_applying(applying *apply) {
    for (int i = 0; i < 3; i++) {
        sqlite3_finalize(apply->rows[i]);
        sqlite3_finalize(apply->clocks[i]);
        sqlite3_finalize(apply->log[i]);
    }
    sqlite3_stmt *others[] = {
        apply->find_clock, apply->find_tombstone, apply->set_tombstone, apply->retire,
        apply->mark, apply->note, apply->begin, apply->commit};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) sqlite3_finalize(others[i]);
}

static int write_clock(applying *apply, int kind, const uint8_t *identity, const baseline_row *row, int64_t time) {
    static const uint8_t attributes[20] = {4, [10] = 3};
    sqlite3_stmt *statement = apply->clocks[kind];
    if (kind == BASELINE_INSERT) {
        sqlite3_bind_blob(statement, 1, identity, IDENTITY_BYTES, SQLITE_STATIC);
        sqlite3_bind_int64(statement, 2, time);
        sqlite3_bind_int64(statement, 3, row->key);
    } else {
        sqlite3_bind_int64(statement, 1, row->key);
        if (kind == BASELINE_UPDATE) sqlite3_bind_blob(statement, 2, attributes, sizeof attributes, SQLITE_STATIC);
    }
    return run(statement);
}

static void bind_change(sqlite3_stmt *statement, int kind, const baseline_row *row, int step) {
    bind_key(statement, 0, row);
    if (kind == BASELINE_INSERT) bind_values(statement, row);
    if (kind == BASELINE_UPDATE) bind_update(statement, row, step);
}

static int bury(applying *apply, const uint8_t *identity, const baseline_row *row, int64_t time, int64_t change) {
    sqlite3_bind_int64(apply->retire, 1, row->key);
    sqlite3_bind_int64(apply->retire, 2, change);
    sqlite3_bind_blob(apply->retire, 3, identity, IDENTITY_BYTES, SQLITE_STATIC);
    apply->has_tombstones = 1;
    return store_tombstone(apply->set_tombstone, identity, time) || run(apply->retire);
}

static int apply_one(applying *apply, int kind, const baseline_row *row, int step) {
    uint8_t identity[IDENTITY_BYTES];
    make_identity(identity, 0, row);
    int64_t time = ((int64_t)1 << 60) + step, milliseconds = 1700000000000 + step;
    int failed = 0;
    if (kind != BASELINE_INSERT) failed |= asks(apply->find_clock, identity);
    else if (apply->has_tombstones) failed |= asks(apply->find_tombstone, identity);
    bind_change(apply->rows[kind], kind, row, step);
    bind_change(apply->log[kind], kind, row, step);
    sqlite3_bind_int64(apply->log[kind], 6, milliseconds);
    failed = failed || write_clock(apply, kind, identity, row, time) || run(apply->rows[kind]) || run(apply->log[kind]);
    int64_t change = sqlite3_last_insert_rowid(sqlite3_db_handle(apply->mark));
    return failed || (kind == BASELINE_DELETE && bury(apply, identity, row, time, change));
}

static int mark_transaction(applying *apply, int changes, const uint8_t *origin, int step) {
    sqlite3_bind_int64(apply->mark, 1, sqlite3_last_insert_rowid(sqlite3_db_handle(apply->mark)) - changes + 1);
    sqlite3_bind_int64(apply->mark, 2, 1700000000000 + step);
    sqlite3_bind_blob(apply->mark, 3, origin, 16, SQLITE_STATIC);
    sqlite3_bind_int64(apply->mark, 4, step + 1);
    return run(apply->mark);
}

double baseline_apply_keyed(
    baseline_database *database, const baseline_row *rows, const baseline_operation *operations, int count,
    int per_transaction, int per_commit) {
    // As on the applier's connection.
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    applying apply = begin_applying(database);
    int failed = 0;
    double start = baseline_now();
    for (int i = 0; i < count && !failed; i++) {
        if (i % per_commit == 0) failed |= run(apply.begin);
        failed = failed || apply_one(&apply, operations[i].kind, &rows[operations[i].row], i);
        if ((i + 1) % per_transaction == 0) {
            failed = failed || mark_transaction(&apply, per_transaction, rows[0].uuid, i);
        }
        if ((i + 1) % per_commit && i + 1 != count) continue;
        sqlite3_bind_int64(apply.note, 1, i + 1);
        failed = failed || run(apply.note) || run(apply.commit);
    }
    double time = baseline_now() - start;
    end_applying(&apply);
    return failed ? -1 : time;
}
