#define _GNU_SOURCE
#include "martlet_curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

// What is needed of the interface of libcurl.so.4, which has kept its numbers since 2006:
// https://curl.se/libcurl/abi.html
enum {
    global_default = 3,
    protocols_http_and_https = 3,

    opt_write_data = 10001,
    opt_url = 10002,
    opt_error_buffer = 10010,
    opt_post_fields = 10015,
    opt_http_header = 10023,
    opt_no_progress = 43,
    opt_post = 47,
    opt_progress_data = 10057,
    opt_post_field_size = 60,
    opt_ca_info = 10065,
    opt_no_signal = 99,
    opt_timeout_milliseconds = 155,
    opt_protocols = 181,
    opt_write_function = 20011,
    opt_progress_function = 20219,

    info_response_code = 0x200000 + 2,
    info_retry_after = 0x600000 + 57,

    code_aborted_by_callback = 42,
};

static struct {
    void *(*init)(void);
    int (*setopt)(void *, int, ...);
    int (*perform)(void *);
    int (*getinfo)(void *, int, ...);
    void (*cleanup)(void *);
    const char *(*strerror)(int);
    void *(*append)(void *, const char *);
    void (*free_all)(void *);
} curl;

static bool is_there = false;

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    int (*global_init)(long) = (int (*)(long))dlsym(library, "curl_global_init");
    curl.init = (void *(*)(void))dlsym(library, "curl_easy_init");
    curl.setopt = (int (*)(void *, int, ...))dlsym(library, "curl_easy_setopt");
    curl.perform = (int (*)(void *))dlsym(library, "curl_easy_perform");
    curl.getinfo = (int (*)(void *, int, ...))dlsym(library, "curl_easy_getinfo");
    curl.cleanup = (void (*)(void *))dlsym(library, "curl_easy_cleanup");
    curl.strerror = (const char *(*)(int))dlsym(library, "curl_easy_strerror");
    curl.append = (void *(*)(void *, const char *))dlsym(library, "curl_slist_append");
    curl.free_all = (void (*)(void *))dlsym(library, "curl_slist_free_all");
    is_there = global_init != NULL && curl.init != NULL && curl.setopt != NULL && curl.perform != NULL &&
        curl.getinfo != NULL && curl.cleanup != NULL && curl.strerror != NULL && curl.append != NULL &&
        curl.free_all != NULL && global_init(global_default) == 0;
}

bool martlet_curl_is_there(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_there;
}

typedef struct {
    const martlet_post *post;
    martlet_post_result *result;
} exchange;

// Takes everything, so that the exchange goes on, and keeps what there is room for.
static size_t keep(char *data, size_t size, size_t count, void *context) {
    exchange *exchange = context;
    size_t room = exchange->post->response_capacity - exchange->result->response_length;
    size_t kept = size * count < room ? size * count : room;
    if (kept > 0) memcpy(exchange->post->response + exchange->result->response_length, data, kept);
    exchange->result->response_length += kept;
    return size * count;
}

static int progress(void *context, long long to_receive, long long received, long long to_send, long long sent) {
    const martlet_post *post = ((exchange *)context)->post;
    (void)to_receive, (void)received, (void)to_send, (void)sent;
    return post->is_cancelled != NULL && post->is_cancelled(post->context);
}

martlet_post_result martlet_curl_post(const martlet_post *post) {
    martlet_post_result result = {0};
    if (!martlet_curl_is_there()) {
        snprintf(result.error, sizeof result.error, "libcurl.so.4 is not installed");
        return result;
    }
    // Without signals, libcurl leaves this to its caller.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);

    void *headers = NULL;
    bool has_all_headers = true;
    for (const char *const *header = post->headers; *header != NULL && has_all_headers; header++) {
        void *longer = curl.append(headers, *header);
        has_all_headers = longer != NULL;
        if (has_all_headers) headers = longer;
    }
    void *handle = curl.init();
    // A request without one of its headers, such as its authorization, would fail for a reason that isn't the true one.
    if (handle == NULL || !has_all_headers) {
        snprintf(result.error, sizeof result.error, "out of memory");
        if (handle != NULL) curl.cleanup(handle);
        curl.free_all(headers);
        return result;
    }
    exchange exchange = {post, &result};
    curl.setopt(handle, opt_error_buffer, result.error);
    curl.setopt(handle, opt_no_signal, 1L);
    curl.setopt(handle, opt_protocols, (long)protocols_http_and_https);
    curl.setopt(handle, opt_url, post->url);
    curl.setopt(handle, opt_http_header, headers);
    curl.setopt(handle, opt_timeout_milliseconds, post->timeout_milliseconds);
    curl.setopt(handle, opt_post, 1L);
    curl.setopt(handle, opt_post_field_size, (long)post->body_length);
    curl.setopt(handle, opt_post_fields, post->body);
    curl.setopt(handle, opt_write_function, keep);
    curl.setopt(handle, opt_write_data, &exchange);
    curl.setopt(handle, opt_no_progress, 0L);
    curl.setopt(handle, opt_progress_function, progress);
    curl.setopt(handle, opt_progress_data, &exchange);
    // A file that can't be used fails the exchange, rather than widening what is trusted.
    int code = post->ca_file == NULL ? 0 : curl.setopt(handle, opt_ca_info, post->ca_file);
    if (code == 0) code = curl.perform(handle);
    if (code == 0) {
        curl.getinfo(handle, info_response_code, &result.status);
        if (curl.getinfo(handle, info_retry_after, &result.retry_after_seconds) != 0) result.retry_after_seconds = 0;
    } else {
        result.cancelled = code == code_aborted_by_callback;
        if (result.error[0] == 0) snprintf(result.error, sizeof result.error, "%s", curl.strerror(code));
    }
    curl.cleanup(handle);
    curl.free_all(headers);
    return result;
}
