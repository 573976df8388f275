"""Brokers that require TLS or SASL, with correctly configured nodes and with misconfigured ones."""

import dataclasses
import socket
import ssl
import struct

from multi_node.registry import scenario
from multi_node.security import sasl
from multi_node.security.secured_broker import (MECHANISMS, PASSWORD, WRONG_PASSWORD, expect_without_passwords, scram,
                                                secured_broker)
from shared.waiting import eventually, expect, expect_equal

SCHEMA = "CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL)"
TEXTS = "SELECT text FROM note ORDER BY text"
METADATA = 3


def write(nodes, when):
    for node in nodes:
        node.write(("INSERT INTO note (text) VALUES (?)", (f"{when} {node.name}",)))


def expect_all_written(driver, nodes, *times):
    driver.settle(*nodes)
    expected = sorted((f"{when} {node.name}",) for when in times for node in nodes)
    for node in nodes:
        expect_equal(node.rows(TEXTS), expected, f"notes of {node.name}")
    driver.expect_each_transaction_once(*nodes)


def sync(broker, nodes):
    """Syncs configured nodes; expects that the doctor finds no problem and that no output contains a password."""
    driver = broker.driver
    driver.start(*nodes)
    write(nodes, "from")
    expect_all_written(driver, nodes, "from")
    code, said = broker.doctor(nodes[0])
    expect(code == 0 and f"{driver.topic} has 4 partitions" in said, f"the doctor says:\n{said}")
    broker.expect_no_secrets(nodes, said)
    driver.stop(*nodes)


@scenario()
def tls(driver, options):
    """TLS: nodes trust the authority of the broker's certificate by a file."""
    with secured_broker(driver) as broker:
        listener = broker.listener(tls=True)
        nodes = broker.add_nodes(SCHEMA, "phone", "tablet")
        for node in nodes:
            broker.configure(node, listener, "ssl", tls={"caFile": broker.authority.file})
        sync(broker, nodes)
        expect(listener.handshakes, "no connection used TLS")
        return f"{listener.handshakes[0][0]}, {listener.admitted} connections"


@scenario()
def mutual_tls(driver, options):
    """Mutual TLS: the broker requires client certificates."""
    with secured_broker(driver) as broker:
        listener = broker.listener(tls=True, client_certificates=True)
        nodes = broker.add_nodes(SCHEMA, "phone", "tablet")
        for node in nodes:
            certificate, key = broker.authority.certificate(node.name)
            broker.configure(node, listener, "ssl", tls={
                "caFile": broker.authority.file, "certificateFile": certificate, "keyFile": key})
        sync(broker, nodes)
        expect_equal({name for _, name in listener.handshakes}, {"phone", "tablet"}, "names in certificates")


@scenario()
def sasl_over_tls(driver, options):
    """Five nodes with PLAIN, both SCRAM mechanisms, and OAUTHBEARER in two ways, all over TLS, converge."""
    with secured_broker(driver) as broker:
        listeners = {name: broker.listener(tls=True, mechanisms={name: make}) for name, make in MECHANISMS.items()}
        plain, scram_256, scram_512, token, unsecured = nodes = broker.add_nodes(
            SCHEMA, "plain", "scram-256", "scram-512", "token-file", "unsecured")
        tls = {"caFile": broker.authority.file}
        # The most verbose logs, so that the search for secrets covers everything that can be logged.
        verbose = {"debug": "security,broker,protocol"}
        broker.configure(plain, listeners["PLAIN"], "sasl_ssl", tls, {
            "mechanism": "PLAIN", "username": "phone", "passwordFile": broker.password_file("plain")}, verbose, "trace")
        broker.configure(scram_256, listeners["SCRAM-SHA-256"], "sasl_ssl", tls, {
            "mechanism": "SCRAM-SHA-256", "username": "phone", "password": PASSWORD}, verbose, "trace")
        # SCRAM-SHA-512 is Martlet's default mechanism.
        broker.configure(scram_512, listeners["SCRAM-SHA-512"], "sasl_ssl", tls, {
            "username": "tablet", "passwordFile": broker.password_file("scram-512")}, verbose, "trace")
        broker.configure(token, listeners["OAUTHBEARER"], "sasl_ssl", tls, {
            "mechanism": "OAUTHBEARER", "tokenFile": broker.token_file("token-file", "phone")}, verbose, "trace")
        # Configured by librdkafka's properties alone: librdkafka makes such tokens itself.
        broker.configure(unsecured, listeners["OAUTHBEARER"], "plaintext", properties={
            "security.protocol": "sasl_ssl", "ssl.ca.location": broker.authority.file, "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=tablet"})
        sync(broker, nodes)
        users = {"PLAIN": {"phone"}, "SCRAM-SHA-256": {"phone"}, "SCRAM-SHA-512": {"tablet"},
                 "OAUTHBEARER": {"phone", "tablet"}}
        for name, listener in listeners.items():
            expect_equal(set(listener.logins), {(name, user) for user in users[name]}, f"users that logged in with {name}")


#: Long enough to get in sync, short enough to wait for.
SHORT_TOKEN_SECONDS = 25


@scenario()
def expiring_token(driver, options):
    """OAUTHBEARER with a token file whose token expires, and is replaced, while the agent runs."""
    with secured_broker(driver) as broker:
        listener = broker.listener(tls=True, mechanisms={"OAUTHBEARER": MECHANISMS["OAUTHBEARER"]})
        phone, tablet = nodes = broker.add_nodes(SCHEMA, "phone", "tablet")
        for node, seconds in ((tablet, 3600), (phone, SHORT_TOKEN_SECONDS)):
            broker.configure(node, listener, "sasl_ssl", {"caFile": broker.authority.file}, {
                "tokenFile": broker.token_file(node.name, node.name, seconds)})
        driver.start(*nodes)
        write(nodes, "from")
        expect_all_written(driver, nodes, "from")
        expect_equal(set(listener.logins), {("OAUTHBEARER", "phone"), ("OAUTHBEARER", "tablet")}, "users that logged in")
        expired = f"{phone.name}.token expired at"
        eventually("the log says that the token has expired", lambda: expired in driver.log_text(phone))
        listener.hang_up()
        eventually("the broker refuses the token", lambda: any("invalid token" in why for why in listener.rejections))
        write(nodes, "meanwhile")
        code, said = broker.doctor(phone)
        expect(code == 1 and "problem token: " in said and expired in said, f"the doctor says:\n{said}")
        expect_equal(driver.status(phone)["unpublished"], 1, "unpublished transactions without a token")
        # The agent notices the new file by itself.
        broker.token_file(phone.name, "phone")
        expect_all_written(driver, nodes, "from", "meanwhile")
        code, said = broker.doctor(phone)
        expect(code == 0 and "the token is for phone" in said, f"the doctor says:\n{said}")
        broker.expect_no_secrets(nodes, said)
        driver.stop(*nodes)


@scenario()
def sasl_without_tls(driver, options):
    """SCRAM without TLS: the password does not cross the connection."""
    with secured_broker(driver) as broker:
        listener = broker.listener(mechanisms=MECHANISMS)
        nodes = broker.add_nodes(SCHEMA, "phone", "tablet")
        for node, mechanism in zip(nodes, ("SCRAM-SHA-256", "SCRAM-SHA-512")):
            broker.configure(node, listener, "sasl_plaintext", sasl={
                "mechanism": mechanism, "username": node.name, "passwordFile": broker.password_file(node.name)})
        sync(broker, nodes)
        expect_equal(set(listener.logins), {("SCRAM-SHA-256", "phone"), ("SCRAM-SHA-512", "tablet")}, "users that logged in")
        expect_without_passwords(bytes(listener.login_bytes), "the bytes received before the login succeeded")


@dataclasses.dataclass
class Misconfiguration:
    """A node that the broker rejects, and the expected errors."""

    node: object
    listener: object
    #: Text that the agent's log and `martlet doctor` have to contain.
    logged: str
    doctor: str


def expect_rejected(broker, misconfigurations):
    """Expects that the broker rejects every node, that each reports why, and that its changes stay unpublished."""
    driver = broker.driver
    nodes = [misconfiguration.node for misconfiguration in misconfigurations]
    driver.start(*nodes)
    write(nodes, "before")
    examined = broker.doctors(nodes)
    for misconfiguration in misconfigurations:
        node = misconfiguration.node
        code, said = examined[node.name]
        expect(code == 1 and misconfiguration.doctor in said,
               f"{node.name}: the doctor does not say {misconfiguration.doctor!r}:\n{said[-1000:]}")
        for words in ("Could not read the topic; will retry", misconfiguration.logged):
            eventually(f"{node.name} logs {words!r}", lambda: words in driver.log_text(node))
        expect_equal(driver.status(node)["unpublished"], 1, f"unpublished transactions of {node.name}")
        expect_equal(misconfiguration.listener.bytes_to_broker, 0, f"bytes of {node.name} that reached the broker")
        expect(driver.problem(node) is None, f"the agent of {node.name} has ended")
    broker.expect_no_secrets(nodes, "".join(said for _, said in examined.values()))


def expect_recovery(broker, nodes):
    """Expects that no change is lost once the configurations are corrected."""
    broker.reload_configuration(nodes)
    write(nodes, "after")
    expect_all_written(broker.driver, nodes, "before", "after")
    broker.expect_no_secrets(nodes)
    broker.driver.stop(*nodes)


@scenario()
def wrong_certificates(driver, options):
    """Untrusted authorities, wrong host names, missing client certificates, and TLS on one side only."""
    with secured_broker(driver) as broker:
        untrusted = broker.untrusted_authority()
        known = {"caFile": broker.authority.file}
        unverified = "broker certificate could not be verified"

        def misconfiguration(name, listener, protocol, tls, logged, doctor):
            node = driver.add_node(name, SCHEMA)
            broker.configure(node, listener, protocol, tls)
            return Misconfiguration(node, listener, logged, doctor)

        certificate, key = untrusted.certificate("phone")
        misconfigurations = [
            misconfiguration("other-authority", broker.listener(tls=True), "ssl", {"caFile": untrusted.file}, unverified, unverified),
            misconfiguration("other-host", broker.listener(tls=True, certificate=broker.authority.certificate(
                "elsewhere", ["DNS:broker.example"])), "ssl", known, unverified, unverified),
            misconfiguration("no-certificate", broker.listener(tls=True, client_certificates=True), "ssl", known, "alert certificate required",
                    "certificate required"),
            misconfiguration("untrusted-certificate", broker.listener(tls=True, client_certificates=True), "ssl",
                    {**known, "certificateFile": certificate, "keyFile": key}, "alert unknown ca", "unknown ca"),
            misconfiguration("plaintext-to-tls", broker.listener(tls=True), "plaintext", None, "connecting to a SSL listener?",
                    "SSL listener"),
            misconfiguration("tls-to-plaintext", broker.listener(mechanisms=MECHANISMS), "ssl", known, "SSL handshake failed",
                    "SSL handshake failed"),
        ]
        expect_rejected(broker, misconfigurations)
        nodes = [misconfiguration.node for misconfiguration in misconfigurations]
        listener = broker.listener(tls=True, client_certificates=True)
        for node in nodes:
            certificate, key = broker.authority.certificate(node.name)
            broker.configure(node, listener, "ssl", {**known, "certificateFile": certificate, "keyFile": key})
        expect_recovery(broker, nodes)


@scenario()
def wrong_logins(driver, options):
    """Wrong passwords, users, mechanisms and tokens, a missing login, and a broker that doesn't know the password."""
    with secured_broker(driver) as broker:
        invalid = "Authentication failed"
        no_file, readable = "none.token can't be read: No such file", "can be read by every user of this machine"

        def misconfiguration(name, mechanisms, login, logged, doctor):
            node, listener = driver.add_node(name, SCHEMA), broker.listener(mechanisms=mechanisms)
            broker.configure(node, listener, "sasl_plaintext" if login else "plaintext", sasl=login)
            return Misconfiguration(node, listener, logged, doctor)

        def login(name, mechanism, user="phone", password=PASSWORD):
            return {"mechanism": mechanism, "username": user, "passwordFile": broker.password_file(name, password)}

        # Accepts every client, but doesn't know the password.
        impostor = {"SCRAM-SHA-512": scram("SCRAM-SHA-512", is_impostor=True)}
        misconfigurations = [
            misconfiguration("wrong-plain", MECHANISMS, login("wrong-plain", "PLAIN", password=WRONG_PASSWORD), invalid,
                    invalid),
            misconfiguration("wrong-scram", MECHANISMS, login("wrong-scram", "SCRAM-SHA-256", password=WRONG_PASSWORD), invalid,
                    invalid),
            misconfiguration("wrong-user", MECHANISMS, login("wrong-user", "SCRAM-SHA-512", user="nobody"), invalid, invalid),
            misconfiguration("wrong-mechanism", {"SCRAM-SHA-512": MECHANISMS["SCRAM-SHA-512"]},
                    login("wrong-mechanism", "PLAIN"), "supported mechanisms: SCRAM-SHA-512",
                    "supported mechanisms: SCRAM-SHA-512"),
            misconfiguration("no-login", MECHANISMS, None, "broker might require SASL authentication", "SASL authentication"),
            misconfiguration("no-token", MECHANISMS, {"tokenFile": driver.folder / "secrets" / "none.token"}, no_file, no_file),
            misconfiguration("shown-token", MECHANISMS, {"tokenFile": broker.token_file("shown-token", "phone", mode=0o644)},
                    readable, readable),
            misconfiguration("wrong-token", MECHANISMS, {"tokenFile": broker.token_file("wrong-token", "nobody")}, invalid,
                    invalid),
            # Only this node can notice that the broker is an impostor.
            fooled := misconfiguration("fooled", impostor, login("fooled", "SCRAM-SHA-512"), "ServerSignature mismatch",
                              "ServerSignature mismatch"),
        ]
        expect_rejected(broker, misconfigurations)
        expect(fooled.listener.logins, "the impostor accepted no login")
        # The password file changes and the configuration doesn't: SIGHUP has to read it again.
        by_file, *others = [misconfiguration.node for misconfiguration in misconfigurations]
        broker.password_file(by_file.name)
        listener = broker.listener(mechanisms=MECHANISMS)
        for node in others:
            broker.configure(node, listener, "sasl_plaintext", sasl=login(node.name, "SCRAM-SHA-512"))
        expect_recovery(broker, [by_file, *others])


class RawClient:
    """A Kafka client that sends single requests."""

    def __init__(self, listener, context=None):
        host, _, port = listener.bootstrap.rpartition(":")
        self._socket = socket.create_connection(("127.0.0.1", int(port)), timeout=10)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def ask(self, key, version, body=b""):
        """The response to a request, without size and correlation ID; None if the connection ends instead."""
        request = struct.pack(">hhi", key, version, 7) + sasl.string("raw-client") + body
        try:
            self._socket.sendall(struct.pack(">i", len(request)) + request)
            size = self._take(4)
            answer = self._take(struct.unpack(">i", size)[0])
        except OSError:
            return None
        expect_equal(answer[:4], struct.pack(">i", 7), "correlation ID of the response")
        return answer[4:]

    def _take(self, count):
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError
            data += part
        return data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


@scenario()
def listener_enforces_security(driver, options):
    """The secured listener enforces TLS, client certificates and SASL: otherwise the scenarios above prove nothing."""
    with secured_broker(driver) as broker:
        trusting = ssl.create_default_context(cafile=broker.authority.file)
        all_topics = struct.pack(">i", -1)
        sasl_listener = broker.listener(mechanisms=MECHANISMS)

        def request_metadata(listener, context=None):
            with RawClient(listener, context) as client:
                return client.ask(METADATA, 1, all_topics)

        def try_plain(password):
            with RawClient(sasl_listener) as client:
                said = client.ask(sasl.SASL_HANDSHAKE, 1, sasl.string("PLAIN"))
                expect_equal(said[:2], b"\0\0", "the handshake's error")
                token = f"\0phone\0{password}".encode()
                said = client.ask(sasl.SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
                return struct.unpack_from(">h", said)[0], client.ask(METADATA, 1, all_topics)

        expect(request_metadata(broker.listener()) is not None, "no response from a listener without security")
        expect_equal(request_metadata(broker.listener(tls=True)), None, "response to plaintext, if TLS is required")
        expect(request_metadata(broker.listener(tls=True), trusting), "no response over TLS")
        mutual_tls_listener = broker.listener(tls=True, client_certificates=True)
        expect_equal(request_metadata(mutual_tls_listener, trusting), None, "response without a client certificate")
        trusting.load_cert_chain(*broker.authority.certificate("phone"))
        expect(request_metadata(mutual_tls_listener, trusting), "no response with a client certificate")
        expect_equal(request_metadata(sasl_listener), None, "response before a login")
        expect_equal(try_plain(WRONG_PASSWORD), (sasl.AUTHENTICATION_FAILED, None), "login with a wrong password")
        code, answer = try_plain(PASSWORD)
        expect_equal(code, 0, "login with the right password")
        host, _, port = sasl_listener.bootstrap.rpartition(":")
        expect(sasl.string(host) + struct.pack(">i", int(port)) in answer, "the listener's address is not in the response")
        expect_equal(sasl_listener.admitted, 1, "admitted connections")
