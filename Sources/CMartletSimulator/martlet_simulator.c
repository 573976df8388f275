#include "martlet_simulator.h"
#include "simulated_memory.h"
#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

static _Thread_local int is_simulated = 0;
static _Thread_local int64_t now_milliseconds = 0;
static _Thread_local int64_t writes_left = -1;
static _Thread_local int has_died = 0;
static _Thread_local int64_t bytes_left = -1;

static sqlite3_vfs *original = 0;
static sqlite3_vfs simulated;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_result = SQLITE_OK;

// The operating system's methods of one kind of file, and the same with ours for those that write.
struct patched {
    const sqlite3_io_methods *from;
    sqlite3_io_methods methods;
};
static struct patched patched[8];
static int patched_count = 0;
static pthread_mutex_t patched_lock = PTHREAD_MUTEX_INITIALIZER;

static const sqlite3_io_methods *methods_of(sqlite3_file *file) {
    for (int i = 0; i < 8; i++) {
        if (file->pMethods == &patched[i].methods) return patched[i].from;
    }
    return file->pMethods;
}

static int may_write(void) {
    if (!is_simulated || writes_left < 0) return 1;
    if (writes_left == 0) {
        has_died = 1;
        return 0;
    }
    writes_left--;
    return 1;
}

// Dead machines do nothing else either, whether or not it counts as a write.
static int is_dead(void) {
    if (!is_simulated || writes_left != 0) return 0;
    has_died = 1;
    return 1;
}

// What a file grows by comes from the room that is left. What is written over what is there needs none.
static int write_growing(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    const sqlite3_io_methods *methods = methods_of(file);
    sqlite3_int64 size = 0;
    int code = methods->xFileSize(file, &size);
    if (code != SQLITE_OK) return code;
    sqlite3_int64 growth = offset + count - size;
    if (growth <= bytes_left) {
        if (growth > 0) bytes_left -= growth;
        return methods->xWrite(file, bytes, count, offset);
    }
    // As much of it as there is room for is written, as a real disk does.
    sqlite3_int64 fitting = count - (growth - bytes_left);
    if (fitting > 0) {
        code = methods->xWrite(file, bytes, (int)fitting, offset);
        if (code != SQLITE_OK) return code;
        bytes_left = 0;
    }
    return SQLITE_FULL;
}

static int simulated_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    if (!may_write()) return SQLITE_IOERR_WRITE;
    if (is_simulated && bytes_left >= 0) return write_growing(file, bytes, count, offset);
    return methods_of(file)->xWrite(file, bytes, count, offset);
}

static int simulated_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (!may_write()) return SQLITE_IOERR_TRUNCATE;
    sqlite3_int64 before = 0;
    if (is_simulated && bytes_left >= 0 && methods_of(file)->xFileSize(file, &before) == SQLITE_OK && before > size) {
        bytes_left += before - size;
    }
    return methods_of(file)->xTruncate(file, size);
}

// The index of a WAL is a file too. SQLite reports a full disk there as an error of its own.
static int simulated_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out) {
    const sqlite3_io_methods *methods = methods_of(file);
    if (!extend || !is_simulated || bytes_left < 0) return methods->xShmMap(file, region, size, extend, out);
    int code = methods->xShmMap(file, region, size, 0, out);
    if (code != SQLITE_OK || *out) return code;
    if (bytes_left < size) return SQLITE_IOERR_SHMSIZE;
    bytes_left -= size;
    return methods->xShmMap(file, region, size, extend, out);
}

static int simulated_sync(sqlite3_file *file, int flags) {
    // What was written outlives the process; nobody pulls the plug of this machine.
    if (is_simulated) return is_dead() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    return methods_of(file)->xSync(file, flags);
}

static int simulated_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    int code = original->xOpen(original, name, file, flags, out);
    if (code != SQLITE_OK || !is_simulated || !file->pMethods) return code;
    pthread_mutex_lock(&patched_lock);
    struct patched *found = 0;
    for (int i = 0; i < patched_count && !found; i++) {
        if (patched[i].from == file->pMethods) found = &patched[i];
    }
    if (!found && patched_count < 8) {
        found = &patched[patched_count];
        found->from = file->pMethods;
        found->methods = *file->pMethods;
        found->methods.xWrite = simulated_write;
        found->methods.xTruncate = simulated_truncate;
        found->methods.xSync = simulated_sync;
        if (found->methods.iVersion >= 2 && found->methods.xShmMap) found->methods.xShmMap = simulated_shm_map;
        patched_count++;
    }
    pthread_mutex_unlock(&patched_lock);
    if (found) file->pMethods = &found->methods;
    return code;
}

static int simulated_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    if (is_dead()) return SQLITE_IOERR_DELETE;
    return original->xDelete(original, name, is_simulated ? 0 : sync);
}

// SQLite counts from noon of the 24th of November 4714 before Christ.
static const sqlite3_int64 epoch_1970 = 210866760000000LL;

static int simulated_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    (void)vfs;
    if (!is_simulated) return original->xCurrentTimeInt64(original, time);
    *time = epoch_1970 + now_milliseconds;
    return SQLITE_OK;
}

static int simulated_time(sqlite3_vfs *vfs, double *time) {
    (void)vfs;
    if (!is_simulated) return original->xCurrentTime(original, time);
    *time = (double)(epoch_1970 + now_milliseconds) / 86400000.0;
    return SQLITE_OK;
}

static int register_simulated(void) {
    original = sqlite3_vfs_find(0);
    if (!original || original->iVersion < 2) return SQLITE_ERROR;
    simulated = *original;
    simulated.pNext = 0;
    simulated.zName = "martlet-simulator";
    simulated.xOpen = simulated_open;
    simulated.xDelete = simulated_delete;
    simulated.xCurrentTime = simulated_time;
    simulated.xCurrentTimeInt64 = simulated_time_int64;
    return sqlite3_vfs_register(&simulated, 1);
}

static void install(void) {
    // Counting memory takes one lock at each allocation, for which threads with simulations of their own would wait. Where SQLite
    // runs already it stays as it is.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
#if !__has_feature(address_sanitizer)
    martlet_simulator_use_memory();
#endif
    // Whoever puts a VFS in front of the default one holds this lock, or one of two would be left out.
    sqlite3_mutex *lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(lock);
    install_result = register_simulated();
    sqlite3_mutex_leave(lock);
}

int martlet_simulator_install(void) {
    pthread_once(&once, install);
    return install_result;
}

int martlet_simulator_is_on(void) { return is_simulated; }

void martlet_simulator_set_time(int64_t milliseconds) {
    is_simulated = 1;
    now_milliseconds = milliseconds;
}

void martlet_simulator_set_writes(int64_t count) {
    is_simulated = 1;
    has_died = 0;
    writes_left = count;
}

void martlet_simulator_set_room(int64_t bytes) {
    is_simulated = 1;
    bytes_left = bytes;
}

int64_t martlet_simulator_room(void) { return bytes_left; }

int martlet_simulator_has_died(void) { return has_died; }

void martlet_simulator_leave(void) {
    is_simulated = 0;
    writes_left = -1;
    has_died = 0;
    bytes_left = -1;
}
