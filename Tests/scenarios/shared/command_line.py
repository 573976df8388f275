"""What command lines of the suite have in common."""

import argparse
import pathlib

from shared.repository import ROOT


def make_parser(description):
    """A parser that understands `--binary`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / ".build" / "release" / "martlet")
    return parser


def add_pictures(parser):
    parser.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="where pictures go (default: none are taken)")


def parse_names(parser, kind, known):
    """The arguments, with `names` of what is run. Ends the program where one isn't known."""
    parser.add_argument("names", nargs="*", metavar=kind, help=", ".join(known))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no {kind} {', '.join(unknown)}; there are: {', '.join(known)}")
    return arguments


def expect_binary(parser, arguments):
    """Ends the program where there is no binary."""
    if not arguments.binary.exists():
        parser.error(f"no {arguments.binary}: make release builds it")
