#include "baseline.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What models are compared with: rows of the same tables, kept as structures of C.

typedef struct {
    int64_t id;
    char *title;
    char *note;
    double weight;
    int64_t label;
    double when;
    int64_t folder;
} entry;

static sqlite3_stmt *compile(baseline_database *database, const char *sql) {
    sqlite3_stmt *statement = NULL;
    sqlite3 *handle = baseline_handle(database);
    if (sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL)) {
        fprintf(stderr, "baseline: %s: %s\n", sql, sqlite3_errmsg(handle));
        exit(70);
    }
    return statement;
}

static int finish(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE) fprintf(stderr, "baseline: %s\n", sqlite3_errmsg(sqlite3_db_handle(statement)));
    sqlite3_reset(statement);
    return code != SQLITE_DONE;
}

static char *copy(sqlite3_stmt *statement, int column) {
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return strdup(text ? text : "");
}

static entry *read_entry(sqlite3_stmt *statement) {
    entry *found = malloc(sizeof *found);
    found->id = sqlite3_column_int64(statement, 0);
    found->title = copy(statement, 1);
    found->note = copy(statement, 2);
    found->weight = sqlite3_column_double(statement, 3);
    found->label = sqlite3_column_int64(statement, 4);
    found->when = sqlite3_column_double(statement, 5);
    found->folder = sqlite3_column_int64(statement, 6);
    return found;
}

static void drop(entry *found) {
    free(found->title);
    free(found->note);
    free(found);
}

#define COLUMNS "_id, title, note, weight, label, \"when\", folder"

double baseline_models_insert(baseline_database *database, const baseline_row *rows, int count, int folders, int labels) {
    sqlite3_stmt *folder = compile(database, "INSERT INTO Folder(_id, name) VALUES (?1, ?2)");
    sqlite3_stmt *insert = compile(database, "INSERT INTO Entry(" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    int failed = 0;
    double start = baseline_now();
    failed |= baseline_execute(database, "BEGIN IMMEDIATE");
    for (int i = 0; i < folders && !failed; i++) {
        sqlite3_bind_int64(folder, 1, i + 1);
        sqlite3_bind_text(folder, 2, rows[i].title, -1, SQLITE_STATIC);
        failed |= finish(folder);
    }
    for (int i = 0; i < count && !failed; i++) {
        sqlite3_bind_int64(insert, 1, i + 1);
        sqlite3_bind_text(insert, 2, rows[i].title, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 3, rows[i].note, -1, SQLITE_STATIC);
        sqlite3_bind_double(insert, 4, rows[i].weight);
        sqlite3_bind_int64(insert, 5, i % labels);
        sqlite3_bind_double(insert, 6, (double)i);
        sqlite3_bind_int64(insert, 7, i % folders + 1);
        failed |= finish(insert);
    }
    failed |= baseline_execute(database, "COMMIT");
    double seconds = baseline_now() - start;
    sqlite3_finalize(folder);
    sqlite3_finalize(insert);
    return failed ? -1 : seconds;
}

double baseline_models_fetch(baseline_database *database, int count) {
    entry **found = malloc(sizeof(entry *) * (size_t)count);
    int size = 0;
    double start = baseline_now();
    sqlite3_stmt *select = compile(database, "SELECT " COLUMNS " FROM Entry ORDER BY _id");
    while (size < count && sqlite3_step(select) == SQLITE_ROW) found[size++] = read_entry(select);
    sqlite3_finalize(select);
    double seconds = baseline_now() - start;
    for (int i = 0; i < size; i++) drop(found[i]);
    free(found);
    return size == count ? seconds : -1;
}

double baseline_models_find(baseline_database *database, int times, int labels, int expected) {
    int size = 0;
    double start = baseline_now();
    sqlite3_stmt *select = compile(database, "SELECT " COLUMNS " FROM Entry WHERE label = ?1 ORDER BY _id");
    for (int i = 0; i < times; i++) {
        sqlite3_bind_int64(select, 1, i % labels);
        while (sqlite3_step(select) == SQLITE_ROW) {
            entry *found = read_entry(select);
            size++;
            drop(found);
        }
        sqlite3_reset(select);
    }
    sqlite3_finalize(select);
    double seconds = baseline_now() - start;
    return size == expected ? seconds : -1;
}

double baseline_models_update(baseline_database *database, int count) {
    sqlite3_stmt *update = compile(database, "UPDATE Entry SET weight = ?2 WHERE _id = ?1");
    int failed = 0;
    double start = baseline_now();
    failed |= baseline_execute(database, "BEGIN IMMEDIATE");
    for (int i = 0; i < count && !failed; i++) {
        sqlite3_bind_int64(update, 1, i + 1);
        sqlite3_bind_double(update, 2, (double)i + 0.5);
        failed |= finish(update);
    }
    failed |= baseline_execute(database, "COMMIT");
    double seconds = baseline_now() - start;
    sqlite3_finalize(update);
    return failed ? -1 : seconds;
}

double baseline_models_traverse(baseline_database *database, int count, int folders) {
    char **names = calloc((size_t)folders + 1, sizeof(char *));
    entry **found = malloc(sizeof(entry *) * (size_t)count);
    int size = 0;
    size_t length = 0;
    double start = baseline_now();
    sqlite3_stmt *select = compile(database, "SELECT " COLUMNS " FROM Entry ORDER BY _id");
    sqlite3_stmt *folder = compile(database, "SELECT _id, name FROM Folder");
    while (sqlite3_step(folder) == SQLITE_ROW) names[sqlite3_column_int64(folder, 0)] = copy(folder, 1);
    while (size < count && sqlite3_step(select) == SQLITE_ROW) found[size++] = read_entry(select);
    for (int i = 0; i < size; i++) length += strlen(names[found[i]->folder]);
    sqlite3_finalize(select);
    sqlite3_finalize(folder);
    double seconds = baseline_now() - start;
    for (int i = 0; i < size; i++) drop(found[i]);
    for (int i = 0; i <= folders; i++) free(names[i]);
    free(found);
    free(names);
    return size == count && length > 0 ? seconds : -1;
}
