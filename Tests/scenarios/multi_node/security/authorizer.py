"""What a broker with access control lists does with the requests of a user who lacks rights.

As Apache Kafka's authorizer, for the requests that Martlet makes: https://kafka.apache.org/documentation/#operations_resources_and_protocols
says which right each needs. What is refused never reaches the broker behind. Requests are read in the last version that is not in the compact
encoding, so clients are told that the broker knows no newer one. Pure: bytes in, bytes out.
"""

import struct

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, FIND_COORDINATOR = 0, 1, 3, 8, 10
API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS = 18, 19, 22, 32
#: The newest version that is read here.
NEWEST = {PRODUCE: 7, FETCH: 11, METADATA: 4, OFFSET_COMMIT: 7, FIND_COORDINATOR: 2, CREATE_TOPICS: 4,
          INIT_PRODUCER_ID: 1, DESCRIBE_CONFIGS: 2}
INVALID_REQUIRED_ACKS, TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED = 21, 29, 30, 31
#: Rights that include Describe of the same thing.
INCLUDES_DESCRIBE = ("Read", "Write", "Delete", "Alter")


class Rights:
    """What a user may do: operation and thing, as ("Read", "topic", "martlet"). May be changed from any thread."""

    def __init__(self, granted=()):
        self._granted = frozenset(granted)

    def grant(self, *right):
        self._granted |= {right}

    def revoke(self, *right):
        self._granted -= {right}

    def allows(self, operation, kind, name):
        if (operation, kind, name) in self._granted:
            return True
        return operation == "Describe" and any((other, kind, name) in self._granted for other in INCLUDES_DESCRIBE)

    def may_create(self, topic):
        return self.allows("Create", "topic", topic) or self.allows("Create", "cluster", None)


class Gate:
    """One connection: what of its requests reaches the broker, and what is answered instead."""

    def __init__(self, rights, versions):
        """`versions`: the broker's, as (key, lowest, highest)."""
        self._rights = rights
        self._versions = [(key, low, min(high, NEWEST.get(key, high))) for key, low, high in versions if key != API_VERSIONS]
        self._versions.append((API_VERSIONS, 0, 2))
        #: What is to be done with answers of the broker, by their correlation.
        self._changes = {}

    def take(self, request):
        """Returns what the broker gets, and what the client is answered at once; either may be None."""
        key, version, correlation = struct.unpack_from(">hhi", request)
        head = struct.pack(">i", correlation)
        if key == API_VERSIONS:
            return None, head + self._known_versions(version)
        body = Fields(request, 8)
        body.text()
        check = {PRODUCE: self._produce, FETCH: self._fetch, METADATA: self._metadata, OFFSET_COMMIT: self._commit,
                 FIND_COORDINATOR: self._find_coordinator, CREATE_TOPICS: self._create,
                 INIT_PRODUCER_ID: self._producer, DESCRIBE_CONFIGS: self._settings}.get(key)
        if check is None:
            return request, None
        if version > NEWEST[key]:
            raise ValueError(f"request {key} of version {version}, which is not read here")
        forwarded, answer = check(version, request, body, correlation)
        return forwarded, None if answer is None else head + answer

    def change(self, answer):
        """What the client gets of an answer of the broker."""
        change = self._changes.pop(struct.unpack_from(">i", answer)[0], None)
        return answer if change is None else change(answer)

    def _known_versions(self, version):
        # Whoever asks by a version that is not known gets the answer of version 0, which says so.
        entries = b"".join(struct.pack(">hhh", *entry) for entry in self._versions)
        if version > 2:
            return struct.pack(">hi", 35, len(self._versions)) + entries
        return struct.pack(">hi", 0, len(self._versions)) + entries + (struct.pack(">i", 0) if version else b"")

    def _produce(self, version, request, body, correlation):
        if version >= 3:
            body.text()
        acks = body.int16()
        body.int32()
        topics = body.array(lambda: (body.text(), body.array(lambda: (body.int32(), body.data()))))
        errors = {name: 0 if self._rights.allows("Write", "topic", name) else TOPIC_REFUSED for name, _ in topics}
        if not any(errors.values()):
            if acks in (-1, 0, 1):
                return request, None
            # As Kafka: such a request is looked at no further, once it is known that its sender may write.
            errors = dict.fromkeys(errors, INVALID_REQUIRED_ACKS)
        tail = struct.pack(">q", -1) * (1 + (version >= 2) + (version >= 5))
        answer = array(text(name) + array(struct.pack(">ih", index, errors[name]) + tail for index, _ in partitions)
                       for name, partitions in topics)
        return None, answer + (struct.pack(">i", 0) if version >= 1 else b"")

    def _fetch(self, version, request, body, correlation):
        body.skip(4 + 4 + 4 + 4 + 1)
        body.skip(8 if version >= 7 else 0)
        begin = body.offset
        width = 16 + (4 if version >= 9 else 0) + (8 if version >= 5 else 0)

        def topic():
            start = body.offset
            name = body.text()
            indexes = body.array(lambda: (body.int32(), body.skip(width - 4))[0])
            return name, indexes, request[start:body.offset]

        topics = body.array(topic)
        allowed = {name for name, _, _ in topics if self._rights.allows("Read", "topic", name)}
        if len(allowed) == len(topics):
            return request, None
        tail = (struct.pack(">qq", -1, -1) + (struct.pack(">q", -1) if version >= 5 else b"") + struct.pack(">i", 0)
                + (struct.pack(">i", -1) if version >= 11 else b"") + struct.pack(">i", 0))
        refused = [text(name) + array(struct.pack(">ih", index, TOPIC_REFUSED) + tail for index in indexes)
                   for name, indexes, _ in topics if name not in allowed]
        first = 4 + (6 if version >= 7 else 0)
        if not allowed:
            return None, bytes(first) + array(refused)
        self._changes[correlation] = lambda answer: appended(answer, 4 + first, refused)
        rest = array(part for name, _, part in topics if name in allowed)
        return request[:begin] + rest + request[body.offset:], None

    def _metadata(self, version, request, body, correlation):
        begin = body.offset
        names = body.array(body.text)
        allowed = [name for name in names if self._rights.allows("Describe", "topic", name)]
        if len(allowed) == len(names):
            return request, None
        refused = [struct.pack(">h", TOPIC_REFUSED) + text(name) + (b"\0" if version >= 1 else b"") + array([])
                   for name in names if name not in allowed]

        def change(answer):
            fields = Fields(answer, 4)
            fields.skip(4 if version >= 3 else 0)
            fields.array(lambda: (fields.int32(), fields.text(), fields.int32(), version >= 1 and fields.text()))
            if version >= 2:
                fields.text()
            fields.skip(4 if version >= 1 else 0)
            offset = fields.offset
            if not allowed:
                # The broker has told of no topic, or of all: neither is what this user asked for.
                return answer[:offset] + array(refused)
            return appended(answer, offset, refused)

        self._changes[correlation] = change
        return request[:begin] + array(text(name) for name in allowed) + request[body.offset:], None

    def _commit(self, version, request, body, correlation):
        group = body.text()
        body.int32()
        body.text()
        if version >= 7:
            body.text()
        topics = body.array(lambda: (body.text(), body.array(
            lambda: (body.int32(), body.skip(12 if version >= 6 else 8), body.text())[0])))
        may_group = self._rights.allows("Read", "group", group)
        errors = {name: GROUP_REFUSED if not may_group else 0 if self._rights.allows("Read", "topic", name) else TOPIC_REFUSED
                  for name, _ in topics}
        if not any(errors.values()):
            return request, None
        return None, (struct.pack(">i", 0) if version >= 3 else b"") + array(
            text(name) + array(struct.pack(">ih", index, errors[name]) for index in indexes) for name, indexes in topics)

    def _find_coordinator(self, version, request, body, correlation):
        if self._rights.allows("Describe", "group", body.text()):
            return request, None
        nobody = struct.pack(">i", -1) + text("") + struct.pack(">i", -1)
        if version == 0:
            return None, struct.pack(">h", GROUP_REFUSED) + nobody
        return None, struct.pack(">ihh", 0, GROUP_REFUSED, -1) + nobody

    def _create(self, version, request, body, correlation):
        names = body.array(lambda: (
            body.text(), body.skip(6), body.array(lambda: (body.int32(), body.array(body.int32))),
            body.array(lambda: (body.text(), body.text())))[0])
        if all(self._rights.may_create(name) for name in names):
            return request, None
        reason = struct.pack(">h", -1) if version >= 1 else b""
        return None, (struct.pack(">i", 0) if version >= 2 else b"") + array(
            text(name) + struct.pack(">h", TOPIC_REFUSED) + reason for name in names)

    def _producer(self, version, request, body, correlation):
        if self._rights.allows("IdempotentWrite", "cluster", None):
            return request, None
        return None, struct.pack(">ihqh", 0, CLUSTER_REFUSED, -1, -1)

    def _settings(self, version, request, body, correlation):
        things = body.array(lambda: (body.int8(), body.text(), body.array(body.text)))
        if all(self._rights.allows("DescribeConfigs", "topic", name) for _, name, _ in things):
            return request, None
        return None, struct.pack(">i", 0) + array(
            struct.pack(">hhb", TOPIC_REFUSED, -1, kind) + text(name) + array([]) for kind, name, _ in things)


class Fields:
    """Reads fields that are not in the compact encoding. Raises struct.error or IndexError at the end."""

    def __init__(self, data, offset):
        self._data, self.offset = data, offset

    def skip(self, size):
        if size < 0 or self.offset + size > len(self._data):
            raise IndexError
        self.offset += size

    def _number(self, form, size):
        value = struct.unpack_from(form, self._data, self.offset)[0]
        self.offset += size
        return value

    def int8(self):
        return self._number(">b", 1)

    def int16(self):
        return self._number(">h", 2)

    def int32(self):
        return self._number(">i", 4)

    def _sized(self, size):
        if size < 0:
            return None
        self.skip(size)
        return self._data[self.offset - size : self.offset]

    def text(self):
        found = self._sized(self.int16())
        return None if found is None else found.decode()

    def data(self):
        return self._sized(self.int32())

    def array(self, element):
        return [element() for _ in range(self.int32())]


def text(value):
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def array(elements):
    elements = list(elements)
    return struct.pack(">i", len(elements)) + b"".join(elements)


def appended(answer, offset, elements):
    """An answer that ends with an array, whose count is at the offset, with more of them."""
    count = struct.unpack_from(">i", answer, offset)[0]
    return answer[:offset] + struct.pack(">i", max(count, 0) + len(elements)) + answer[offset + 4:] + b"".join(elements)
