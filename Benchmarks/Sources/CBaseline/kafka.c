#include "client.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void baseline_set_timer_slack(unsigned long nanoseconds) { prctl(PR_SET_TIMERSLACK, nanoseconds, 0UL, 0UL, 0UL); }

const char *baseline_kafka_version(void) { return rd_kafka_version_str(); }

double baseline_produce(
    const baseline_property *properties, int property_count, const char *topic, const baseline_message *messages,
    int count) {
    counts counts = {0, 0};
    double start = now();
    rd_kafka_t *client = make(RD_KAFKA_PRODUCER, properties, property_count, &counts);
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    for (int i = 0; i < count; i++) {
        rd_kafka_resp_err_t code;
        while ((code = produce(client, handle, &messages[i])) == RD_KAFKA_RESP_ERR__QUEUE_FULL) rd_kafka_poll(client, 10);
        if (code) {
            fprintf(stderr, "baseline: %s\n", rd_kafka_err2str(code));
            return -1;
        }
        if (i % 64 == 0) rd_kafka_poll(client, 0);
    }
    double deadline = now() + 120;
    while (counts.delivered + counts.failed < count && now() < deadline) rd_kafka_poll(client, 10);
    double seconds = now() - start;
    rd_kafka_topic_destroy(handle);
    rd_kafka_destroy(client);
    if (counts.delivered != count) fprintf(stderr, "baseline: %d of %d delivered\n", counts.delivered, count);
    return counts.delivered == count ? seconds : -1;
}

double baseline_round_trips(
    const baseline_property *producer, int producer_count, const baseline_property *consumer, int consumer_count,
    const char *topic, size_t payload_size, int count, int pause_microseconds, double *seconds) {
    counts counts = {0, 0};
    rd_kafka_t *writer = make(RD_KAFKA_PRODUCER, producer, producer_count, &counts);
    rd_kafka_t *reader = make(RD_KAFKA_CONSUMER, consumer, consumer_count, NULL);
    rd_kafka_poll_set_consumer(reader);
    rd_kafka_topic_t *handle = rd_kafka_topic_new(writer, topic, NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(reader, list);
    rd_kafka_topic_partition_list_destroy(list);
    char *payload = calloc(1, payload_size);
    double begin = now();
    int failed = 0;
    // The first ones warm up: connections are made, metadata read.
    for (int i = -20; i < count && !failed; i++) {
        usleep((useconds_t)pause_microseconds);
        rd_kafka_poll(writer, 0);
        double start = now();
        memcpy(payload, &i, sizeof i);
        baseline_message message = {"k", 1, {NULL}, {NULL}, {0}, 0, payload, payload_size};
        failed = produce(writer, handle, &message) != 0;
        for (int arrived = 0; !arrived && !failed;) {
            rd_kafka_message_t *received = rd_kafka_consumer_poll(reader, 1000);
            if (now() - start > 20) failed = 1;
            if (!received) continue;
            arrived = !received->err && received->len == payload_size && memcmp(received->payload, &i, sizeof i) == 0;
            rd_kafka_message_destroy(received);
        }
        if (i >= 0) seconds[i] = now() - start;
    }
    double total = now() - begin;
    free(payload);
    rd_kafka_flush(writer, 5000);
    rd_kafka_topic_destroy(handle);
    rd_kafka_destroy(writer);
    rd_kafka_destroy_flags(reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return failed ? -1 : total;
}

int baseline_create_topic(const char *bootstrap, const char *topic) {
    baseline_property property = {"bootstrap.servers", bootstrap};
    rd_kafka_t *client = make(RD_KAFKA_PRODUCER, &property, 1, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    char reason[256];
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, 1, 1, reason, sizeof reason);
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 15000);
    int failed = !event || rd_kafka_event_error(event);
    if (event && !failed) {
        size_t count = 0;
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        for (size_t i = 0; i < count; i++) {
            rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[i]);
            failed |= code && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
        }
    }
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
    return failed;
}
