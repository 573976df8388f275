#pragma once
#include <stdbool.h>
#include <stddef.h>

// A POST by libcurl, which is loaded when the first one is sent: an agent that sends none neither needs nor maps it.

/// Returns true if libcurl is installed.
bool martlet_curl_is_there(void);

typedef struct {
    const char *url;
    /// Lines `name: value`, and NULL after the last.
    const char *const *headers;
    /// A PEM file with the certificate authorities to trust. NULL: the system's.
    const char *ca_file;
    const void *body;
    size_t body_length;
    /// For the whole exchange.
    long timeout_milliseconds;
    /// Asked at least once a second, on the calling thread. True ends the exchange. May be NULL.
    bool (*is_cancelled)(void *context);
    void *context;
    /// Receives the beginning of the response's body.
    char *response;
    size_t response_capacity;
} martlet_post;

typedef struct {
    /// The status of HTTP. 0: there was no response, and `error` says why.
    long status;
    bool cancelled;
    /// What the response says in Retry-After, as a time or in seconds. 0: nothing.
    long long retry_after_seconds;
    size_t response_length;
    char error[256];
} martlet_post_result;

/// Blocks for the exchange. Redirects are not followed: the headers are meant for one server. SIGPIPE stays blocked on
/// the calling thread.
martlet_post_result martlet_curl_post(const martlet_post *post);
