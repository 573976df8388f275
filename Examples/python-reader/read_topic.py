#!/usr/bin/env python3
"""Prints every transaction of a Martlet topic as a line of JSON. See README.md."""

import argparse
import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def load_schema(folder):
    """Generates the Python module of the wire format into a folder, and returns it."""
    arguments = ["--proto_path", str(PROTO), "--python_out", folder, "martlet/v1/transaction.proto"]
    try:
        # Its protoc goes with the protobuf runtime that pip installs; the system's may be too old for it.
        importlib.import_module("grpc_tools")
        compiler = [sys.executable, "-m", "grpc_tools.protoc"]
    except ModuleNotFoundError:
        compiler = [shutil.which("protoc") or sys.exit("neither grpcio-tools nor protoc is here: see README.md")]
    subprocess.run(compiler + arguments, check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("martlet.v1.transaction_pb2")


class Assembler:
    """Puts chunks together, and leaves out what was delivered twice: (origin, sequence) identifies a transaction."""

    def __init__(self):
        self._chunks = {}
        self._seen = set()

    def add(self, headers, payload):
        """Returns the whole payload once all of its chunks are here, else None."""
        transaction = headers["martlet-origin"], headers["martlet-sequence"]
        if transaction in self._seen:
            return None
        index, count = map(int, headers.get("martlet-chunk", b"0/1").split(b"/"))
        if index == 0:
            self._chunks[transaction] = {}  # A transaction that is sent again may be cut differently.
        chunks = self._chunks.setdefault(transaction, {})
        chunks[index] = payload
        if len(chunks) < count:
            return None
        del self._chunks[transaction]
        self._seen.add(transaction)
        return b"".join(chunks[i] for i in range(count))


def decode(payload, schema):
    """The transaction as plain values: the Protobuf mapping to JSON, with the origin as a UUID."""
    from google.protobuf import json_format

    transaction = schema.Transaction()
    if payload.startswith(b"{"):  # sync.format: json. A protobuf message never begins with this byte.
        json_format.Parse(payload, transaction, ignore_unknown_fields=True)
    else:
        transaction.ParseFromString(payload)
    values = json_format.MessageToDict(transaction)
    values["origin"] = str(uuid.UUID(bytes=transaction.origin))
    return values


def read(consumer, topic, follow):
    """Yields the headers and the payload of every message, from the beginning: to the end of today, or for ever."""
    metadata = consumer.list_topics(topic, timeout=10).topics[topic]
    if metadata.error:
        raise KafkaException(metadata.error)
    open_partitions = set(metadata.partitions)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in open_partitions])
    while follow or open_partitions:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            if message.error().code() != KafkaError._PARTITION_EOF:
                raise KafkaException(message.error())
            open_partitions.discard(message.partition())
            continue
        yield dict(message.headers() or []), message.value()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--topic", default="martlet")
    parser.add_argument("--follow", action="store_true", help="wait for more at the end")
    arguments = parser.parse_args()

    consumer = Consumer({
        "bootstrap.servers": arguments.bootstrap_servers,
        "group.id": "martlet-python-reader",  # demanded by the client; nothing is ever committed
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    })
    assembler = Assembler()
    with tempfile.TemporaryDirectory() as folder:
        schema = load_schema(folder)
        try:
            for headers, payload in read(consumer, arguments.topic, arguments.follow):
                if "martlet-origin" not in headers:
                    continue
                whole = assembler.add(headers, payload)
                if whole is not None:
                    print(json.dumps(decode(whole, schema), ensure_ascii=False), flush=True)
        except KeyboardInterrupt:
            pass
        finally:
            consumer.close()


if __name__ == "__main__":
    main()
