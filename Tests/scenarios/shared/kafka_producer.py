"""Writes arbitrary messages to a topic, with one Kafka request (Produce, version 3)."""

import socket
import struct
import time

from shared.waiting import Failure

TIMEOUT_SECONDS = 30


def produce(port, topic, partition, value):
    """Writes one message to a single-node broker on 127.0.0.1, and waits for its acknowledgement."""
    batch = _batch(value)
    body = struct.pack(">hhi", -1, -1, TIMEOUT_SECONDS * 1000)
    body += struct.pack(">i", 1) + _string(topic) + struct.pack(">iii", 1, partition, len(batch)) + batch
    request = struct.pack(">hhi", 0, 3, 1) + _string("test") + body
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb")
        answer = answer.read(struct.unpack(">i", answer.read(4))[0])
    # Correlation ID, one topic with its name, one partition with its index and error.
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic.encode()) + 4 + 4)
    if error != 0:
        raise Failure(f"the broker rejects a message with error {error}")


def _string(text):
    return struct.pack(">h", len(text.encode())) + text.encode()


def _batch(value):
    """A batch of one record without a key: https://kafka.apache.org/documentation/#recordbatch"""
    record = b"\0" + _varint(0) + _varint(0) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    records = _varint(len(record)) + record
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + records
    rest = struct.pack(">ibI", -1, 2, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def _varint(number):
    """Zigzag, then seven bits per byte."""
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
