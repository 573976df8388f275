#!/usr/bin/env python3
"""Checks that each target declares what its files import: targets of the package, and products of others.

The build checks targets alone: a product that some lower target declares can be imported without being listed. Prints each
import that Package.swift doesn't list, and each product that it lists for nothing, and exits with 1 if there is any.
"""

import re
import sys

from graph import IMPORT, ROOT as SOURCES

ROOT = SOURCES.parent
PRODUCT = re.compile(r'\.product\(name: "([\w-]+)"')
PATH = re.compile(r'path: "([^"]+)"')


def targets(manifest):
    """The targets of Package.swift: name, folder, and the names of the targets and products that it lists."""
    text = manifest[manifest.index("    targets: ["):]
    starts = [match for match in re.finditer(
        r'^        \.(target|executableTarget|testTarget|macro)\(\s*name: "([\w-]+)"', text, re.MULTILINE)]
    for match, following in zip(starts, starts[1:] + [None]):
        block = text[match.end():following.start() if following else len(text)]
        name = match.group(2)
        folder = PATH.search(block)
        default = "Tests" if match.group(1) == "testTarget" else "Sources"
        dependencies = block[block.find("dependencies: ["):] if "dependencies: [" in block else ""
        listed = set(re.findall(r'\.product\(name: "([\w-]+)"', dependencies))
        listed |= set(re.findall(r'\.target\(name: "([\w-]+)"', dependencies))
        listed |= set(re.findall(r'(?<=[\[,\s])"([A-Za-z][\w-]*)"(?=[,\]\s])', dependencies))
        yield name, ROOT / (folder.group(1) if folder else f"{default}/{name}"), listed


def main():
    manifest = (ROOT / "Package.swift").read_text()
    known = list(targets(manifest))
    # A product has the name of its module.
    modules = {name for name, _, _ in known} | set(PRODUCT.findall(manifest))
    modules |= set(re.findall(r'\.systemLibrary\(\s*name: "(\w+)"', manifest))
    findings = []
    for name, folder, listed in known:
        imported = set()
        files = sorted(folder.rglob("*.swift"))
        for path in files:
            for module in IMPORT.findall(path.read_text()):
                imported.add(module)
                if module in modules and module not in listed and module != name:
                    findings.append(
                        f"{path.relative_to(ROOT)} imports {module}, which Package.swift does not list for {name}")
        # C targets import nothing by name.
        unused = listed & set(PRODUCT.findall(manifest)) - imported if files else set()
        for product in sorted(unused):
            findings.append(f"Package.swift lists {product} for {name}, which imports it nowhere")
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
