#pragma once
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

/// Enqueues one message without blocking. The payload and key are copied; a payload that is NULL makes a message without a
/// value. On success the headers belong to librdkafka, on failure they still belong to the caller. Wraps the variadic
/// `rd_kafka_producev`.
static inline rd_kafka_resp_err_t martlet_rd_produce(
    rd_kafka_t *client, rd_kafka_topic_t *topic, const void *key, size_t key_size, const void *payload,
    size_t payload_size, rd_kafka_headers_t *headers, void *tag) {
    if (headers == NULL) {
        return rd_kafka_producev(
            client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_KEY((void *)key, key_size), RD_KAFKA_V_VALUE((void *)payload, payload_size),
            RD_KAFKA_V_OPAQUE(tag), RD_KAFKA_V_END);
    }
    return rd_kafka_producev(
        client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY((void *)key, key_size), RD_KAFKA_V_VALUE((void *)payload, payload_size),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(tag), RD_KAFKA_V_END);
}

/// The same for a topic by its name.
static inline rd_kafka_resp_err_t martlet_rd_produce_to(
    rd_kafka_t *client, const char *topic, const void *key, size_t key_size, const void *payload,
    size_t payload_size, rd_kafka_headers_t *headers, void *tag) {
    if (headers == NULL) {
        return rd_kafka_producev(
            client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_KEY((void *)key, key_size), RD_KAFKA_V_VALUE((void *)payload, payload_size),
            RD_KAFKA_V_OPAQUE(tag), RD_KAFKA_V_END);
    }
    return rd_kafka_producev(
        client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY((void *)key, key_size), RD_KAFKA_V_VALUE((void *)payload, payload_size),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(tag), RD_KAFKA_V_END);
}

/// Delays the next response to requests of this kind by one broker. Wraps the variadic
/// `rd_kafka_mock_broker_push_request_error_rtts` for a single pair.
static inline rd_kafka_resp_err_t martlet_rd_mock_push_error_rtt(
    rd_kafka_mock_cluster_t *cluster, int32_t broker, int16_t api_key, rd_kafka_resp_err_t error, int rtt_ms) {
    return rd_kafka_mock_broker_push_request_error_rtts(cluster, broker, api_key, 1, error, rtt_ms);
}
