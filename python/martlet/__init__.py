"""Martlet for Python: sync SQLite databases between devices through a Kafka topic.

A program keeps using `sqlite3`, or whatever it uses. This package runs the `martlet` command for it:

    import martlet

    martlet.attach("shop.sqlite", publish_existing=True)
    for transaction in martlet.changes("shop.sqlite", cursor="news", author=martlet.SYNC_AUTHOR):
        for change in transaction.changes:
            print(transaction.origin.name, change.kind, change.entity, change.values)

It finds the command in the environment variable MARTLET_BINARY, in the package (a wheel may contain it), or on the PATH.
"""

from pkgutil import extend_path

# Code that is generated from Martlet's protocol buffers is in packages such as `martlet.v1`, in other folders.
__path__ = extend_path(__path__, __name__)

from martlet._changes import Changes, changes  # noqa: E402
from martlet._commands import attach, status, wait  # noqa: E402
from martlet._errors import CommandMissing, Error, ReloadNeeded, UsageError, WaitTimeout  # noqa: E402
from martlet._history import (  # noqa: E402
    SYNC_AUTHOR, Change, Identity, Origin, RawText, Reference, Transaction, Value)

__all__ = [
    "SYNC_AUTHOR", "Change", "Changes", "CommandMissing", "Error", "Identity", "Origin", "RawText", "Reference",
    "ReloadNeeded", "Transaction", "UsageError", "Value", "WaitTimeout", "attach", "changes", "status", "wait",
]
__version__ = "0.1.0"
