#define _GNU_SOURCE
#include "martlet_system.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int martlet_poll_nanoseconds(struct pollfd *descriptors, unsigned long count, long nanoseconds) {
    struct timespec timeout = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    return ppoll(descriptors, count, &timeout, 0);
}

long long martlet_nanoseconds(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

struct martlet_monitor {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
};

martlet_monitor *martlet_monitor_new(void) {
    martlet_monitor *monitor = malloc(sizeof *monitor);
    if (!monitor) abort();
    pthread_mutex_init(&monitor->mutex, 0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monitor->condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return monitor;
}

void martlet_monitor_free(martlet_monitor *monitor) {
    pthread_cond_destroy(&monitor->condition);
    pthread_mutex_destroy(&monitor->mutex);
    free(monitor);
}

void martlet_monitor_lock(martlet_monitor *monitor) { pthread_mutex_lock(&monitor->mutex); }

void martlet_monitor_unlock(martlet_monitor *monitor) { pthread_mutex_unlock(&monitor->mutex); }

void martlet_monitor_broadcast(martlet_monitor *monitor) { pthread_cond_broadcast(&monitor->condition); }

void martlet_monitor_wait(martlet_monitor *monitor, long long nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += nanoseconds / 1000000000;
    end.tv_nsec += nanoseconds % 1000000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec += 1;
        end.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&monitor->condition, &monitor->mutex, &end);
}

/// True where code was changed as it was loaded: its pages aren't those of the file.
static int has_text_relocations(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_TEXTREL) return 1;
            if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)) return 1;
        }
    }
    return 0;
}

static int release_code(struct dl_phdr_info *object, size_t size, void *context) {
    // The kernel's own pages are of no file.
    if (strstr(object->dlpi_name, "linux-vdso") || strstr(object->dlpi_name, "linux-gate")) return 0;
    if (has_text_relocations(object)) return 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || (segment->p_flags & PF_W)) continue;
        // Whole pages of this segment only: the one at an end may belong to data, too.
        uintptr_t start = (object->dlpi_addr + segment->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);
        if (end > start) madvise((void *)start, end - start, MADV_DONTNEED);
    }
    return 0;
}

void martlet_release_memory(void) {
    malloc_trim(0);
    dl_iterate_phdr(release_code, 0);
}

int martlet_flush_output(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    return errno ? errno : -1;
}
