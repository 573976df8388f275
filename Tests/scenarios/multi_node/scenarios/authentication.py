"""A broker that demands TLS or SASL: nodes that come with what it asks for, and nodes that don't."""

import dataclasses
import socket
import ssl
import struct

from multi_node.registry import scenario
from multi_node.security import sasl, secured_broker
from multi_node.security.secured_broker import MECHANISMS, PASSWORD, WRONG_PASSWORD, scene
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


def sync(place, nodes):
    """Lets configured nodes exchange rows, and expects that their doctor is content and that no password is shown."""
    driver = place.driver
    driver.start(*nodes)
    write(nodes, "from")
    expect_all_written(driver, nodes, "from")
    code, said = place.doctor(nodes[0])
    expect(code == 0 and f"{driver.topic} has 4 partitions" in said, f"the doctor says:\n{said}")
    place.expect_no_secrets(nodes, said)
    driver.stop(*nodes)


@scenario()
def tls(driver, options):
    """A broker with a certificate of an authority that nodes know by a file."""
    with scene(driver) as place:
        front = place.front(tls=True)
        nodes = place.nodes(SCHEMA, "phone", "tablet")
        for node in nodes:
            place.configure(node, front, "ssl", tls={"caFile": place.authority.file})
        sync(place, nodes)
        expect(front.handshakes, "nobody came by TLS")
        return f"{front.handshakes[0][0]}, {front.admitted} connections"


@scenario()
def mutual_tls(driver, options):
    """A broker that asks nodes for certificates."""
    with scene(driver) as place:
        front = place.front(tls=True, clients=True)
        nodes = place.nodes(SCHEMA, "phone", "tablet")
        for node in nodes:
            certificate, key = place.authority.certificate(node.name)
            place.configure(node, front, "ssl", tls={
                "caFile": place.authority.file, "certificateFile": certificate, "keyFile": key})
        sync(place, nodes)
        expect_equal({name for _, name in front.handshakes}, {"phone", "tablet"}, "names in certificates")


@scenario()
def sasl_over_tls(driver, options):
    """PLAIN, SCRAM of both kinds and OAUTHBEARER in two ways, one node each; each has what the others wrote."""
    with scene(driver) as place:
        fronts = {name: place.front(tls=True, mechanisms={name: make}) for name, make in MECHANISMS.items()}
        by_file, inline, strong, token, unsecured = nodes = place.nodes(
            SCHEMA, "plain", "scram-256", "scram-512", "token-file", "unsecured")
        tls = {"caFile": place.authority.file}
        # The most that can be logged, so that what must not be is looked for in all of it.
        loud = {"debug": "security,broker,protocol"}
        place.configure(by_file, fronts["PLAIN"], "sasl_ssl", tls, {
            "mechanism": "PLAIN", "username": "phone", "passwordFile": place.password_file("plain")}, loud, "trace")
        place.configure(inline, fronts["SCRAM-SHA-256"], "sasl_ssl", tls, {
            "mechanism": "SCRAM-SHA-256", "username": "phone", "password": PASSWORD}, loud, "trace")
        # SCRAM-SHA-512 is what Martlet takes where no mechanism is named.
        place.configure(strong, fronts["SCRAM-SHA-512"], "sasl_ssl", tls, {
            "username": "tablet", "passwordFile": place.password_file("scram-512")}, loud, "trace")
        place.configure(token, fronts["OAUTHBEARER"], "sasl_ssl", tls, {
            "mechanism": "OAUTHBEARER", "tokenFile": place.token_file("token-file", "phone")}, loud, "trace")
        # Without keys of Martlet's: librdkafka makes such tokens itself.
        place.configure(unsecured, fronts["OAUTHBEARER"], "plaintext", properties={
            "security.protocol": "sasl_ssl", "ssl.ca.location": place.authority.file, "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=tablet"})
        sync(place, nodes)
        users = {"PLAIN": {"phone"}, "SCRAM-SHA-256": {"phone"}, "SCRAM-SHA-512": {"tablet"},
                 "OAUTHBEARER": {"phone", "tablet"}}
        for name, front in fronts.items():
            expect_equal(set(front.logins), {(name, user) for user in users[name]}, f"who was let in by {name}")


#: Long enough to get in step, short enough to wait for.
SHORT_TOKEN_SECONDS = 25


@scenario()
def expiring_token(driver, options):
    """OAUTHBEARER with a token in a file that expires, and is replaced, while the agent runs."""
    with scene(driver) as place:
        front = place.front(tls=True, mechanisms={"OAUTHBEARER": MECHANISMS["OAUTHBEARER"]})
        phone, tablet = nodes = place.nodes(SCHEMA, "phone", "tablet")
        for node, seconds in ((tablet, 3600), (phone, SHORT_TOKEN_SECONDS)):
            place.configure(node, front, "sasl_ssl", {"caFile": place.authority.file}, {
                "tokenFile": place.token_file(node.name, node.name, seconds)})
        driver.start(*nodes)
        write(nodes, "from")
        expect_all_written(driver, nodes, "from")
        expect_equal(set(front.logins), {("OAUTHBEARER", "phone"), ("OAUTHBEARER", "tablet")}, "who was let in")
        expired = f"{phone.name}.token expired at"
        eventually("the log says that the token has expired", lambda: expired in driver.log_text(phone))
        front.hang_up()
        eventually("the broker refuses the token", lambda: any("invalid token" in why for why in front.refusals))
        write(nodes, "meanwhile")
        code, said = place.doctor(phone)
        expect(code == 1 and "problem token: " in said and expired in said, f"the doctor says:\n{said}")
        expect_equal(driver.status(phone)["unpublished"], 1, "transactions that wait for a token")
        # Nobody tells the agent.
        place.token_file(phone.name, "phone")
        expect_all_written(driver, nodes, "from", "meanwhile")
        code, said = place.doctor(phone)
        expect(code == 0 and "the token is for phone" in said, f"the doctor says:\n{said}")
        place.expect_no_secrets(nodes, said)
        driver.stop(*nodes)


@scenario()
def sasl_without_tls(driver, options):
    """SCRAM on a connection that everybody can read: the password is not on it."""
    with scene(driver) as place:
        front = place.front(mechanisms=MECHANISMS)
        nodes = place.nodes(SCHEMA, "phone", "tablet")
        for node, mechanism in zip(nodes, ("SCRAM-SHA-256", "SCRAM-SHA-512")):
            place.configure(node, front, "sasl_plaintext", sasl={
                "mechanism": mechanism, "username": node.name, "passwordFile": place.password_file(node.name)})
        sync(place, nodes)
        expect_equal(set(front.logins), {("SCRAM-SHA-256", "phone"), ("SCRAM-SHA-512", "tablet")}, "who was let in")
        secured_broker.expect_without_passwords(bytes(front.heard), "what was said before the login was over")


@dataclasses.dataclass
class Mistake:
    """A node that is not let in, and what is said of it."""

    node: object
    front: object
    #: What the agent's log has to say, and what `martlet doctor` has to.
    logged: str
    doctor: str


def expect_kept_out(place, mistakes):
    """Expects that no node is let in, that each says why, and that what it wrote waits."""
    driver = place.driver
    nodes = [mistake.node for mistake in mistakes]
    driver.start(*nodes)
    write(nodes, "before")
    examined = place.doctors(nodes)
    for mistake in mistakes:
        node = mistake.node
        code, said = examined[node.name]
        expect(code == 1 and mistake.doctor in said,
               f"{node.name}: the doctor does not say {mistake.doctor!r}:\n{said[-1000:]}")
        for words in ("Could not read the topic; will retry", mistake.logged):
            eventually(f"{node.name} logs {words!r}", lambda: words in driver.log_text(node))
        expect_equal(driver.status(node)["unpublished"], 1, f"transactions of {node.name} that wait")
        expect_equal(mistake.front.bytes_to_broker, 0, f"bytes of {node.name} that reached the broker")
        expect(driver.problem(node) is None, f"the agent of {node.name} has ended")
    place.expect_no_secrets(nodes, "".join(said for _, said in examined.values()))


def expect_healed(place, nodes):
    """Expects that nothing is lost once the configurations are right."""
    place.reconfigure(nodes)
    write(nodes, "after")
    expect_all_written(place.driver, nodes, "before", "after")
    place.expect_no_secrets(nodes)
    place.driver.stop(*nodes)


@scenario()
def wrong_certificates(driver, options):
    """Certificates that nobody known vouches for or that are another's, none at all, and TLS on one side only."""
    with scene(driver) as place:
        stranger = place.other_authority()
        known = {"caFile": place.authority.file}
        unverified = "broker certificate could not be verified"

        def mistake(name, front, protocol, tls, logged, doctor):
            node = driver.add_node(name, SCHEMA)
            place.configure(node, front, protocol, tls)
            return Mistake(node, front, logged, doctor)

        certificate, key = stranger.certificate("phone")
        mistakes = [
            mistake("other-authority", place.front(tls=True), "ssl", {"caFile": stranger.file}, unverified, unverified),
            mistake("other-host", place.front(tls=True, certificate=place.authority.certificate(
                "elsewhere", ["DNS:broker.example"])), "ssl", known, unverified, unverified),
            mistake("no-certificate", place.front(tls=True, clients=True), "ssl", known, "alert certificate required",
                    "certificate required"),
            mistake("strangers-certificate", place.front(tls=True, clients=True), "ssl",
                    {**known, "certificateFile": certificate, "keyFile": key}, "alert unknown ca", "unknown ca"),
            mistake("plaintext-to-tls", place.front(tls=True), "plaintext", None, "connecting to a SSL listener?",
                    "SSL listener"),
            mistake("tls-to-plaintext", place.front(mechanisms=MECHANISMS), "ssl", known, "SSL handshake failed",
                    "SSL handshake failed"),
        ]
        expect_kept_out(place, mistakes)
        nodes = [mistake.node for mistake in mistakes]
        front = place.front(tls=True, clients=True)
        for node in nodes:
            certificate, key = place.authority.certificate(node.name)
            place.configure(node, front, "ssl", {**known, "certificateFile": certificate, "keyFile": key})
        expect_healed(place, nodes)


@scenario()
def wrong_logins(driver, options):
    """Wrong passwords, users and mechanisms, no login where one is demanded, a broker that doesn't know the password."""
    with scene(driver) as place:
        invalid = "Authentication failed"
        no_file, readable = "none.token can't be read: No such file", "can be read by every user of this machine"

        def mistake(name, mechanisms, login, logged, doctor):
            node, front = driver.add_node(name, SCHEMA), place.front(mechanisms=mechanisms)
            place.configure(node, front, "sasl_plaintext" if login else "plaintext", sasl=login)
            return Mistake(node, front, logged, doctor)

        def login(name, mechanism, user="phone", password=PASSWORD):
            return {"mechanism": mechanism, "username": user, "passwordFile": place.password_file(name, password)}

        # Takes everybody, and doesn't know the password.
        impostor = {"SCRAM-SHA-512": secured_broker.scram("SCRAM-SHA-512", is_impostor=True)}
        mistakes = [
            mistake("wrong-plain", MECHANISMS, login("wrong-plain", "PLAIN", password=WRONG_PASSWORD), invalid,
                    invalid),
            mistake("wrong-scram", MECHANISMS, login("wrong-scram", "SCRAM-SHA-256", password=WRONG_PASSWORD), invalid,
                    invalid),
            mistake("wrong-user", MECHANISMS, login("wrong-user", "SCRAM-SHA-512", user="nobody"), invalid, invalid),
            mistake("wrong-mechanism", {"SCRAM-SHA-512": MECHANISMS["SCRAM-SHA-512"]},
                    login("wrong-mechanism", "PLAIN"), "supported mechanisms: SCRAM-SHA-512",
                    "supported mechanisms: SCRAM-SHA-512"),
            mistake("no-login", MECHANISMS, None, "broker might require SASL authentication", "SASL authentication"),
            mistake("no-token", MECHANISMS, {"tokenFile": driver.folder / "secrets" / "none.token"}, no_file, no_file),
            mistake("shown-token", MECHANISMS, {"tokenFile": place.token_file("shown-token", "phone", mode=0o644)},
                    readable, readable),
            mistake("wrong-token", MECHANISMS, {"tokenFile": place.token_file("wrong-token", "nobody")}, invalid,
                    invalid),
            # Let in, it alone can tell that it had better go away.
            fooled := mistake("fooled", impostor, login("fooled", "SCRAM-SHA-512"), "ServerSignature mismatch",
                              "ServerSignature mismatch"),
        ]
        expect_kept_out(place, mistakes)
        expect(fooled.front.logins, "the impostor let nobody in")
        # Another password in the same file: the configuration is the same, and SIGHUP takes it over all the same.
        by_file, *others = [mistake.node for mistake in mistakes]
        place.password_file(by_file.name)
        front = place.front(mechanisms=MECHANISMS)
        for node in others:
            place.configure(node, front, "sasl_plaintext", sasl=login(node.name, "SCRAM-SHA-512"))
        expect_healed(place, [by_file, *others])


class Stranger:
    """A client that goes its own way."""

    def __init__(self, front, context=None):
        host, _, port = front.bootstrap.rpartition(":")
        self._socket = socket.create_connection(("127.0.0.1", int(port)), timeout=10)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def ask(self, key, version, body=b""):
        """The answer to a request, without size and correlation; None where the connection ends instead."""
        request = struct.pack(">hhi", key, version, 7) + sasl.string("stranger") + body
        try:
            self._socket.sendall(struct.pack(">i", len(request)) + request)
            size = self._take(4)
            answer = self._take(struct.unpack(">i", size)[0])
        except OSError:
            return None
        expect_equal(answer[:4], struct.pack(">i", 7), "the answer's correlation")
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
def the_front_demands(driver, options):
    """What stands in for the broker's demands: without it, the scenarios above prove nothing."""
    with scene(driver) as place:
        trusting = ssl.create_default_context(cafile=place.authority.file)
        every_topic = struct.pack(">i", -1)
        demands = place.front(mechanisms=MECHANISMS)

        def ask_about_topics(front, context=None):
            with Stranger(front, context) as stranger:
                return stranger.ask(METADATA, 1, every_topic)

        def try_plain(password):
            with Stranger(demands) as stranger:
                said = stranger.ask(sasl.SASL_HANDSHAKE, 1, sasl.string("PLAIN"))
                expect_equal(said[:2], b"\0\0", "the handshake's error")
                token = f"\0phone\0{password}".encode()
                said = stranger.ask(sasl.SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
                return struct.unpack_from(">h", said)[0], stranger.ask(METADATA, 1, every_topic)

        expect(ask_about_topics(place.front()) is not None, "a front that demands nothing answers nobody")
        expect_equal(ask_about_topics(place.front(tls=True)), None, "the answer to plaintext, where TLS is demanded")
        expect(ask_about_topics(place.front(tls=True), trusting), "no answer by TLS")
        certified = place.front(tls=True, clients=True)
        expect_equal(ask_about_topics(certified, trusting), None, "the answer to whom has no certificate")
        trusting.load_cert_chain(*place.authority.certificate("phone"))
        expect(ask_about_topics(certified, trusting), "no answer with a certificate")
        expect_equal(ask_about_topics(demands), None, "the answer before a login")
        expect_equal(try_plain(WRONG_PASSWORD), (sasl.AUTHENTICATION_FAILED, None), "a login with a wrong password")
        code, answer = try_plain(PASSWORD)
        expect_equal(code, 0, "a login with the right password")
        host, _, port = demands.bootstrap.rpartition(":")
        expect(sasl.string(host) + struct.pack(">i", int(port)) in answer, "the front's address is not in the answer")
        expect_equal(demands.admitted, 1, "connections that were let in")
