#pragma once
// What plain C makes of the same work on the same libraries. Each function that does timed work returns seconds, or a
// negative number after an error, which it prints.
#include <stddef.h>
#include <stdint.h>

typedef struct baseline_database baseline_database;

typedef struct {
    int cache_kib;
    int secure_delete;
    int autocheckpoint_pages;
} baseline_settings;

// One row of the benchmark table. Rows are made once, outside of what is timed.
typedef struct {
    int64_t key;
    uint8_t uuid[16];
    char title[32];
    char note[64];
    double weight;
    int64_t done;
} baseline_row;

enum { BASELINE_INSERT = 0, BASELINE_UPDATE = 1, BASELINE_DELETE = 2 };

// One operation on one row; `row` counts the rows that were ever inserted.
typedef struct {
    int32_t kind;
    int32_t row;
} baseline_operation;

void baseline_make_rows(baseline_row *rows, int count);
// 50 % inserts, 40 % updates of two columns, 10 % deletes of a live row, after a start with inserts alone.
// Returns the number of rows that are inserted.
int baseline_make_operations(baseline_operation *operations, int count);

// What the SQLite functions measure with: CLOCK_MONOTONIC, or CLOCK_PROCESS_CPUTIME_ID where other programs compete.
void baseline_set_clock(int clock);
double baseline_now(void);

const char *baseline_sqlite_version(void);
baseline_database *baseline_open(const char *path, baseline_settings settings);
void baseline_close(baseline_database *database);
int baseline_execute(baseline_database *database, const char *sql);
struct sqlite3 *baseline_handle(baseline_database *database);

// The table `task`, by uuid or by integer key, `per_transaction` rows to a transaction.
double baseline_insert(baseline_database *, int by_uuid, const baseline_row *rows, int count, int per_transaction);
double baseline_update(baseline_database *, int by_uuid, const baseline_row *rows, int count, int per_transaction);
double baseline_delete(baseline_database *, int by_uuid, const baseline_row *rows, int count, int per_transaction);
// The operations as upserts, updates and deletes.
double baseline_apply(
    baseline_database *, int by_uuid, const baseline_row *rows, const baseline_operation *, int count,
    int per_transaction);

// The same inserts on a connection of somebody else's (an `sqlite3 *`), inside of a transaction of theirs: what remains is
// the cost of the transaction itself. Returns 0 when all went well.
typedef struct baseline_statement baseline_statement;
baseline_statement *baseline_prepare_insert(void *connection);
int baseline_run_insert(baseline_statement *statement, int by_uuid, const baseline_row *rows, int count);
void baseline_finalize(baseline_statement *statement);

// The tables of `Models.swift`: entries in folders, each with one of `labels` labels, which has an index.
double baseline_models_insert(baseline_database *, const baseline_row *rows, int count, int folders, int labels);
double baseline_models_fetch(baseline_database *, int count);
// The entries of one label after the other, `times` times; `expected` is how many they are together.
double baseline_models_find(baseline_database *, int times, int labels, int expected);
double baseline_models_update(baseline_database *, int count);
// All entries with the names of their folders.
double baseline_models_traverse(baseline_database *, int count, int folders);

typedef struct {
    const void *key;
    size_t key_size;
    const char *header_names[4];
    const void *header_values[4];
    size_t header_sizes[4];
    int header_count;
    const void *payload;
    size_t payload_size;
} baseline_message;

// What registering reads and writes, without making it: of each transaction in the log, which is one operation, the row's former clock and
// its tombstone, the message to the outbox, the clock to its table, and the tombstone of a row that is deleted. On a store with the table by
// uuid; the messages are those of the transactions in their order. `per_commit` of them share one commit.
double baseline_register(
    baseline_database *, const baseline_row *rows, int row_count, const baseline_operation *, const baseline_message *messages, int count,
    int per_commit);
// The operations with what applying writes beside them: of each a row of the log, its clock, and its tombstone; of each transaction of
// `per_transaction` operations a mark; of each commit how far it has come. On a tracked store with the table by uuid, and without any message:
// nothing is decoded, and nothing is decided. `per_commit` counts operations, and is 100 or more: clocks of smaller commits are kept in another
// place.
double baseline_apply_with_history(
    baseline_database *, const baseline_row *rows, int row_count, const baseline_operation *, int count, int per_transaction,
    int per_commit);
// The same for the table by integer key, whose clocks are never collected: `per_commit` may be 1.
double baseline_apply_keyed(
    baseline_database *, const baseline_row *rows, const baseline_operation *, int count, int per_transaction, int per_commit);

// The rows with what loading a snapshot writes beside them: of each its clock and stable ID, of each commit a mark, and if `logs`, of each row
// a row of the log. On a tracked store with the table, and without any snapshot: nothing is decoded, and nothing is decided.
double baseline_load(baseline_database *, int by_uuid, int logs, const baseline_row *rows, int count, int per_commit);

typedef struct {
    const char *name;
    const char *value;
} baseline_property;

// How many nanoseconds the calling thread's sleeps may last longer than asked for, and those of the threads that it starts. 0: the
// system's own, which are 50,000.
void baseline_set_timer_slack(unsigned long nanoseconds);

const char *baseline_kafka_version(void);
// From making the producer to the last acknowledgement.
double baseline_produce(
    const baseline_property *properties, int property_count, const char *topic, const baseline_message *messages,
    int count);
// One message at a time from produce to its arrival at a consumer; fills `seconds`.
double baseline_round_trips(
    const baseline_property *producer, int producer_count, const baseline_property *consumer, int consumer_count,
    const char *topic, size_t payload_size, int count, int pause_microseconds, double *seconds);
// One row at a time from its commit in a tracked store to its arrival in another one, with what Martlet writes in both, and none of what it
// decides: see relay.c. `rows` are 20 more than `count`. Fills `seconds`.
double baseline_relay(
    const baseline_property *producer, int producer_count, const baseline_property *consumer, int consumer_count,
    const char *topic, const char *source, const char *target, baseline_settings settings, const baseline_row *rows,
    int count, int pause_microseconds, double *seconds);
// Makes a topic of one partition. Returns 0 when it is there afterwards.
int baseline_create_topic(const char *bootstrap, const char *topic);
