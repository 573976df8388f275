"""What scenarios with a demanding broker share: fronts, certificates, configurations, and what must never be shown.

With an Apache Kafka of one's own the same nodes run without the front, against listeners of the broker itself. For TLS:
`listeners=SSL://...`, `ssl.keystore.location` and `ssl.truststore.location` (type PEM), `ssl.client.auth=required`. For
SASL: `listeners=SASL_SSL://...` or `SASL_PLAINTEXT://...`, `sasl.enabled.mechanisms`, for PLAIN and OAUTHBEARER a
`listener.name.LISTENER.MECHANISM.sasl.jaas.config`, and for SCRAM a user that was there from the first start:
`kafka-storage.sh format --add-scram 'SCRAM-SHA-512=[name=phone,password=...]'`. Where KAFKA_HOME is set, the front stands
before that broker's plaintext listener.
"""

import base64
import concurrent.futures
import contextlib
import pathlib

from multi_node.security import sasl
from multi_node.security.certificates import Authority
from multi_node.security.listener import Fronts, demand_tls
from shared.waiting import eventually, expect

PASSWORD = "Tr0ub4dor-and-3"
WRONG_PASSWORD = "battery-staple-9"
#: Users, and what they log in with.
PASSWORDS = {"phone": PASSWORD, "tablet": PASSWORD}


class Scene:
    """Fronts before the driver's broker, authorities, and configurations of nodes."""

    def __init__(self, driver, fronts, place):
        self.driver = driver
        self._fronts = fronts
        self._folder = driver.folder / "secrets"
        #: What tokens that were made say, which nobody may show.
        self._tokens = []
        self.authority = Authority(self._folder, "authority")
        self._broker_certificate = self.authority.certificate("broker", [f"DNS:{place.name}"])

    def front(self, tls=False, clients=False, mechanisms=None, certificate=None, granted=None):
        """A front that demands what is named. `granted`: the rights.Rights of whoever comes."""
        context = None
        if tls:
            clients_of = self.authority.file if clients else None
            context = demand_tls(*(certificate or self._broker_certificate), clients_of=clients_of)
        return self._fronts.open(context, mechanisms, granted)

    def other_authority(self):
        return Authority(self._folder, "stranger")

    def password_file(self, node, password=PASSWORD):
        """A file with a password, which only its owner can read."""
        file = self._folder / f"{node}.password"
        file.touch(0o600)
        file.write_text(password + "\n")
        return file

    def token_file(self, node, user, seconds=3600, mode=0o600):
        """A file with a token for that user, in the place of the one that the node had before."""
        token = sasl.unsecured_token(user, seconds)
        self._tokens.append(token.split(".")[1].encode())
        file = self._folder / f"{node}.token"
        new = file.with_suffix(".new")
        new.write_text(token + "\n")
        new.chmod(mode)
        new.replace(file)
        return file

    def nodes(self, schema, *names):
        return [self.driver.add_node(name, schema) for name in names]

    def configure(self, node, front, protocol, tls=None, sasl=None, properties=None, log_level="info", more=""):
        """Writes the configuration file of a node, which says where its broker is. `more`: lines of YAML."""
        # The front listens on IPv4 alone, whatever else its name stands for.
        properties = {"broker.address.family": "v4", **(properties or {})}
        lines = ["kafka:", f"  bootstrapServers: [{front.bootstrap}]", f"  securityProtocol: {protocol}"]
        for name, table in (("tls", tls), ("sasl", sasl), ("properties", properties)):
            if table:
                lines += [f"  {name}:"] + [f"    {key}: {value}" for key, value in table.items()]
        lines += ["log:", f"  level: {log_level}"]
        self.driver.configure(node, "\n".join(lines) + "\n" + more, names_broker=True)

    def doctor(self, node):
        """The exit code of `martlet doctor`, and what it says."""
        return self.driver.attempt("doctor", node.store, *self.driver.broker_arguments(node))

    def doctors(self, nodes):
        """The same for many nodes at once: each waits for ten seconds where no broker lets it in."""
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
            return dict(zip((node.name for node in nodes), pool.map(self.doctor, nodes)))

    def reconfigure(self, nodes):
        """Has agents that run take their new configuration files over."""
        said = "Agent restarted with the new configuration"
        before = {node.name: self.driver.log_text(node).count(said) for node in nodes}
        for node in nodes:
            self.driver.reload(node)
        for node in nodes:
            eventually(f"{node.name} takes its new configuration over",
                       lambda: self.driver.log_text(node).count(said) > before[node.name])

    def expect_no_secrets(self, nodes, printed=""):
        """Expects that no password or token is in a list of processes, a log, an answer of a command or a file of a store."""
        for node in nodes:
            if self.driver.is_running(node):
                process = pathlib.Path("/proc") / str(self.driver.process_identifier(node))
                self._expect_without_secrets((process / "cmdline").read_bytes(), f"the command line of {node.name}")
            for command in (("status",), ("status", "--json")):
                text = self.driver.attempt(command[0], node.store, *command[1:])[1]
                self._expect_without_secrets(text.encode(), f"martlet {' '.join(command)} of {node.name}")
        self._expect_without_secrets(printed.encode(), "what was printed")
        for file in self.driver.folder.rglob("*"):
            # Logs, stores, what the broker has; not where the passwords are meant to be.
            if file.is_file() and self._folder not in file.parents and file.suffix != ".yaml":
                self._expect_without_secrets(file.read_bytes(), str(file))

    def _expect_without_secrets(self, data, where):
        expect_without_passwords(data, where)
        for token in self._tokens:
            expect(token not in data, f"a token is in {where}")


def expect_without_passwords(data, where):
    for password in (PASSWORD, WRONG_PASSWORD):
        secret = password.encode()
        for form in (secret, base64.b64encode(secret).rstrip(b"="), secret.hex().encode()):
            expect(form not in data, f"a password is in {where}")


def plain():
    return sasl.Plain(PASSWORDS)


def scram(mechanism, is_impostor=False):
    return lambda: sasl.Scram(mechanism, PASSWORDS, is_impostor)


def oauthbearer():
    return sasl.OAuthBearer(PASSWORDS)


MECHANISMS = {"PLAIN": plain, "SCRAM-SHA-256": scram("SCRAM-SHA-256"), "SCRAM-SHA-512": scram("SCRAM-SHA-512"),
              "OAUTHBEARER": oauthbearer}


@contextlib.contextmanager
def scene(driver):
    """A Scene for as long as the context lasts. Skips where the broker is elsewhere."""
    place = driver.front_place
    with Fronts(place) as fronts:
        yield Scene(driver, fronts, place)
