#include "baseline.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct baseline_database {
    sqlite3 *handle;
};

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

static sqlite3_stmt *prepare(baseline_database *database, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(database->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL)) {
        fprintf(stderr, "baseline: %s: %s\n", sql, sqlite3_errmsg(database->handle));
        exit(70);
    }
    return statement;
}

static int run(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE) fprintf(stderr, "baseline: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return code != SQLITE_DONE;
}

static void bind_key(sqlite3_stmt *statement, int by_uuid, const baseline_row *row) {
    if (by_uuid) {
        sqlite3_bind_blob(statement, 1, row->uuid, 16, SQLITE_STATIC);
    } else {
        sqlite3_bind_int64(statement, 1, row->key);
    }
}

static void bind_values(sqlite3_stmt *statement, const baseline_row *row) {
    sqlite3_bind_text(statement, 2, row->title, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, row->note, -1, SQLITE_STATIC);
    sqlite3_bind_double(statement, 4, row->weight);
    sqlite3_bind_int64(statement, 5, row->done);
}

static void bind_update(sqlite3_stmt *statement, const baseline_row *row, int step) {
    sqlite3_bind_int64(statement, 2, 1 - row->done);
    sqlite3_bind_double(statement, 3, row->weight + 1 + step);
}

#define INSERT "INSERT INTO task(id, title, note, weight, done) VALUES (?1, ?2, ?3, ?4, ?5)"
#define UPSERT \
    INSERT " ON CONFLICT(id) DO UPDATE SET title = excluded.title, note = excluded.note, weight = excluded.weight, " \
           "done = excluded.done"
#define UPDATE "UPDATE task SET done = ?2, weight = ?3 WHERE id = ?1"
#define DELETE "DELETE FROM task WHERE id = ?1"

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
} collected_clock;

// As many as Martlet collects before it puts them into their table.
enum { COLLECTED_CLOCKS = 20000 };

static int compare_clocks(const void *a, const void *b) {
    const collected_clock *first = a, *second = b;
    int order = memcmp(first->uuid, second->uuid, 16);
    return order ? order : (first->order > second->order) - (first->order < second->order);
}

static int put_clocks_away(sqlite3_stmt *put, sqlite3_stmt *forget, collected_clock *clocks, int count) {
    qsort(clocks, (size_t)count, sizeof *clocks, compare_clocks);
    for (int i = 0; i < count; i++) {
        if (i + 1 < count && !memcmp(clocks[i].uuid, clocks[i + 1].uuid, 16)) continue;
        uint8_t name[18] = {4, 16};
        memcpy(name + 2, clocks[i].uuid, 16);
        sqlite3_bind_blob(put, 1, name, 18, SQLITE_TRANSIENT);
        sqlite3_bind_int64(put, 2, ((sqlite3_int64)1 << 60) + i);
        if (run(put)) return 1;
    }
    return run(forget);
}

double baseline_register(baseline_database *database, const baseline_message *messages, int count, int per_commit) {
    sqlite3_stmt *read = prepare(database, "SELECT * FROM _martlet_log WHERE id > ?1 ORDER BY id");
    sqlite3_stmt *send = prepare(database, "INSERT INTO _martlet_outbox(sequence, txn, payload) VALUES (?1, ?2, ?3)");
    sqlite3_stmt *collect = prepare(database, "INSERT INTO _martlet_recent(clocks) VALUES (?1)");
    sqlite3_stmt *put = prepare(
        database, "INSERT INTO _martlet_side_1(ident, hlc, node) VALUES (?1, ?2, 1) ON CONFLICT DO UPDATE SET hlc = excluded.hlc");
    sqlite3_stmt *forget = prepare(database, "DELETE FROM _martlet_recent");
    sqlite3_stmt *begin = prepare(database, "BEGIN IMMEDIATE"), *commit = prepare(database, "COMMIT");
    collected_clock *clocks = malloc(sizeof *clocks * (size_t)(COLLECTED_CLOCKS + per_commit));
    uint8_t *blob = malloc(32 * (size_t)per_commit);
    int done = 0, collected = 0, failed = 0;
    sqlite3_int64 last = 0;
    double start = baseline_now();
    while (done < count && !failed) {
        failed = run(begin);
        int taken = 0, new_clocks = 0;
        sqlite3_bind_int64(read, 1, last);
        while (!failed && taken < per_commit && done < count && sqlite3_step(read) == SQLITE_ROW) {
            last = sqlite3_column_int64(read, 0);
            if (sqlite3_column_int64(read, 1) != 0) {
                const void *uuid = sqlite3_column_blob(read, 6);
                if (!uuid || sqlite3_column_bytes(read, 6) != 16 || new_clocks == per_commit) { failed = 1; break; }
                memcpy(clocks[collected].uuid, uuid, 16);
                clocks[collected].order = collected;
                memset(blob + 32 * new_clocks, 1, 32);
                memcpy(blob + 32 * new_clocks++, uuid, 16);
                collected++;
                continue;
            }
            sqlite3_bind_int64(send, 1, done + 1);
            sqlite3_bind_int64(send, 2, last);
            sqlite3_bind_blob(send, 3, messages[done].payload, (int)messages[done].payload_size, SQLITE_TRANSIENT);
            failed = run(send);
            taken++;
            done++;
        }
        sqlite3_reset(read);
        if (!taken) failed = 1;
        if (!failed && collected >= COLLECTED_CLOCKS) {
            failed = put_clocks_away(put, forget, clocks, collected);
            collected = 0;
        } else if (!failed) {
            sqlite3_bind_blob(collect, 1, blob, 32 * new_clocks, SQLITE_TRANSIENT);
            failed = run(collect);
        }
        failed = failed || run(commit);
    }
    double time = baseline_now() - start;
    sqlite3_stmt *all[] = {read, send, collect, put, forget, begin, commit};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
    free(clocks);
    free(blob);
    return failed ? -1 : time;
}
