"""Command-line options that the suites share."""

import argparse
import pathlib

from shared.repository import ROOT


def make_parser(description, build="release"):
    """A parser with the option `--binary`. `build`: the default's configuration."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / ".build" / build / "martlet",
                        help=f"the martlet command (default: .build/{build}/martlet)")
    return parser


def add_pictures(parser):
    parser.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="where to save screenshots (default: none are taken)")


def parse_names(parser, kind, known):
    """Parses the arguments, with the `names` of what to run. Ends the program if one is unknown."""
    parser.add_argument("names", nargs="*", metavar=kind, help=", ".join(known))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no {kind} {', '.join(unknown)}; there are: {', '.join(known)}")
    return arguments


def expect_binary(parser, arguments):
    """Ends the program if the binary doesn't exist."""
    if not arguments.binary.exists():
        parser.error(f"no {arguments.binary}: run make release, or make build for .build/debug/martlet")
