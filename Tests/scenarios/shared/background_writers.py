"""Programs beside an agent, each on a thread."""

import threading


class BackgroundProgram:
    """Does something to a store again and again while a `with` lasts."""

    PAUSE_SECONDS = 0.1

    def __init__(self, node):
        self._node = node
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background")

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _run(self):
        with self._node.connection() as connection:
            connection.isolation_level = None
            while not self._ends.wait(self.PAUSE_SECONDS):
                self._act(connection)


class VisitWriter(BackgroundProgram):
    """A program that writes now and then."""

    def _act(self, connection):
        connection.execute("INSERT INTO visit (place) VALUES ('here')")


class LockHolder(BackgroundProgram):
    """A program that writes in long transactions, with short pauses between them: it leaves the agent little time to."""

    def __init__(self, node, locked_seconds=2.0):
        super().__init__(node)
        self._locked_seconds = locked_seconds

    def _act(self, connection):
        connection.execute("BEGIN IMMEDIATE")
        self._ends.wait(self._locked_seconds)
        connection.execute("ROLLBACK")
