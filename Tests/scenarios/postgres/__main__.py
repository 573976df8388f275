"""Entry point: `python3 Tests/scenarios/postgres`."""

import pathlib
import sys

# Import packages from Tests/scenarios, not modules from this folder.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from postgres.suite import main  # noqa: E402

sys.exit(main())
