"""Runs the command that the wheel contains: `python3 -m martlet`, and the script `martlet`."""

import os
import sys

from martlet import _command


def main() -> None:
    """Replaces this process by the command."""
    # Not the one on the PATH: that may be this script.
    path = os.environ.get("MARTLET_BINARY") or _command.packaged()
    if path is None:
        sys.exit("This package does not contain the martlet command: set MARTLET_BINARY to its path.")
    os.execv(path, ["martlet", *sys.argv[1:]])


if __name__ == "__main__":
    main()
