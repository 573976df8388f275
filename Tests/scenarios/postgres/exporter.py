"""Writes records as `martlet export` does."""

import json
import time

from confluent_kafka import Producer

from postgres.topics import Ends
from shared.waiting import eventually


def now():
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Exporter:
    """Writes records of one table to its topic, which has two partitions."""

    def __init__(self, rig, table, key):
        """`key`: the names of the columns of its key."""
        self.topic = f"{rig.export_prefix}.{table}"
        self._key = key
        self._rig = rig
        self._producer = Producer({"bootstrap.servers": rig.driver.bootstrap, "acks": "all"})
        rig.driver.create_topic(self.topic, partitions=2)
        self.ends = Ends(rig.driver.bootstrap, self.topic)

    def send(self, operation, key, milliseconds, partition=0, author=None, has_null=True, **row):
        """Sends a record, and after a delete the null record.

        `key`: the value of the key, its values in a tuple, or a dict by column. `milliseconds`: the time of the record's hlc.
        """
        key = self._by_column(key)
        value = {"before": None, "after": None if operation == "d" else {**key, **row}, "op": operation,
                 "source": {"author": author, "hlc": None if milliseconds is None else milliseconds << 16}}
        self._produce(key, value, partition)
        if operation == "d" and has_null:
            self._produce(key, None, partition)

    def send_null(self, key):
        self._produce(self._by_column(key), None, 0)

    def _by_column(self, key):
        if isinstance(key, dict):
            return key
        return dict(zip(self._key, key if isinstance(key, tuple) else (key,), strict=True))

    def _produce(self, key, value, partition):
        text = None if value is None else json.dumps(value)
        self._producer.produce(self.topic, key=json.dumps(key), partition=partition, value=text)
        self._producer.flush()

    def wait(self):
        """Waits until the writer has applied what was sent."""
        ends = self.ends.offsets()

        def has_read():
            self._rig.check_programs()
            places = dict(self._rig.server.execute(
                "SELECT partition, next_offset FROM martlet.place WHERE topic = %s", [self.topic]))
            return all(places.get(partition, 0) >= end for partition, end in ends.items()) or (False, f"{places} of {ends}")

        eventually("the writer has applied all records", has_read)
