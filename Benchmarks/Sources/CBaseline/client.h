#pragma once
#include "baseline.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

typedef struct {
    int delivered;
    int failed;
} counts;

static inline void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    counts *counts = opaque;
    if (message->err) counts->failed++;
    else counts->delivered++;
}

static inline rd_kafka_t *make(rd_kafka_type_t type, const baseline_property *properties, int count, counts *counts) {
    char reason[512];
    rd_kafka_conf_t *configuration = rd_kafka_conf_new();
    for (int i = 0; i < count; i++) {
        if (rd_kafka_conf_set(configuration, properties[i].name, properties[i].value, reason, sizeof reason)) {
            fprintf(stderr, "baseline: %s\n", reason);
            exit(70);
        }
    }
    rd_kafka_conf_set_log_cb(configuration, NULL);
    if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(configuration, on_delivery);
    rd_kafka_conf_set_opaque(configuration, counts);
    rd_kafka_t *client = rd_kafka_new(type, configuration, reason, sizeof reason);
    if (!client) {
        fprintf(stderr, "baseline: %s\n", reason);
        exit(70);
    }
    return client;
}

static inline rd_kafka_resp_err_t produce(rd_kafka_t *client, rd_kafka_topic_t *topic, const baseline_message *message) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new((size_t)message->header_count);
    for (int i = 0; i < message->header_count; i++) {
        rd_kafka_header_add(
            headers, message->header_names[i], -1, message->header_values[i], (ssize_t)message->header_sizes[i]);
    }
    rd_kafka_resp_err_t code = rd_kafka_producev(
        client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY((void *)message->key, message->key_size),
        RD_KAFKA_V_VALUE((void *)message->payload, message->payload_size), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_END);
    if (code) rd_kafka_headers_destroy(headers);
    return code;
}
