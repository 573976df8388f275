"""Sends records to Kafka, and knows up to which transaction the broker has all of them."""

import collections

from confluent_kafka import KafkaException, Producer

import clients


class Publisher:
    """`while_full` is called now and then while the queue has no room because the broker is slow or away."""

    def __init__(self, arguments, while_full):
        self._producer = Producer({
            "client.id": "read_postgres", "partitioner": "murmur2_random", "linger.ms": 5,
            # In order and without gaps, for as long as the broker is away.
            "enable.idempotence": True, "acks": "all", "message.timeout.ms": 0, **clients.settings(arguments)})
        self._while_full = while_full
        #: Transactions that the broker does not have: [its end, or None while it goes on; the number of records that are owed].
        self._open = collections.deque()
        #: The end of the last transaction that the broker has, as have all before it.
        self.acknowledged = 0

    @property
    def is_idle(self):
        """Whether the broker has everything."""
        return not self._open

    def begin(self):
        self._open.append([None, 0])

    def end(self, lsn):
        self._open[-1][0] = lsn
        self._settle()

    def send(self, topic, key, value, partition=-1):
        """Sends a record of the transaction that was begun last."""
        transaction = self._open[-1]
        transaction[1] += 1

        def delivered(error, _message):
            if error is not None:
                raise KafkaException(error)
            transaction[1] -= 1

        while True:
            try:
                return self._producer.produce(topic, value, key, partition, on_delivery=delivered)
            except BufferError:
                self.poll(0.1)
                self._while_full()

    def poll(self, seconds=0.0):
        """Takes acknowledgements, for which it waits up to this long."""
        self._producer.poll(seconds)
        self._settle()

    def flush(self):
        """Waits until the broker has everything that was sent."""
        self._producer.flush()
        self._settle()

    def _settle(self):
        while self._open:
            end, owed = self._open[0]
            if end is None or owed > 0:
                return
            self.acknowledged = end
            self._open.popleft()
