"""Write small files in the formats of the official data sets, byte for byte as their makers did."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def random_pixels(*shape: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def python2_pickle(value: object) -> bytes:
    """Pickle as Python 2 did with protocol 2, when the CIFAR archives were made."""
    return b"\x80\x02" + python2_operations(value) + b"."


def python2_operations(value: Any) -> bytes:
    match value:
        case None:
            return b"N"
        case int():
            return b"J" + struct.pack("<i", value)
        case str() | bytes():
            content = value.encode("latin1") if isinstance(value, str) else value
            return b"T" + struct.pack("<i", len(content)) + content
        case tuple():
            return b"(" + b"".join(map(python2_operations, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2_operations, value)) + b"e"
        case dict():
            pairs = (python2_operations(key) + python2_operations(item) for key, item in value.items())
            return b"}(" + b"".join(pairs) + b"u"
        case np.ndarray():
            by_columns = int(not value.flags.c_contiguous)
            empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2_operations((0,)) + b"U\x01btR"
            kind = b"cnumpy\ndtype\n" + python2_operations(("u1", 0, 1)) + b"R"
            kind += python2_operations((3, "|", None, None, None, -1, -1, 0)) + b"b"
            state = python2_operations(1) + python2_operations(value.shape) + kind + python2_operations(by_columns)
            return empty + b"(" + state + python2_operations(value.tobytes("A")) + b"tb"
    raise TypeError(type(value))


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def write_zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def write_folder(path: Path, members: dict[str, bytes]) -> None:
    for name, content in members.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def write_idx(path: Path, values: Pixels) -> None:
    """Write an idx file, compressed if its name ends so."""
    content = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def picture(*shape: int, seed: int = 0) -> Image.Image:
    """Draw a random image, grey for H×W and colour for H×W×3."""
    return Image.fromarray(random_pixels(*shape, seed=seed))
