#include "martlet_sqlite.h"

#include <string.h>

// For each statement of a transaction that may fail halfway, as every write with a trigger may, SQLite keeps the former
// contents of the pages that it changes. By default, it moves them to a file once a statement has changed 16 pages, and
// then writes those of every later statement of the transaction to that file. Where a file gives free pages back, and
// where tables have several indexes, transactions of some thousand rows get there, and take up to twice as long.
//
// Not more than 128 KiB: SQLite 3.40 passes what it has in memory to one call that writes less than that, and otherwise
// reports a full disk. Only possible before SQLite is initialized, so at the start of the program.
__attribute__((constructor)) static void keep_statement_journals_in_memory(void) {
    sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, (1 << 17) - 1);
}

int martlet_disable_triggers(sqlite3 *connection) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}

int martlet_set_triggers(sqlite3 *connection, int enabled) {
    int before = 0;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, -1, &before) != SQLITE_OK) return -1;
    if (sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, enabled, (int *)0) != SQLITE_OK) return -1;
    return before;
}

static void read_switch(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count;
    const uint64_t switches = *(const uint64_t *)sqlite3_user_data(context);
    sqlite3_result_int(context, (int)(switches >> (sqlite3_value_int(values[0]) & 63) & 1));
}

uint64_t *martlet_add_switches(sqlite3 *connection, const char *name) {
    uint64_t *switches = sqlite3_malloc(sizeof(uint64_t));
    if (!switches) return NULL;
    *switches = 0;
    // Where it fails, SQLite frees them all the same.
    const int code = sqlite3_create_function_v2(
        connection, name, 1, SQLITE_UTF8, switches, read_switch, NULL, NULL, sqlite3_free);
    return code == SQLITE_OK ? switches : NULL;
}

struct martlet_file {
    char *name;
    sqlite3_file file;
};

martlet_file *martlet_file_open(const char *path) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    char *full = sqlite3_malloc(vfs->mxPathname + 1);
    martlet_file *opened = sqlite3_malloc((int)sizeof(martlet_file) - (int)sizeof(sqlite3_file) + vfs->szOsFile);
    if (full && opened && vfs->xFullPathname(vfs, path, vfs->mxPathname + 1, full) == SQLITE_OK) {
        memset(opened, 0, sizeof(martlet_file));
        // The VFS looks for parameters behind the name.
        opened->name = (char *)sqlite3_create_filename(full, "", "", 0, NULL);
        if (opened->name) {
            const int flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READONLY;
            if (vfs->xOpen(vfs, opened->name, &opened->file, flags, NULL) == SQLITE_OK) {
                sqlite3_free(full);
                return opened;
            }
            sqlite3_free_filename(opened->name);
        }
    }
    sqlite3_free(full);
    sqlite3_free(opened);
    return NULL;
}

int martlet_file_read(martlet_file *file, void *buffer, int count, int64_t offset) {
    return file->file.pMethods->xRead(&file->file, buffer, count, offset);
}

void martlet_file_close(martlet_file *file) {
    file->file.pMethods->xClose(&file->file);
    sqlite3_free_filename(file->name);
    sqlite3_free(file);
}

static int begins_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

// A row that breaks a rule of its table is found too. It may have been written so: the file is whole.
static int look(void *is_whole, int count, char **values, char **names) {
    (void)names;
    const char *text = count == 1 && values[0] ? values[0] : "";
    if (strcmp(text, "ok") && !begins_with(text, "NULL value in ") && !begins_with(text, "CHECK constraint failed in ")) {
        *(int *)is_whole = 0;
    }
    return 0;
}

int martlet_is_sound(const char *path, int alone) {
    // Bytes that mean something in a URI are written as numbers.
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (const char *byte = path; *byte; byte++) {
        if (strchr("%?#", *byte)) {
            sqlite3_str_appendf(uri, "%%%02X", (unsigned char)*byte);
        } else {
            sqlite3_str_appendchar(uri, 1, *byte);
        }
    }
    if (alone) sqlite3_str_appendall(uri, "?immutable=1");
    char *name = sqlite3_str_finish(uri);
    if (!name) return -1;
    sqlite3 *connection = NULL;
    int result = -1;
    const int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | (alone ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(name, &connection, flags, NULL) == SQLITE_OK) {
        sqlite3_busy_timeout(connection, 5000);
        sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
        result = 1;
        const int code = sqlite3_exec(connection, "PRAGMA integrity_check", look, &result, NULL);
        if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
            result = 0;
        } else if (code != SQLITE_OK) {
            result = -1;
        }
    }
    sqlite3_close(connection);
    sqlite3_free(name);
    return result;
}
