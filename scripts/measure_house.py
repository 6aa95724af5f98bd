"""Count files, lines, parameters, modules with a test of their name, and imports of inner modules.

python scripts/measure_house.py [ROOT]
"""

import ast
import sys
from pathlib import Path

from tests.test_layering import ROOMS


def modules(source: Path) -> list[Path]:
    return sorted(path for path in source.rglob("*.py") if not path.name.startswith("__"))


def mirrored(source: Path, tests: Path) -> list[Path]:
    """List the modules that have a test file of their name in the same place."""
    places = [path.relative_to(source) for path in modules(source)]
    return [place for place in places if (tests / place.parent / f"test_{place.name}").exists()]


def longest_parameter_list(source: Path, without: str = "cli") -> tuple[int, str]:
    """Find the function with the most parameters; the command line's are options, and do not count."""
    most = (0, "")
    for path in modules(source):
        if path.relative_to(source).parts[0] == without:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                count = len(node.args.args) + len(node.args.kwonlyargs)
                most = max(most, (count, f"{path.relative_to(source)}:{node.name}"))
    return most


def inner_imports(source: Path) -> tuple[int, int]:
    """Count the imports of another room's inner modules, and of other rooms at all."""
    inner = crossing = 0
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gradveil."):
                parts = node.module.split(".")[1:]
                if parts[0] in ROOMS and parts[0] != room:
                    crossing += 1
                    inner += len(parts) > 1
    return inner, crossing


def main(root: Path) -> None:
    source, tests = root / "src" / "gradveil", root / "tests"
    every = sorted(source.rglob("*.py"))
    text = "\n".join(path.read_text() for path in every)
    inner, crossing = inner_imports(source)
    count, where = longest_parameter_list(source)
    mirror = mirrored(source, tests)
    print(f"files {len(every)}, lines {text.count(chr(10))}")
    print(f"longest parameter list outside cli/ {count} ({where})")
    print(f"modules with a test of their name {len(mirror)} of {len(modules(source))}")
    print(f"imports of inner modules {inner} of {crossing} between rooms")
    print(f"type: ignore {text.count('type: ignore')}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
