"""Where the files of this repository are."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
