#include "simulated_memory.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Half of what a simulation does is to open files and to compile statements, which are many small allocations, all made and freed
// by one thread. Each thread keeps what it has freed, by size, and never gives it back: simulations need the same again.

// Up to small_max bytes in steps of 16, up to large_max in steps of 1,024; beyond that the system's.
enum { small_step = 16, small_max = 1024, large_step = 1024, large_max = 65536 };
enum { small_count = small_max / small_step, class_count = small_count + large_max / large_step };
enum { chunk_bytes = 1 << 20 };

// Before each block. Blocks are aligned to eight bytes, which is what SQLite asks for.
typedef struct {
    int32_t size;
    int32_t class;
} header;

typedef struct free_block {
    struct free_block *next;
} free_block;

static __thread free_block *free_blocks[class_count];
static __thread char *chunk, *chunk_end;

static int class_of(int size) {
    if (size <= small_max) return size <= small_step ? 0 : (size - 1) / small_step;
    return size <= large_max ? small_count + (size - 1) / large_step : -1;
}

static int class_size(int class) {
    return class < small_count ? (class + 1) * small_step : (class - small_count + 1) * large_step;
}

static header *header_of(void *block) { return (header *)block - 1; }

static void *allocate(int size) {
    int class = class_of(size);
    if (class < 0) {
        header *own = malloc(sizeof(header) + (size_t)size);
        if (!own) return 0;
        *own = (header){size, class};
        return own + 1;
    }
    free_block *found = free_blocks[class];
    if (found) {
        free_blocks[class] = found->next;
        return found;
    }
    int block_size = class_size(class);
    int needed = (int)sizeof(header) + block_size;
    // What is left of a chunk is lost.
    if (chunk_end - chunk < needed) {
        chunk = malloc(chunk_bytes);
        chunk_end = chunk ? chunk + chunk_bytes : 0;
        if (!chunk) return 0;
    }
    header *own = (header *)chunk;
    chunk += needed;
    *own = (header){block_size, class};
    return own + 1;
}

static int size_of(void *block) { return block ? header_of(block)->size : 0; }

static void release(void *block) {
    if (!block) return;
    int class = header_of(block)->class;
    if (class < 0) {
        free(header_of(block));
        return;
    }
    // A block that another thread has made stays with this one.
    free_block *freed = block;
    freed->next = free_blocks[class];
    free_blocks[class] = freed;
}

static void *reallocate(void *block, int size) {
    int had = size_of(block);
    if (size <= had) return block;
    void *grown = allocate(size);
    if (!grown) return 0;
    if (block) memcpy(grown, block, (size_t)had);
    release(block);
    return grown;
}

static int rounded(int size) {
    int class = class_of(size);
    return class < 0 ? (size + 7) & ~7 : class_size(class);
}

static int begin(void *context) {
    (void)context;
    return SQLITE_OK;
}

static void end(void *context) { (void)context; }

void martlet_simulator_use_memory(void) {
    sqlite3_mem_methods methods = {allocate, release, reallocate, size_of, rounded, begin, end, 0};
    sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}
