#include "statements.h"

#include <string.h>
#include <time.h>

static clockid_t measuring_clock = CLOCK_MONOTONIC;

void baseline_set_clock(int clock) { measuring_clock = clock; }

double baseline_now(void) {
    struct timespec time;
    clock_gettime(measuring_clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// splitmix64: any generator does that is the same in every run.
static uint64_t random_number(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void baseline_make_rows(baseline_row *rows, int count) {
    uint64_t state = 1;
    for (int i = 0; i < count; i++) {
        baseline_row *row = &rows[i];
        uint64_t high = random_number(&state), low = random_number(&state);
        row->key = i + 1;
        memcpy(row->uuid, &high, 8);
        memcpy(row->uuid + 8, &low, 8);
        snprintf(row->title, sizeof row->title, "task %d of the list", i);
        snprintf(row->note, sizeof row->note, "a note of usual length, with %08x in it", (unsigned)low);
        row->weight = (double)(high % 1000) / 8;
        row->done = (int64_t)(low & 1);
    }
}

int baseline_make_operations(baseline_operation *operations, int count) {
    uint64_t state = 2;
    int rows = 0, live_count = 0;
    int32_t *live = malloc(sizeof(int32_t) * (size_t)(count > 0 ? count : 1));
    for (int i = 0; i < count; i++) {
        uint64_t choice = random_number(&state) % 100;
        if (i < count / 10 || choice < 50 || live_count == 0) {
            operations[i] = (baseline_operation){BASELINE_INSERT, rows};
            live[live_count++] = rows++;
            continue;
        }
        int place = (int)(random_number(&state) % (uint64_t)live_count);
        operations[i] = (baseline_operation){choice < 90 ? BASELINE_UPDATE : BASELINE_DELETE, live[place]};
        if (choice >= 90) live[place] = live[--live_count];
    }
    free(live);
    return rows;
}

const char *baseline_sqlite_version(void) { return sqlite3_libversion(); }

struct sqlite3 *baseline_handle(baseline_database *database) { return database->handle; }

int baseline_execute(baseline_database *database, const char *sql) {
    char *message = NULL;
    int code = sqlite3_exec(database->handle, sql, NULL, NULL, &message);
    if (code != SQLITE_OK) {
        fprintf(stderr, "baseline: %s: %s\n", sql, message ? message : "?");
        sqlite3_free(message);
    }
    return code;
}

baseline_database *baseline_open(const char *path, baseline_settings settings) {
    baseline_database *database = calloc(1, sizeof *database);
    if (sqlite3_open_v2(path, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL)) {
        fprintf(stderr, "baseline: can't open %s\n", path);
        baseline_close(database);
        return NULL;
    }
    char sql[256];
    snprintf(
        sql, sizeof sql,
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -%d; PRAGMA secure_delete = %d;"
        "PRAGMA wal_autocheckpoint = %d; PRAGMA recursive_triggers = ON",
        settings.cache_kib, settings.secure_delete, settings.autocheckpoint_pages);
    if (baseline_execute(database, sql)) {
        baseline_close(database);
        return NULL;
    }
    return database;
}

void baseline_close(baseline_database *database) {
    sqlite3_close(database->handle);
    free(database);
}

#define UPSERT \
    INSERT " ON CONFLICT(id) DO UPDATE SET title = excluded.title, note = excluded.note, weight = excluded.weight, " \
           "done = excluded.done"

static double each(
    baseline_database *database, int by_uuid, const baseline_row *rows, const baseline_operation *operations, int kind,
    int count, int per_transaction, const char *insert_sql) {
    sqlite3_stmt *begin = prepare(database, "BEGIN IMMEDIATE"), *commit = prepare(database, "COMMIT");
    sqlite3_stmt *statements[3] = {prepare(database, insert_sql), prepare(database, UPDATE), prepare(database, DELETE)};
    int failed = 0;
    double start = baseline_now();
    for (int i = 0; i < count && !failed; i++) {
        if (i % per_transaction == 0) failed |= run(begin);
        int what = operations ? operations[i].kind : kind;
        const baseline_row *row = &rows[operations ? operations[i].row : i];
        sqlite3_stmt *statement = statements[what];
        bind_key(statement, by_uuid, row);
        if (what == BASELINE_INSERT) bind_values(statement, row);
        if (what == BASELINE_UPDATE) bind_update(statement, row, i);
        failed |= run(statement);
        if ((i + 1) % per_transaction == 0 || i + 1 == count) failed |= run(commit);
    }
    double seconds = baseline_now() - start;
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    for (int i = 0; i < 3; i++) sqlite3_finalize(statements[i]);
    return failed ? -1 : seconds;
}

double baseline_insert(baseline_database *database, int by_uuid, const baseline_row *rows, int count, int per_transaction) {
    return each(database, by_uuid, rows, NULL, BASELINE_INSERT, count, per_transaction, INSERT);
}

double baseline_update(baseline_database *database, int by_uuid, const baseline_row *rows, int count, int per_transaction) {
    return each(database, by_uuid, rows, NULL, BASELINE_UPDATE, count, per_transaction, INSERT);
}

double baseline_delete(baseline_database *database, int by_uuid, const baseline_row *rows, int count, int per_transaction) {
    return each(database, by_uuid, rows, NULL, BASELINE_DELETE, count, per_transaction, INSERT);
}

double baseline_apply(
    baseline_database *database, int by_uuid, const baseline_row *rows, const baseline_operation *operations, int count,
    int per_transaction) {
    return each(database, by_uuid, rows, operations, 0, count, per_transaction, UPSERT);
}

baseline_statement *baseline_prepare_insert(void *connection) {
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v3(connection, INSERT, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    return (baseline_statement *)statement;
}

int baseline_run_insert(baseline_statement *insert, int by_uuid, const baseline_row *rows, int count) {
    sqlite3_stmt *statement = (sqlite3_stmt *)insert;
    for (int i = 0; i < count; i++) {
        bind_key(statement, by_uuid, &rows[i]);
        bind_values(statement, &rows[i]);
        if (run(statement)) return 1;
    }
    return 0;
}

void baseline_finalize(baseline_statement *statement) { sqlite3_finalize((sqlite3_stmt *)statement); }

// A clock on its way to its table.
typedef struct {
    uint8_t uuid[16];
    int order;
    // What set it: BASELINE_INSERT and so on.
    int kind;
} collected_clock;

// As many as Martlet collects before it puts them into their table.
enum { COLLECTED_CLOCKS = 49000 };

static int compare_clocks(const void *a, const void *b) {
    const collected_clock *first = a, *second = b;
    int order = memcmp(first->uuid, second->uuid, 16);
    return order ? order : (first->order > second->order) - (first->order < second->order);
}

// Those in the order of their rows, the newest of each; then none is collected any more.
static int put_clocks_away(sqlite3_stmt *put, sqlite3_stmt *remove, sqlite3_stmt *forget, collected_clock *clocks, int count) {
    static const uint8_t attributes[20] = {4, [10] = 5};
    qsort(clocks, (size_t)count, sizeof *clocks, compare_clocks);
    for (int i = 0; i < count; i++) {
        if (i + 1 < count && !memcmp(clocks[i].uuid, clocks[i + 1].uuid, 16)) continue;
        uint8_t name[18] = {4, 16};
        memcpy(name + 2, clocks[i].uuid, 16);
        sqlite3_stmt *statement = clocks[i].kind == BASELINE_DELETE ? remove : put;
        sqlite3_bind_blob(statement, 1, name, 18, SQLITE_TRANSIENT);
        if (statement == put) {
            sqlite3_bind_int64(put, 2, ((sqlite3_int64)1 << 60) + i);
            if (clocks[i].kind == BASELINE_UPDATE) sqlite3_bind_blob(put, 3, attributes, sizeof attributes, SQLITE_STATIC);
            else sqlite3_bind_null(put, 3);
        }
        if (run(statement)) return 1;
    }
    return run(forget);
}

#define FIND_CLOCK "SELECT hlc, node, attrs FROM _martlet_side_1 WHERE ident = ?1"
#define REMOVE_CLOCK "DELETE FROM _martlet_side_1 WHERE ident = ?1"
#define PUT_CLOCK \
    "INSERT INTO _martlet_side_1(ident, hlc, node, attrs) VALUES (?1, ?2, 1, ?3) " \
    "ON CONFLICT DO UPDATE SET hlc = excluded.hlc, node = excluded.node, attrs = excluded.attrs"

double baseline_register(
    baseline_database *database, const baseline_row *rows, int row_count, const baseline_operation *operations,
    const baseline_message *messages, int count, int per_commit) {
    sqlite3_stmt *read = prepare(database, "SELECT * FROM _martlet_log WHERE id > ?1 ORDER BY id");
    sqlite3_stmt *find_clock = prepare(database, FIND_CLOCK);
    sqlite3_stmt *find_tombstone = prepare(database, FIND_TOMBSTONE), *set_tombstone = prepare(database, SET_TOMBSTONE);
    sqlite3_stmt *send = prepare(database, "INSERT INTO _martlet_outbox(sequence, txn, payload) VALUES (?1, ?2, ?3)");
    sqlite3_stmt *collect = prepare(database, "INSERT INTO _martlet_recent(clocks) VALUES (?1)");
    sqlite3_stmt *put = prepare(database, PUT_CLOCK);
    sqlite3_stmt *remove = prepare(database, REMOVE_CLOCK);
    sqlite3_stmt *forget = prepare(database, "DELETE FROM _martlet_recent");
    sqlite3_stmt *begin = prepare(database, "BEGIN IMMEDIATE"), *commit = prepare(database, "COMMIT");
    collected_clock *clocks = malloc(sizeof *clocks * (size_t)(COLLECTED_CLOCKS + per_commit));
    uint8_t *blob = malloc(32 * (size_t)per_commit);
    // In which round a row's clock was last collected: it is in memory until the round ends.
    int *rounds = calloc((size_t)row_count, sizeof *rounds);
    int done = 0, collected = 0, round = 1, has_tombstones = 0, failed = 0;
    sqlite3_int64 last = 0;
    double start = baseline_now();
    while (done < count && !failed) {
        failed = run(begin);
        int taken = 0, new_clocks = 0;
        sqlite3_bind_int64(read, 1, last);
        while (!failed && taken < per_commit && done < count && sqlite3_step(read) == SQLITE_ROW) {
            last = sqlite3_column_int64(read, 0);
            if (sqlite3_column_int64(read, 1) != 0) {
                // The order of the log: 1 for an insert, 2 for an update, 3 for a delete.
                int what = (int)sqlite3_column_int64(read, 3) - 1;
                const void *uuid = sqlite3_column_blob(read, 6);
                int row = operations[done].row;
                if (!uuid || sqlite3_column_bytes(read, 6) != 16 || what != operations[done].kind ||
                    memcmp(uuid, rows[row].uuid, 16) || new_clocks == per_commit) {
                    failed = 1;
                    break;
                }
                uint8_t name[IDENTITY_BYTES];
                make_identity(name, 1, &rows[row]);
                if (what == BASELINE_INSERT && has_tombstones) failed |= asks(find_tombstone, name);
                // Also for an insert, which may have replaced a row of that key.
                if (rounds[row] != round) failed |= asks(find_clock, name);
                if (what == BASELINE_DELETE) {
                    failed |= store_tombstone(set_tombstone, name, ((sqlite3_int64)1 << 60) + done);
                    has_tombstones = 1;
                }
                memcpy(clocks[collected].uuid, uuid, 16);
                clocks[collected].order = collected;
                clocks[collected++].kind = what;
                rounds[row] = round;
                memset(blob + 32 * new_clocks, 1, 32);
                memcpy(blob + 32 * new_clocks++, uuid, 16);
                continue;
            }
            sqlite3_bind_int64(send, 1, done + 1);
            sqlite3_bind_int64(send, 2, last);
            sqlite3_bind_blob(send, 3, messages[done].payload, (int)messages[done].payload_size, SQLITE_STATIC);
            failed |= run(send);
            taken++;
            done++;
        }
        sqlite3_reset(read);
        if (!taken) failed = 1;
        if (!failed && collected >= COLLECTED_CLOCKS) {
            failed = put_clocks_away(put, remove, forget, clocks, collected);
            collected = 0;
            round++;
        } else if (!failed) {
            sqlite3_bind_blob(collect, 1, blob, 32 * new_clocks, SQLITE_STATIC);
            failed = run(collect);
        }
        failed = failed || run(commit);
    }
    double time = baseline_now() - start;
    sqlite3_stmt *all[] = {
        read, find_clock, find_tombstone, set_tombstone, send, collect, put, remove, forget, begin, commit};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    free(clocks);
    free(rounds);
    free(blob);
    return failed ? -1 : time;
}

// What Martlet notes of one change, and of a transaction, while it applies them.
typedef struct {
    sqlite3_stmt *find_clock, *find_tombstone, *set_tombstone, *mark;
    sqlite3_stmt *log[3];
} history_statements;

static history_statements prepare_history(baseline_database *database) {
    return (history_statements){
        .find_clock = prepare(database, FIND_CLOCK),
        .find_tombstone = prepare(database, FIND_TOMBSTONE),
        .set_tombstone = prepare(database, SET_TOMBSTONE),
        .mark = prepare(database, MARK),
        .log = {
            prepare(database, INTO_LOG "c1, c2, c3, c4, c5) VALUES (1, NULL, 1, NULL, ?6, ?1, ?2, ?3, ?4, ?5)"),
            prepare(database, INTO_LOG "c5, c4, c1) VALUES (1, NULL, 2, 24, ?6, ?2, ?3, ?1)"),
            prepare(database, INTO_LOG "c1) VALUES (1, NULL, 3, NULL, ?6, ?1)"),
        },
    };
}

double baseline_apply_with_history(
    baseline_database *database, const baseline_row *rows, int row_count, const baseline_operation *operations, int count,
    int per_transaction, int per_commit) {
    // As on the applier's connection.
    sqlite3_db_config(database->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_stmt *begin = prepare(database, "BEGIN IMMEDIATE"), *commit = prepare(database, "COMMIT");
    sqlite3_stmt *statements[3] = {prepare(database, INSERT), prepare(database, UPDATE), prepare(database, DELETE)};
    history_statements history = prepare_history(database);
    sqlite3_stmt *collect = prepare(database, "INSERT INTO _martlet_recent(clocks) VALUES (?1)");
    sqlite3_stmt *forget = prepare(database, "DELETE FROM _martlet_recent");
    sqlite3_stmt *put = prepare(database, PUT_CLOCK);
    sqlite3_stmt *remove = prepare(database, REMOVE_CLOCK);
    sqlite3_stmt *note = prepare(database, NOTE);
    collected_clock *clocks = malloc(sizeof *clocks * (size_t)(COLLECTED_CLOCKS + per_commit));
    // In which round a row's clock was last collected: it is in memory until the round ends.
    int *rounds = calloc((size_t)row_count, sizeof *rounds);
    uint8_t *blob = malloc(60 * (size_t)per_commit);
    int collected = 0, round = 1, size = 0, has_tombstones = 0, failed = 0;
    double start = baseline_now();
    for (int i = 0; i < count && !failed; i++) {
        if (i % per_commit == 0) failed |= run(begin);
        int what = operations[i].kind;
        const baseline_row *row = &rows[operations[i].row];
        uint8_t name[IDENTITY_BYTES];
        make_identity(name, 1, row);
        if (what == BASELINE_INSERT && has_tombstones) failed |= asks(history.find_tombstone, name);
        if (what != BASELINE_INSERT && rounds[operations[i].row] != round) failed |= asks(history.find_clock, name);
        sqlite3_stmt *both[2] = {statements[what], history.log[what]};
        for (int k = 0; k < 2; k++) {
            bind_key(both[k], 1, row);
            if (what == BASELINE_INSERT) bind_values(both[k], row);
            if (what == BASELINE_UPDATE) bind_update(both[k], row, i);
        }
        sqlite3_bind_int64(history.log[what], 6, 1700000000000 + i);
        failed |= run(statements[what]) || run(history.log[what]);
        sqlite3_int64 logged = sqlite3_last_insert_rowid(database->handle);
        if (what == BASELINE_DELETE) {
            failed |= store_tombstone(history.set_tombstone, name, ((sqlite3_int64)1 << 60) + i);
            has_tombstones = 1;
        }
        if ((i + 1) % per_transaction == 0) {
            sqlite3_bind_int64(history.mark, 1, logged - per_transaction + 1);
            sqlite3_bind_int64(history.mark, 2, 1700000000000 + i);
            sqlite3_bind_blob(history.mark, 3, rows[0].uuid, 16, SQLITE_STATIC);
            sqlite3_bind_int64(history.mark, 4, i + 1);
            failed |= run(history.mark);
        }
        memcpy(clocks[collected].uuid, row->uuid, 16);
        clocks[collected].order = i;
        clocks[collected++].kind = what;
        rounds[operations[i].row] = round;
        int length = what == BASELINE_DELETE ? 21 : what == BASELINE_UPDATE ? 51 : 30;
        memset(blob + size, 1, (size_t)length);
        size += length;
        if ((i + 1) % per_commit && i + 1 != count) continue;
        sqlite3_bind_blob(collect, 1, blob, size, SQLITE_STATIC);
        failed |= run(collect);
        size = 0;
        if (collected >= COLLECTED_CLOCKS) {
            failed |= put_clocks_away(put, remove, forget, clocks, collected);
            collected = 0;
            round++;
        }
        sqlite3_bind_int64(note, 1, i + 1);
        failed |= run(note) || run(commit);
    }
    double time = baseline_now() - start;
    sqlite3_stmt *all[] = {
        begin, commit, statements[0], statements[1], statements[2], collect, forget, put, remove, note, history.find_clock,
        history.find_tombstone, history.set_tombstone, history.mark, history.log[0], history.log[1], history.log[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    free(clocks);
    free(rounds);
    free(blob);
    return failed ? -1 : time;
}
