"""The broker's side of SASL authentication.

ApiVersions, SaslHandshake and SaslAuthenticate as in https://kafka.apache.org/protocol, SCRAM by RFC 5802, PLAIN by
RFC 4616, OAUTHBEARER by RFC 7628 with unsecured tokens (RFC 7515, appendix A.5). Pure: bytes in, bytes out.
"""

import base64
import hashlib
import hmac
import json
import os
import struct
import time

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
UNSUPPORTED_MECHANISM, UNSUPPORTED_VERSION, AUTHENTICATION_FAILED = 33, 35, 58
#: The first version of each request with a flexible header and the compact encoding.
FLEXIBLE_FROM = {API_VERSIONS: 3, SASL_AUTHENTICATE: 2}
SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SCRAM_ITERATIONS = 4096
#: The same for wrong users and wrong passwords, so that nobody learns which users exist.
INVALID = "Authentication failed: Invalid username or password"


class ConnectionRejected(Exception):
    """Ends the connection, after the response `answer`, if any."""

    def __init__(self, why, answer=b""):
        super().__init__(why)
        self.answer = answer


class AuthenticationError(Exception):
    """Invalid credentials. The client gets the text."""


class SaslSession:
    """One connection, from its first request until its `user` is authenticated."""

    def __init__(self, mechanisms, versions):
        """`mechanisms`: name -> function that makes an exchange. `versions`: the broker's API versions, (key, lowest, highest)."""
        self._mechanisms = mechanisms
        own = {SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE}
        self._versions = [entry for entry in versions if entry[0] not in own]
        self._versions += [(SASL_HANDSHAKE, 0, 1), (API_VERSIONS, 0, 3), (SASL_AUTHENTICATE, 0, 2)]
        self._exchange = None
        self.mechanism = None
        self.user = None

    def answer(self, request):
        """The response to a request, both without their size. Raises ConnectionRejected."""
        try:
            key, version, correlation = struct.unpack_from(">hhi", request)
            body = Reader(request, 8)
            body.text()
            if key in FLEXIBLE_FROM and version >= FLEXIBLE_FROM[key]:
                body.tags()
        except (struct.error, IndexError):
            raise ConnectionRejected("not a Kafka request") from None
        head = struct.pack(">i", correlation)
        if key == API_VERSIONS:
            return head + self._api_versions(version)
        if key == SASL_HANDSHAKE and version == 1 and self._exchange is None:
            return self._handshake(head, body)
        if key == SASL_AUTHENTICATE and version <= 2 and self._exchange is not None:
            return self._authenticate(head, version, body)
        raise ConnectionRejected(f"request {key} of version {version} before authentication")

    def _api_versions(self, version):
        if version > 3:
            return struct.pack(">hi", UNSUPPORTED_VERSION, 1) + struct.pack(">hhh", API_VERSIONS, 0, 3)
        if version == 3:
            entries = b"".join(struct.pack(">hhh", *entry) + b"\0" for entry in self._versions)
            return struct.pack(">h", 0) + unsigned_varint(len(self._versions) + 1) + entries + struct.pack(">i", 0) + b"\0"
        entries = b"".join(struct.pack(">hhh", *entry) for entry in self._versions)
        return struct.pack(">hi", 0, len(self._versions)) + entries + (struct.pack(">i", 0) if version else b"")

    def _handshake(self, head, body):
        name = body.text()
        names = b"".join(string(known) for known in self._mechanisms)
        code = 0 if name in self._mechanisms else UNSUPPORTED_MECHANISM
        answer = head + struct.pack(">hi", code, len(self._mechanisms)) + names
        if code:
            raise ConnectionRejected(f"mechanism {name}", answer)
        self.mechanism = name
        self._exchange = self._mechanisms[name]()
        return answer

    def _authenticate(self, head, version, body):
        message = body.compact_bytes() if version >= 2 else body.bytes()

        def answer(code, text, token):
            if version >= 2:
                return (head + b"\0" + struct.pack(">h", code) + compact_string(text) + compact_string(token or b"")
                        + struct.pack(">q", 0) + b"\0")
            said = struct.pack(">h", -1) if text is None else string(text)
            return (head + struct.pack(">h", code) + said + struct.pack(">i", len(token)) + token
                    + (struct.pack(">q", 0) if version == 1 else b""))

        try:
            token = self._exchange.answer(message)
        except AuthenticationError as error:
            raise ConnectionRejected(f"{self.mechanism}: {error}", answer(AUTHENTICATION_FAILED, str(error), b"")) from None
        self.user = self._exchange.user
        return answer(0, None, token)


class Plain:
    """PLAIN: the client sends the password."""

    def __init__(self, passwords):
        self._passwords = passwords
        self.user = None

    def answer(self, message):
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise AuthenticationError("Invalid SASL/PLAIN response: expected 3 tokens")
        user, password = parts[1].decode(), parts[2]
        known = self._passwords.get(user)
        if known is None or not hmac.compare_digest(known.encode(), password):
            raise AuthenticationError(INVALID)
        self.user = user
        return b""


class Scram:
    """SCRAM: both sides prove that they know the password, and neither sends it."""

    def __init__(self, mechanism, passwords, is_impostor=False):
        self._hash = SCRAM_HASHES[mechanism]
        self._mechanism = mechanism
        self._passwords = passwords
        #: Accepts every client, but can't prove that it knows the password.
        self._is_impostor = is_impostor
        self._first = None
        self.user = None

    def answer(self, message):
        return self._answer_first(message.decode()) if self._first is None else self._answer_final(message.decode())

    def _error(self):
        return AuthenticationError("Authentication failed during authentication due to invalid credentials with SASL mechanism "
                     + self._mechanism)

    def _answer_first(self, message):
        flag, identity, bare = message.split(",", 2)
        if flag not in ("n", "y"):
            raise self._error()
        fields = dict(part.split("=", 1) for part in bare.split(","))
        self._name = fields["n"].replace("=2C", ",").replace("=3D", "=")
        password = "" if self._is_impostor else self._passwords.get(self._name)
        if password is None:
            raise self._error()
        self._salt = os.urandom(16)
        self._salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), self._salt, SCRAM_ITERATIONS)
        self._header = f"{flag},{identity},"
        self._nonce = fields["r"] + base64.b64encode(os.urandom(18)).decode()
        said = f"r={self._nonce},s={base64.b64encode(self._salt).decode()},i={SCRAM_ITERATIONS}"
        self._first = f"{bare},{said}"
        return said.encode()

    def _answer_final(self, message):
        without_proof, proof = message.rsplit(",p=", 1)
        fields = dict(part.split("=", 1) for part in without_proof.split(","))
        transcript = f"{self._first},{without_proof}".encode()
        client_key = self._mac(self._salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._mac(stored_key, transcript)
        given = base64.b64decode(proof)
        # The client key is the XOR of proof and signature; only a client that knows the password can send the right proof.
        found = bytes(a ^ b for a, b in zip(given, signature))
        is_proven = (len(given) == len(signature) and hmac.compare_digest(hashlib.new(self._hash, found).digest(),
                                                                         stored_key))
        # librdkafka before 2.6.1 sends its own part of the nonce twice, and Apache Kafka accepts that.
        # https://github.com/confluentinc/librdkafka/pull/4895
        is_bound = base64.b64decode(fields["c"]).decode() == self._header and fields["r"].endswith(self._nonce)
        if not self._is_impostor and not (is_proven and is_bound):
            raise self._error()
        self.user = self._name
        server_key = self._mac(self._salted, b"Server Key")
        return b"v=" + base64.b64encode(self._mac(server_key, transcript))

    def _mac(self, key, data):
        return hmac.new(key, data, self._hash).digest()


class OAuthBearer:
    """OAUTHBEARER with unsigned tokens: accepts every token for a known user that has not expired."""

    def __init__(self, users):
        self._users = users
        self._failure = None
        self.user = None

    def answer(self, message):
        if self._failure is not None:
            raise AuthenticationError(self._failure)
        fields = dict(part.split("=", 1) for part in message.decode().split("\1")[1:] if part)
        try:
            kind, token = fields["auth"].split(" ")
            header, claims, signature = token.split(".")
            header, claims = (json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
                              for part in (header, claims))
            is_valid = (kind.lower() == "bearer" and header["alg"] == "none" and not signature
                        and claims["exp"] > time.time() and claims["sub"] in self._users)
        except (KeyError, ValueError):
            is_valid = False
        if not is_valid:
            # The client gets the error, sends one byte in response, and is rejected then.
            self._failure = "Authentication failed: invalid token"
            return b'{"status":"invalid_token"}'
        self.user = claims["sub"]
        return b""


def unsecured_token(user, seconds):
    """A token for the user that expires after this many seconds."""
    parts = ({"alg": "none"}, {"sub": user, "exp": time.time() + seconds, "jti": os.urandom(12).hex()})
    return "".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") + "." for part in parts)


class Reader:
    """Reads fields of a request. Raises struct.error or IndexError at the end of the data."""

    def __init__(self, data, offset=0):
        self._data, self._offset = data, offset

    def _take(self, size):
        if size < 0 or self._offset + size > len(self._data):
            raise IndexError
        self._offset += size
        return self._data[self._offset - size : self._offset]

    def text(self):
        size = struct.unpack(">h", self._take(2))[0]
        return None if size < 0 else self._take(size).decode(errors="replace")

    def bytes(self):
        return self._take(struct.unpack(">i", self._take(4))[0])

    def compact_bytes(self):
        return self._take(self._unsigned() - 1)

    def tags(self):
        for _ in range(self._unsigned()):
            self._unsigned()
            self._take(self._unsigned())

    def _unsigned(self):
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def unsigned_varint(value):
    """Encodes a number with seven bits per byte, the lowest first."""
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def string(text):
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def compact_string(text):
    """Encodes text or bytes as a compact string; None as null."""
    if text is None:
        return b"\0"
    encoded = text.encode() if isinstance(text, str) else text
    return unsigned_varint(len(encoded) + 1) + encoded


def api_versions_request():
    """An ApiVersions request of version 0, which every broker supports, with its size."""
    request = struct.pack(">hhi", API_VERSIONS, 0, 0) + string("martlet-test")
    return struct.pack(">i", len(request)) + request


def read_api_versions(answer):
    """The (key, lowest, highest) of a response to api_versions_request, without its size."""
    count = struct.unpack_from(">i", answer, 6)[0]
    return [struct.unpack_from(">hhh", answer, 10 + 6 * index) for index in range(count)]
