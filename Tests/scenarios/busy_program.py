"""A program beside an agent that leaves it little time to write."""

import threading


class BusyProgram:
    """A program that writes to a store in long transactions, with short breaks between them."""

    LOCKED_SECONDS = 2.0
    FREE_SECONDS = 0.1

    def __init__(self, node):
        self._node = node
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="busy program")

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _run(self):
        with self._node.connection() as connection:
            connection.isolation_level = None
            while not self._ends.wait(self.FREE_SECONDS):
                connection.execute("BEGIN IMMEDIATE")
                self._ends.wait(self.LOCKED_SECONDS)
                connection.execute("ROLLBACK")
