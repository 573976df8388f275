#!/usr/bin/env python3
"""Prints how the parts of the sources depend on each other, and where they do so in a circle.

A part is a folder of a target: a file depends on another one where it names a type that is declared there. With --targets,
a part is a whole target, and depends on those that its files import. Usage: graph.py [--targets] [--circles] [TARGET ...]
It does not see which file's extension declares a function.
"""

import argparse
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent / "Sources"
DECLARATION = re.compile(
    r"^(?:@\w+(?:\([^)]*\))? )*(?:(?:public|package|internal|final|indirect|open) )*"
    r"(?:struct|class|enum|protocol|actor|typealias) (\w+)",
    re.MULTILINE,
)
STRING = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"')
COMMENT = re.compile(r"//.*|/\*(?:.|\n)*?\*/")
WORD = re.compile(r"\b[A-Z]\w*")
IMPORT = re.compile(r"^(?:@\w+ )*(?:public |package |internal )?import (\w+)", re.MULTILINE)


def read(path):
    return STRING.sub('""', COMMENT.sub("", path.read_text()))


def part_of(path, whole_targets):
    parts = path.relative_to(ROOT).parts
    return parts[0] if whole_targets or len(parts) < 3 else "/".join(parts[:2])


def components(graph):
    """The strongly connected components, by Tarjan's algorithm (SIAM Journal on Computing, 1972)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                other = stack.pop()
                on_stack.discard(other)
                component.append(other)
                if other == node:
                    break
            found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--targets", action="store_true", help="whole targets instead of folders")
    arguments.add_argument("--circles", action="store_true", help="print the circles alone, and nothing if there are none")
    arguments.add_argument("--why", nargs=2, metavar=("FROM", "TO"), help="say which files make one part depend on another")
    arguments.add_argument("only", nargs="*", help="targets to look at; all by default")
    options = arguments.parse_args()

    texts = {}
    for path in sorted(ROOT.rglob("*.swift")):
        if options.only and path.relative_to(ROOT).parts[0] not in options.only:
            continue
        texts[path] = read(path)
    lines = collections.Counter()
    homes = collections.defaultdict(set)
    for path, text in texts.items():
        part = part_of(path, options.targets)
        if not path.name.endswith(".pb.swift"):
            lines[part] += path.read_text().count("\n")
        for name in DECLARATION.findall(text):
            homes[name].add(path)
    # A name that several files declare says nothing.
    home = {name: next(iter(paths)) for name, paths in homes.items() if len({part_of(p, options.targets) for p in paths}) == 1}

    def dependencies(text):
        """The parts that a file depends on, each with the reason."""
        if options.targets:
            return [(name, f"import {name}") for name in set(IMPORT.findall(text)) if (ROOT / name).is_dir()]
        named = [(word, home[word]) for word in set(WORD.findall(text)) if word in home]
        return [(part_of(path, False), f"{word} ({path.relative_to(ROOT)})") for word, path in named]

    graph = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        part = part_of(path, options.targets)
        graph[part] += collections.Counter()
        for other, reason in dependencies(text):
            if other == part:
                continue
            graph[part][other] += 1
            if options.why == [part, other]:
                print(f"{path.relative_to(ROOT)}: {reason}")
    if options.why:
        return

    for part in [] if options.circles else sorted(graph):
        print(f"{part} ({lines[part]} lines): {', '.join(f'{o} {n}' for o, n in graph[part].most_common())}")
    circles = [c for c in components(graph) if len(c) > 1]
    total = sum(lines.values())
    for circle in circles:
        count = sum(lines[p] for p in circle)
        print(f"circle: {len(circle)} parts, {count} lines, {100 * count // total} %: {', '.join(circle)}")
    if not options.circles:
        print(f"{len(graph)} parts, {total} lines, {len(circles)} circles")


if __name__ == "__main__":
    main()
