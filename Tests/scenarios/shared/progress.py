"""Counts what writers have done, for those who wait for it."""

import threading

from shared.waiting import DEADLINE_SECONDS, Failure


class Progress:
    """The number of transactions that all writers have committed."""

    def __init__(self):
        self._changed = threading.Condition()
        self.count = 0

    def advance(self):
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_for(self, count):
        """Waits until this many transactions are committed. Raises Failure after the deadline."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, DEADLINE_SECONDS):
                raise Failure(f"the writers are stuck at {self.count} of {count} transactions")
