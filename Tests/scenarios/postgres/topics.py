"""Reads topics as a consumer does that knows nothing of Martlet: the newest record of each key is the row."""

import json

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

#: What stands for a large value that an update did not change.
UNAVAILABLE = "__debezium_unavailable_value"


def records(bootstrap, topic):
    """Yields all records of a topic, as messages of confluent_kafka, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
                         "enable.partition.eof": True, "allow.auto.create.topics": False})
    try:
        found = consumer.list_topics(topic, timeout=30).topics[topic]
        if found.error:
            return
        left = set(found.partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            message = consumer.poll(30)
            if message is None:
                raise TimeoutError(f"nothing more of {topic}")
            if message.error() is None:
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()


def newest_rows(bootstrap, topic):
    """The rows that a topic alone has."""
    #: (partition, key) -> row. A record that truncates concerns its partition.
    rows = {}
    for message in records(bootstrap, topic):
        place = message.partition(), message.key()
        value = json.loads(message.value()) if message.value() is not None else None
        if value is not None and value["op"] == "t":
            rows = {other: row for other, row in rows.items() if other[0] != message.partition()}
        elif value is None or value["op"] == "d":
            rows.pop(place, None)
        else:
            before = rows.get(place, {})
            rows[place] = {name: before.get(name) if value == UNAVAILABLE else value
                           for name, value in value["after"].items()}
    return list(rows.values())


class Ends:
    """The ends of a topic's partitions."""

    def __init__(self, bootstrap, topic):
        self._topic = topic
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "allow.auto.create.topics": False})
        self._partitions = list(self._consumer.list_topics(topic, timeout=30).topics[topic].partitions)

    def offsets(self):
        """Partition -> the offset of its next record."""
        return {partition: self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=30)[1]
                for partition in self._partitions}

    def total(self):
        """How many records were ever written."""
        return sum(self.offsets().values())

    def close(self):
        self._consumer.close()
