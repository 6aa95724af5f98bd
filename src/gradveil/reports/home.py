"""Keep matplotlib out of a home folder that it has not used before."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

SETTING = "MPLCONFIGDIR"


def keep_out_of_home() -> None:
    """Let matplotlib write its list of fonts to a folder that is removed at the end, unless it has a place already.

    Has to be called before matplotlib is imported.
    """
    if os.environ.get(SETTING) or any(folder.exists() for folder in own_folders()):
        return
    folder = tempfile.mkdtemp(prefix="gradveil-matplotlib-")
    os.environ[SETTING] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def own_folders() -> list[Path]:
    """List the folders that matplotlib uses unless it is told otherwise."""
    home = Path.home()
    roots = [os.environ.get("XDG_CONFIG_HOME") or home / ".config", os.environ.get("XDG_CACHE_HOME") or home / ".cache"]
    return [Path(root) / "matplotlib" for root in roots] + [home / ".matplotlib"]
