"""A PostgreSQL server with its files in a temporary folder, which can be killed. It runs without root's rights."""

import os
import pathlib
import shutil
import signal
import subprocess

import psycopg2

from postgres.programs import Victim
from shared.brokers import free_port
from shared.repository import ROOT
from shared.waiting import Failure, Skip, eventually

#: Debian's package makes this user; a server refuses to run as root.
SERVER_USER = "postgres"
DATABASE = "shop"


def find_programs():
    """The folder of the server's programs: Debian's packages don't put them on the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    if found:
        return found[-1]
    if on_path:
        return pathlib.Path(on_path).parent
    raise Skip("no PostgreSQL: scripts/install-dependencies.sh --test installs it")


class PostgresServer(Victim):
    name = "PostgreSQL"
    stops_writers = True

    def __init__(self, folder, rng):
        self._programs = find_programs()
        self._folder = folder / "postgres"
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"
        self._rng = rng
        self._port = free_port()
        self._process = None
        self._as_user = {"user": SERVER_USER, "group": SERVER_USER, "extra_groups": []} if os.geteuid() == 0 else {}

    def create(self, *statements):
        """Makes a cluster and starts it, with a database that has what setup.sql and these statements create."""
        self._folder.mkdir()
        if self._as_user:
            self._folder.parent.chmod(0o711)
            shutil.chown(self._folder, SERVER_USER, SERVER_USER)
        subprocess.run(
            [self._programs / "initdb", "--pgdata", self._data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8",
             "--locale", "C.UTF-8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as_user)
        settings = {
            "port": self._port, "listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''", "wal_level": "logical",
            # To compare the times of records with.
            "track_commit_timestamp": "on",
            # The files survive a kill of the processes all the same.
            "fsync": "off"}
        with open(self._data / "postgresql.conf", "a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in settings.items())
        self.start()
        self.execute(f"CREATE DATABASE {DATABASE}", database="postgres")
        self.execute((ROOT / "Examples" / "postgres" / "setup.sql").read_text())
        for statement in statements:
            self.execute(statement)

    def start(self):
        """Starts the server, which may have to recover from a crash, and waits until it accepts connections."""
        eventually("PostgreSQL runs", self._try_to_start)

    def _try_to_start(self):
        # What is left of a server that was killed may keep a new one from starting.
        if self._process is None or self._process.poll() is not None:
            with open(self._log, "ab") as log:
                self._process = subprocess.Popen(
                    [self._programs / "postgres", "-D", self._data], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                    start_new_session=True, **self._as_user)
        try:
            self.connect(database="postgres").close()
            return True
        except psycopg2.OperationalError as problem:
            return False, f"{problem} See {self._log}"

    def kill(self):
        """An immediate shutdown, or kill -9 of all its processes."""
        if self._rng.random() < 0.5:
            self._process.send_signal(signal.SIGQUIT)
        else:
            # Those that the first one started end by themselves, and may still do something before.
            children = pathlib.Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            self._process.kill()
            for child in children:
                try:
                    os.kill(int(child), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self._process.wait()
        self._process = None

    def close(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise Failure(f"PostgreSQL did not end, see {self._log}") from None
            self._process = None

    def dsn(self, user="martlet", database=DATABASE):
        return f"host=127.0.0.1 port={self._port} dbname={database} user={user} connect_timeout=10"

    def connect(self, database=DATABASE):
        """A connection as a superuser."""
        return psycopg2.connect(self.dsn("postgres", database))

    def execute(self, statements, parameters=None, database=DATABASE):
        """Runs statements, and returns the rows of the last one, if it has some."""
        connection = self.connect(database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statements, parameters)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()
