"""Authorizes Kafka requests by an access control list, as Apache Kafka's authorizer does, for the requests that Martlet makes.

https://kafka.apache.org/documentation/#operations_resources_and_protocols lists the permissions that each request needs. Rejected
requests never reach the broker. The authorizer reads no compact encoding, so it tells clients that the broker supports no version
that uses it. Pure: bytes in, bytes out.
"""

import struct

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, FIND_COORDINATOR = 0, 1, 3, 8, 10
API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS = 18, 19, 22, 32
#: The newest version of each request that the authorizer reads.
NEWEST = {PRODUCE: 7, FETCH: 11, METADATA: 4, OFFSET_COMMIT: 7, FIND_COORDINATOR: 2, CREATE_TOPICS: 4,
          INIT_PRODUCER_ID: 1, DESCRIBE_CONFIGS: 2}
INVALID_REQUIRED_ACKS, TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 21, 29, 30, 31
#: Operations that imply Describe on the same resource.
IMPLIES_DESCRIBE = ("Read", "Write", "Delete", "Alter")


class AccessControlList:
    """The permissions of a user: operation, resource type and name, as ("Read", "topic", "martlet"). Any thread may change them."""

    def __init__(self, granted=()):
        self._granted = frozenset(granted)

    def grant(self, *permission):
        self._granted |= {permission}

    def revoke(self, *permission):
        self._granted -= {permission}

    def allows(self, operation, kind, name):
        if (operation, kind, name) in self._granted:
            return True
        return operation == "Describe" and any((other, kind, name) in self._granted for other in IMPLIES_DESCRIBE)

    def may_create(self, topic):
        return self.allows("Create", "topic", topic) or self.allows("Create", "cluster", None)


class Authorizer:
    """Authorizes the requests of one connection: forwards, changes or answers them."""

    def __init__(self, acl, versions):
        """`versions`: the broker's API versions, as (key, lowest, highest)."""
        self._acl = acl
        self._versions = [(key, low, min(high, NEWEST.get(key, high))) for key, low, high in versions if key != API_VERSIONS]
        self._versions.append((API_VERSIONS, 0, 2))
        #: Functions that rewrite responses of the broker, by correlation ID.
        self._rewrites = {}

    def authorize(self, request):
        """Returns the request for the broker and the immediate response to the client; either may be None."""
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
            raise ValueError(f"request {key} of version {version}, which the authorizer doesn't read")
        forwarded, answer = check(version, request, body, correlation)
        return forwarded, None if answer is None else head + answer

    def rewrite(self, answer):
        """Returns the response for the client, given the broker's."""
        rewrite = self._rewrites.pop(struct.unpack_from(">i", answer)[0], None)
        return answer if rewrite is None else rewrite(answer)

    def _known_versions(self, version):
        # A request of an unknown version gets a response of version 0, which reports the error.
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
        errors = {name: 0 if self._acl.allows("Write", "topic", name) else TOPIC_AUTHORIZATION_FAILED for name, _ in topics}
        if not any(errors.values()):
            if acks in (-1, 0, 1):
                return request, None
            # As in Kafka: once its sender is authorized, such a request is rejected without further checks.
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
        allowed = {name for name, _, _ in topics if self._acl.allows("Read", "topic", name)}
        if len(allowed) == len(topics):
            return request, None
        tail = (struct.pack(">qq", -1, -1) + (struct.pack(">q", -1) if version >= 5 else b"") + struct.pack(">i", 0)
                + (struct.pack(">i", -1) if version >= 11 else b"") + struct.pack(">i", 0))
        refused = [text(name) + array(struct.pack(">ih", index, TOPIC_AUTHORIZATION_FAILED) + tail for index in indexes)
                   for name, indexes, _ in topics if name not in allowed]
        first = 4 + (6 if version >= 7 else 0)
        if not allowed:
            return None, bytes(first) + array(refused)
        self._rewrites[correlation] = lambda answer: appended(answer, 4 + first, refused)
        rest = array(part for name, _, part in topics if name in allowed)
        return request[:begin] + rest + request[body.offset:], None

    def _metadata(self, version, request, body, correlation):
        begin = body.offset
        names = body.array(body.text)
        allowed = [name for name in names if self._acl.allows("Describe", "topic", name)]
        if len(allowed) == len(names):
            return request, None
        refused = [struct.pack(">h", TOPIC_AUTHORIZATION_FAILED) + text(name) + (b"\0" if version >= 1 else b"") + array([])
                   for name in names if name not in allowed]

        def rewrite(answer):
            fields = Fields(answer, 4)
            fields.skip(4 if version >= 3 else 0)
            fields.array(lambda: (fields.int32(), fields.text(), fields.int32(), version >= 1 and fields.text()))
            if version >= 2:
                fields.text()
            fields.skip(4 if version >= 1 else 0)
            offset = fields.offset
            if not allowed:
                # The broker has listed no topic or all topics, and the user asked for neither.
                return answer[:offset] + array(refused)
            return appended(answer, offset, refused)

        self._rewrites[correlation] = rewrite
        return request[:begin] + array(text(name) for name in allowed) + request[body.offset:], None

    def _commit(self, version, request, body, correlation):
        group = body.text()
        body.int32()
        body.text()
        if version >= 7:
            body.text()
        topics = body.array(lambda: (body.text(), body.array(
            lambda: (body.int32(), body.skip(12 if version >= 6 else 8), body.text())[0])))
        may_group = self._acl.allows("Read", "group", group)
        errors = {name: 0 if self._acl.allows("Read", "topic", name) else TOPIC_AUTHORIZATION_FAILED for name, _ in topics}
        if not may_group:
            errors = dict.fromkeys(errors, GROUP_AUTHORIZATION_FAILED)
        if not any(errors.values()):
            return request, None
        return None, (struct.pack(">i", 0) if version >= 3 else b"") + array(
            text(name) + array(struct.pack(">ih", index, errors[name]) for index in indexes) for name, indexes in topics)

    def _find_coordinator(self, version, request, body, correlation):
        if self._acl.allows("Describe", "group", body.text()):
            return request, None
        no_coordinator = struct.pack(">i", -1) + text("") + struct.pack(">i", -1)
        if version == 0:
            return None, struct.pack(">h", GROUP_AUTHORIZATION_FAILED) + no_coordinator
        return None, struct.pack(">ihh", 0, GROUP_AUTHORIZATION_FAILED, -1) + no_coordinator

    def _create(self, version, request, body, correlation):
        names = body.array(lambda: (
            body.text(), body.skip(6), body.array(lambda: (body.int32(), body.array(body.int32))),
            body.array(lambda: (body.text(), body.text())))[0])
        if all(self._acl.may_create(name) for name in names):
            return request, None
        reason = struct.pack(">h", -1) if version >= 1 else b""
        return None, (struct.pack(">i", 0) if version >= 2 else b"") + array(
            text(name) + struct.pack(">h", TOPIC_AUTHORIZATION_FAILED) + reason for name in names)

    def _producer(self, version, request, body, correlation):
        if self._acl.allows("IdempotentWrite", "cluster", None):
            return request, None
        return None, struct.pack(">ihqh", 0, CLUSTER_AUTHORIZATION_FAILED, -1, -1)

    def _settings(self, version, request, body, correlation):
        things = body.array(lambda: (body.int8(), body.text(), body.array(body.text)))
        if all(self._acl.allows("DescribeConfigs", "topic", name) for _, name, _ in things):
            return request, None
        return None, struct.pack(">i", 0) + array(
            struct.pack(">hhb", TOPIC_AUTHORIZATION_FAILED, -1, kind) + text(name) + array([]) for kind, name, _ in things)


class Fields:
    """Reads fields in the non-compact encoding. Raises struct.error or IndexError at the end of the data."""

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
    """A response that ends with an array, whose count is at the offset, with more elements."""
    count = struct.unpack_from(">i", answer, offset)[0]
    return answer[:offset] + struct.pack(">i", max(count, 0) + len(elements)) + answer[offset + 4:] + b"".join(elements)
