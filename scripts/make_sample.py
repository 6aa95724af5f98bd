"""Make the bundled sample from the official Fashion-MNIST idx files.

    python scripts/make_sample.py FOLDER

FOLDER holds the four official `*-ubyte.gz` files (Debian's package `dataset-fashion-mnist` puts them into
/usr/share/datasets/fashion-mnist). The choice is balanced over the classes and comes from one seed, and the archive
is written with fixed time stamps, so the same files give the same bytes and the same SHA-256.
"""

import gzip
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

SEED = 2021
COUNTS = {"train": 5000, "test": 1000}
OFFICIAL = {"train": "train", "test": "t10k"}
TARGET = Path(__file__).parent.parent / "src/gradveil/data/sample/fashion-mnist-sample.npz"


def read_idx(path: Path) -> np.ndarray:
    content = gzip.decompress(path.read_bytes())
    dimensions = content[3]
    shape = np.frombuffer(content, ">i4", dimensions, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def choose(labels: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """Choose the same number of images from each class, in their official order."""
    classes = np.unique(labels)
    chosen = [
        generator.choice(np.flatnonzero(labels == name), count // len(classes), replace=False) for name in classes
    ]
    return np.sort(np.concatenate(chosen))


def main() -> None:
    folder = Path(sys.argv[1])
    generator = np.random.default_rng(SEED)
    arrays: dict[str, np.ndarray] = {}
    for split, count in COUNTS.items():
        labels = read_idx(folder / f"{OFFICIAL[split]}-labels-idx1-ubyte.gz")
        images = read_idx(folder / f"{OFFICIAL[split]}-images-idx3-ubyte.gz")
        indices = choose(labels, count, generator)
        arrays |= {
            f"{split}_images": images[indices],
            f"{split}_labels": labels[indices],
            f"{split}_indices": indices.astype(np.int32),
        }
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue(), zipfile.ZIP_DEFLATED, 9)
    content = TARGET.read_bytes()
    print(f"{TARGET.name}: {len(content):,} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
