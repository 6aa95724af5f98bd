"""Records of commands whose answer is a table: kept in a folder if one is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from gradveil.cli.options import print_path
from gradveil.folders import claimed_folder
from gradveil.results import to_json, write_file


def keep_record(out: Path | None, overwrite: bool, written: Mapping[str, Any], console: Console) -> None:
    """Write `DIR/<command>.json`, and say where it is; without a folder nothing is kept."""
    if out is None:
        return
    command = str(written["command"])
    with claimed_folder(out, command, overwrite) as folder:
        write_file(folder / f"{command}.json", to_json(written))
    print_path(console, out / f"{command}.json")
