"""Fixture for scenarios with a secured broker: listeners, certificates, configurations, and checks for leaked secrets.

The same nodes work with the listeners of a real Apache Kafka. For TLS:
`listeners=SSL://...`, `ssl.keystore.location` and `ssl.truststore.location` (type PEM), `ssl.client.auth=required`. For
SASL: `listeners=SASL_SSL://...` or `SASL_PLAINTEXT://...`, `sasl.enabled.mechanisms`, for PLAIN and OAUTHBEARER a
`listener.name.LISTENER.MECHANISM.sasl.jaas.config`, and for SCRAM a user that exists from the first start:
`kafka-storage.sh format --add-scram 'SCRAM-SHA-512=[name=phone,password=...]'`. If KAFKA_HOME is set, the secured listener is in
front of that broker's plaintext listener.
"""

import base64
import concurrent.futures
import contextlib
import pathlib

from multi_node.security import sasl
from multi_node.security.certificates import Authority
from multi_node.security.listener import SecuredListeners, tls_context
from shared.waiting import eventually, expect

PASSWORD = "Tr0ub4dor-and-3"
WRONG_PASSWORD = "battery-staple-9"
#: User -> password.
PASSWORDS = {"phone": PASSWORD, "tablet": PASSWORD}


class SecuredBroker:
    """Secured listeners in front of the driver's broker, certificate authorities, and configurations of nodes."""

    def __init__(self, driver, listeners, placement):
        self.driver = driver
        self._listeners = listeners
        self._folder = driver.folder / "secrets"
        #: The claims of all tokens, which must not appear in any output.
        self._tokens = []
        self.authority = Authority(self._folder, "authority")
        self._broker_certificate = self.authority.certificate("broker", [f"DNS:{placement.name}"])

    def listener(self, tls=False, client_certificates=False, mechanisms=None, certificate=None, acl=None):
        """A new listener with these requirements. `acl`: the AccessControlList of every client."""
        context = None
        if tls:
            client_ca = self.authority.file if client_certificates else None
            context = tls_context(*(certificate or self._broker_certificate), client_ca=client_ca)
        return self._listeners.open(context, mechanisms, acl)

    def untrusted_authority(self):
        return Authority(self._folder, "untrusted")

    def password_file(self, node, password=PASSWORD):
        """A password file that only its owner can read."""
        file = self._folder / f"{node}.password"
        file.touch(0o600)
        file.write_text(password + "\n")
        return file

    def token_file(self, node, user, seconds=3600, mode=0o600):
        """A token file for the user. It replaces the node's previous one atomically."""
        token = sasl.unsecured_token(user, seconds)
        self._tokens.append(token.split(".")[1].encode())
        file = self._folder / f"{node}.token"
        new = file.with_suffix(".new")
        new.write_text(token + "\n")
        new.chmod(mode)
        new.replace(file)
        return file

    def add_nodes(self, schema, *names):
        return [self.driver.add_node(name, schema) for name in names]

    def configure(self, node, listener, protocol, tls=None, sasl=None, properties=None, log_level="info", more=""):
        """Writes the configuration file of a node, with the address of the listener. `more`: lines of YAML."""
        # The listener binds to IPv4 only; its name may also have other addresses.
        properties = {"broker.address.family": "v4", **(properties or {})}
        lines = ["kafka:", f"  bootstrapServers: [{listener.bootstrap}]", f"  securityProtocol: {protocol}"]
        for name, table in (("tls", tls), ("sasl", sasl), ("properties", properties)):
            if table:
                lines += [f"  {name}:"] + [f"    {key}: {value}" for key, value in table.items()]
        lines += ["log:", f"  level: {log_level}"]
        self.driver.configure(node, "\n".join(lines) + "\n" + more, names_broker=True)

    def doctor(self, node):
        """The exit code and the output of `martlet doctor`."""
        return self.driver.attempt("doctor", node.store, *self.driver.broker_arguments(node))

    def doctors(self, nodes):
        """The same for many nodes at once: each takes ten seconds if the broker rejects it."""
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
            return dict(zip((node.name for node in nodes), pool.map(self.doctor, nodes)))

    def reload_configuration(self, nodes):
        """Makes running agents reload their configuration files."""
        said = "Agent restarted with the new configuration"
        before = {node.name: self.driver.log_text(node).count(said) for node in nodes}
        for node in nodes:
            self.driver.reload(node)
        for node in nodes:
            eventually(f"{node.name} reloads its configuration",
                       lambda: self.driver.log_text(node).count(said) > before[node.name])

    def expect_no_secrets(self, nodes, printed=""):
        """Expects no password or token in process lists, logs, command output and store files."""
        for node in nodes:
            if self.driver.is_running(node):
                process = pathlib.Path("/proc") / str(self.driver.process_identifier(node))
                self._expect_without_secrets((process / "cmdline").read_bytes(), f"the command line of {node.name}")
            for command in (("status",), ("status", "--json")):
                text = self.driver.attempt(command[0], node.store, *command[1:])[1]
                self._expect_without_secrets(text.encode(), f"martlet {' '.join(command)} of {node.name}")
        self._expect_without_secrets(printed.encode(), "the printed output")
        for file in self.driver.folder.rglob("*"):
            # Logs, stores and the broker's data; not the files that are meant to contain secrets.
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
def secured_broker(driver):
    """A context manager with a SecuredBroker. Skips if the broker is on another machine."""
    placement = driver.listener_placement
    with SecuredListeners(placement) as listeners:
        yield SecuredBroker(driver, listeners, placement)
