"""What the reader and the writer share: options of Kafka's clients, topics, and how a program ends."""

import signal
import sys

import psycopg2
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

#: The exit code if PostgreSQL or Kafka went away: start the program again, and it continues (EX_TEMPFAIL of sysexits.h).
TRY_AGAIN = 75


def note(text):
    print(text, file=sys.stderr, flush=True)


def add_arguments(parser):
    parser.add_argument("--postgres", required=True, metavar="DSN", help='for example "host=db dbname=shop user=martlet"')
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--kafka", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of librdkafka, for example security.protocol=SSL; may be repeated")


def settings(arguments):
    """The settings of librdkafka that all clients have."""
    return {"bootstrap.servers": arguments.bootstrap_servers, **dict(pair.split("=", 1) for pair in arguments.kafka)}


def create_topic(arguments, topic, partitions):
    """Creates a topic if it is missing, and returns its number of partitions."""
    client = AdminClient(settings(arguments))
    created, = client.create_topics([NewTopic(topic, partitions, config={"cleanup.policy": "compact"})]).values()
    try:
        created.result()
    except KafkaException as problem:
        if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    return len(partitions_of(client, topic))


def partitions_of(client, topic):
    """The partitions of a topic by number. Empty if there is no such topic."""
    found = client.list_topics(topic, timeout=30).topics[topic]
    if found.error is None:
        return found.partitions
    if found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return {}
    raise KafkaException(found.error)


def run(work):
    """Runs a program's work. Ends in good order on SIGTERM, and with TRY_AGAIN if a server went away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        work()
    except KeyboardInterrupt:
        pass
    except psycopg2.Error as problem:
        note(f"PostgreSQL: {str(problem).strip()}")
        # The general class is that of a replication connection which is lost.
        is_lost = isinstance(problem, (psycopg2.OperationalError, psycopg2.InterfaceError)) or type(problem) is psycopg2.DatabaseError
        sys.exit(TRY_AGAIN if is_lost else 1)
    except KafkaException as problem:
        note(f"Kafka: {problem.args[0].str()}")
        sys.exit(TRY_AGAIN if problem.args[0].retriable() or problem.args[0].code() < 0 else 1)
