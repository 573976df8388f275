#include "client.h"
#include "statements.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

// From a commit in one store until its row is in another one, by a message: three threads, as Martlet has them, which write what Martlet
// writes, and decide nothing.
typedef struct {
    baseline_database *source, *target;
    rd_kafka_t *writer, *reader;
    rd_kafka_topic_t *topic;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int written, is_over, failed;
} relay;

static int run_all(sqlite3_stmt **statements, int count) {
    for (int i = 0; i < count; i++) {
        if (run(statements[i])) return 1;
    }
    return 0;
}

static void finalize_all(sqlite3_stmt **statements, int count) {
    for (int i = 0; i < count; i++) sqlite3_finalize(statements[i]);
}

// Registers each transaction: its message on the outbox, its clock, and how far it has come. Then it is sent.
static void *publish(void *context) {
    relay *relay = context;
    sqlite3_stmt *read = prepare(relay->source, "SELECT id, c1, c2, c3, c4, c5 FROM _martlet_log WHERE id > ?1 AND e = 1");
    sqlite3_stmt *send = prepare(relay->source, "INSERT INTO _martlet_outbox(sequence, txn, payload) VALUES (?1, ?1, ?2)");
    sqlite3_stmt *all[] = {
        prepare(relay->source, "BEGIN IMMEDIATE"),
        prepare(relay->source, "INSERT INTO _martlet_recent(clocks) VALUES (zeroblob(32))"),
        prepare(
            relay->source, "INSERT INTO _martlet_meta(key, value) VALUES ('registered', 1), ('sequence', 1), ('clock', 1) "
                           "ON CONFLICT DO UPDATE SET value = value + 1"),
        prepare(relay->source, "COMMIT"),
    };
    sqlite3_int64 last = 0;
    for (int done = 0;;) {
        pthread_mutex_lock(&relay->lock);
        while (done == relay->written && !relay->is_over) pthread_cond_wait(&relay->changed, &relay->lock);
        int is_over = relay->is_over;
        pthread_mutex_unlock(&relay->lock);
        if (is_over) break;
        rd_kafka_poll(relay->writer, 0);
        baseline_row row = {0};
        int failed = run(all[0]);
        sqlite3_bind_int64(read, 1, last);
        failed |= sqlite3_step(read) != SQLITE_ROW;
        if (!failed) {
            last = sqlite3_column_int64(read, 0);
            memcpy(row.uuid, sqlite3_column_blob(read, 1), 16);
            strncpy(row.title, (const char *)sqlite3_column_text(read, 2), sizeof row.title - 1);
            strncpy(row.note, (const char *)sqlite3_column_text(read, 3), sizeof row.note - 1);
            row.weight = sqlite3_column_double(read, 4);
            row.done = sqlite3_column_int64(read, 5);
        }
        sqlite3_reset(read);
        sqlite3_bind_int64(send, 1, ++done);
        sqlite3_bind_blob(send, 2, &row, sizeof row, SQLITE_STATIC);
        failed = failed || run(all[1]) || run(send) || run_all(all + 2, 2);
        baseline_message message = {"k", 1, {NULL}, {NULL}, {0}, 0, &row, sizeof row};
        if (failed || produce(relay->writer, relay->topic, &message)) relay->failed = 1;
    }
    finalize_all(all, 4);
    sqlite3_finalize(read);
    sqlite3_finalize(send);
    return NULL;
}

// Applies each: the row, its change and a mark in the log, its clock, and how far it has come.
static void *apply(void *context) {
    relay *relay = context;
    sqlite3_db_config(relay->target->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_stmt *begin = prepare(relay->target, "BEGIN IMMEDIATE"), *insert = prepare(relay->target, INSERT);
    sqlite3_stmt *log = prepare(
        relay->target, "INSERT INTO _martlet_log(e, r, k, m, t, c1, c2, c3, c4, c5) "
                       "VALUES (1, NULL, 1, NULL, 1700000000000, ?1, ?2, ?3, ?4, ?5)");
    sqlite3_stmt *rest[] = {
        prepare(
            relay->target, "INSERT INTO _martlet_log(e, r, k, t, c1, c4, c5, c6, c8) "
                           "VALUES (0, last_insert_rowid(), 0, 1700000000000, 'martlet.sync', zeroblob(16), 1, 'app', 'origin')"),
        prepare(relay->target, "INSERT INTO _martlet_recent(clocks) VALUES (zeroblob(30))"),
        prepare(
            relay->target, "INSERT INTO _martlet_meta(key, value) VALUES ('offset/0/t', 1), ('origin/1', 1), ('clock', 1), "
                           "('registered', 1) ON CONFLICT DO UPDATE SET value = value + 1"),
        prepare(relay->target, "COMMIT"),
    };
    while (!relay->is_over && !relay->failed) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(relay->reader, 100);
        if (!message) continue;
        if (!message->err && message->len == sizeof(baseline_row)) {
            baseline_row row;
            memcpy(&row, message->payload, sizeof row);
            bind_key(insert, 1, &row);
            bind_values(insert, &row);
            bind_key(log, 1, &row);
            bind_values(log, &row);
            if (run(begin) || run(insert) || run(log) || run_all(rest, 4)) relay->failed = 1;
        }
        rd_kafka_message_destroy(message);
    }
    sqlite3_finalize(begin);
    sqlite3_finalize(insert);
    sqlite3_finalize(log);
    finalize_all(rest, 4);
    return NULL;
}

double baseline_relay(
    const baseline_property *producer, int producer_count, const baseline_property *consumer, int consumer_count,
    const char *topic, const char *source, const char *target, baseline_settings settings, const baseline_row *rows,
    int count, int pause_microseconds, double *seconds) {
    counts counts = {0, 0};
    relay relay = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    baseline_database *app = baseline_open(source, settings), *eye = baseline_open(target, settings);
    relay.source = baseline_open(source, settings);
    relay.target = baseline_open(target, settings);
    baseline_database *all[] = {app, eye, relay.source, relay.target};
    for (int i = 0; i < 4; i++) {
        if (!all[i]) return -1;
        sqlite3_busy_timeout(all[i]->handle, 5000);
    }
    relay.writer = make(RD_KAFKA_PRODUCER, producer, producer_count, &counts);
    relay.reader = make(RD_KAFKA_CONSUMER, consumer, consumer_count, NULL);
    rd_kafka_poll_set_consumer(relay.reader);
    relay.topic = rd_kafka_topic_new(relay.writer, topic, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(relay.reader, list);
    rd_kafka_topic_partition_list_destroy(list);
    sqlite3_stmt *insert[] = {
        prepare(app, "BEGIN IMMEDIATE"), prepare(app, INSERT),
        prepare(
            app, "INSERT INTO _martlet_log(e, r, k, t, c1) SELECT 0, max(id), 0, 1700000000000, 'app' FROM _martlet_log"),
        prepare(app, "COMMIT"),
    };
    sqlite3_stmt *find = prepare(eye, "SELECT 1 FROM task WHERE id = ?1");
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, publish, &relay);
    pthread_create(&threads[1], NULL, apply, &relay);
    double begin = now();
    // The first ones warm up.
    for (int i = 0; i < count + 20 && !relay.failed; i++) {
        usleep((useconds_t)pause_microseconds);
        bind_key(insert[1], 1, &rows[i]);
        bind_values(insert[1], &rows[i]);
        if (run_all(insert, 4)) relay.failed = 1;
        double start = now();
        pthread_mutex_lock(&relay.lock);
        relay.written++;
        pthread_cond_signal(&relay.changed);
        pthread_mutex_unlock(&relay.lock);
        for (int is_there = 0; !is_there && !relay.failed;) {
            usleep(30);
            bind_key(find, 1, &rows[i]);
            is_there = sqlite3_step(find) == SQLITE_ROW;
            sqlite3_reset(find);
            if (now() - start > 20) relay.failed = 1;
        }
        if (i >= 20) seconds[i - 20] = now() - start;
    }
    double total = now() - begin;
    pthread_mutex_lock(&relay.lock);
    relay.is_over = 1;
    pthread_cond_signal(&relay.changed);
    pthread_mutex_unlock(&relay.lock);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    finalize_all(insert, 4);
    sqlite3_finalize(find);
    rd_kafka_flush(relay.writer, 5000);
    rd_kafka_topic_destroy(relay.topic);
    rd_kafka_destroy(relay.writer);
    rd_kafka_destroy_flags(relay.reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    for (int i = 0; i < 4; i++) baseline_close(all[i]);
    return relay.failed ? -1 : total;
}
