"""Records acknowledged writes, which every node has to have in the end.

A transaction takes a ticket while it holds SQLite's write lock, so the tickets of one store ascend in commit order. Only
committed transactions enter the ledger.
"""

import itertools
import threading

from shared.waiting import Failure

#: The state of a row that was deleted.
DELETED = None


class Ledger:
    """The acknowledged writes of one store."""

    def __init__(self):
        self._lock = threading.Lock()
        self._tickets = itertools.count(1)
        self._states = {}
        self.transactions = 0
        self.changes = 0

    def ticket(self):
        """The place of a transaction in the commit order. Call it after BEGIN IMMEDIATE."""
        return next(self._tickets)

    def acknowledge(self, ticket, states, changes):
        """Enters the writes of a committed transaction: a dictionary from a hashable key to its state, or DELETED."""
        with self._lock:
            self.transactions += 1
            self.changes += changes
            for key, state in states.items():
                if key not in self._states or self._states[key][0] < ticket:
                    self._states[key] = (ticket, state)

    def states(self):
        """The last acknowledged state of each key."""
        with self._lock:
            return {key: state for key, (_, state) in self._states.items()}


def check(where, actual, ledgers, original=None):
    """Expects that `actual` (a dictionary from key to state) is `original` with all acknowledged writes.

    A key that one store wrote has that store's last state. A key that several stores wrote has the last state of one of
    them, and is deleted if one of them deleted it. A key that no store wrote is unchanged.
    """
    candidates = {key: [state] for key, state in (original or {}).items()}
    written = {}
    for ledger in ledgers:
        for key, state in ledger.states().items():
            written.setdefault(key, []).append(state)
    candidates.update(written)
    problems = []
    for key, states in candidates.items():
        found = actual.get(key, DELETED)
        if DELETED in states:
            if found is not DELETED:
                problems.append(f"{key} was deleted, but exists: {found!r}")
        elif found is DELETED:
            problems.append(f"{key} is lost; acknowledged: {states!r}")
        elif found not in states:
            problems.append(f"{key} is {found!r}; acknowledged: {states!r}")
    problems += [f"{key} exists, but no writer wrote it: {actual[key]!r}" for key in actual.keys() - candidates.keys()]
    if problems:
        shown = "\n  ".join(sorted(problems)[:10])
        raise Failure(f"{where}: {len(problems)} of {len(written)} acknowledged writes are wrong\n  {shown}")
