"""Rebuilds tables from the topics of an export alone, as a consumer that knows nothing of Martlet.

As a program, which needs confluent-kafka: prints the rows of each topic by key, as JSON.
"""

import json
import pathlib
import subprocess
import sys

from shared import brokers


def exported_rows(bootstrap, *topics):
    """The rows of each topic, as lists of dictionaries. Raises Skip if PyPI can't be reached."""
    python = brokers.environment("brokers") / "bin" / "python"
    done = subprocess.run([python, pathlib.Path(__file__), bootstrap, *topics], capture_output=True, text=True,
                          check=True, env={"PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[1])})
    return json.loads(done.stdout)


def _read(bootstrap, topic):
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
                         "enable.partition.eof": True, "allow.auto.create.topics": False})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    left = set(partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    rows = {}
    while left:
        message = consumer.poll(10)
        if message is None:
            raise TimeoutError(f"nothing more of {topic}")
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                raise RuntimeError(message.error().str())
            left.discard(message.partition())
            continue
        value = json.loads(message.value()) if message.value() is not None else None
        if value is None or value["op"] == "d":
            rows.pop(message.key(), None)
        else:
            rows[message.key()] = value["after"]
    consumer.close()
    return list(rows.values())


if __name__ == "__main__":
    print(json.dumps({topic: _read(sys.argv[1], topic) for topic in sys.argv[2:]}))
