"""Programs that use a store beside its agent, each on a thread."""

import threading


class BackgroundProgram:
    """Acts on a store repeatedly for the duration of a `with` block."""

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
    """A program that writes regularly."""

    def _act(self, connection):
        connection.execute("INSERT INTO visit (place) VALUES ('here')")


class LockHolder(BackgroundProgram):
    """A program that holds the write lock in long transactions, with short pauses in which the agent can write."""

    def __init__(self, node, locked_seconds=2.0):
        super().__init__(node)
        self._locked_seconds = locked_seconds

    def _act(self, connection):
        connection.execute("BEGIN IMMEDIATE")
        self._ends.wait(self._locked_seconds)
        connection.execute("ROLLBACK")
