"""Every format that is read, with a valid example, a way to damage it, and the reader that must survive it."""

import io
import json
import os
import struct
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image

from gradveil import data
from gradveil.attacks import find_attack
from gradveil.audit import AuditSettings
from gradveil.capsule import read_capsule, read_round_number, read_truth
from gradveil.cli.policy_files import read_arm, read_policy
from gradveil.cli.report import draw_one
from gradveil.data.archives import open_container
from gradveil.data.cifar import parse_pickle
from gradveil.data.fashion_mnist import parse_idx
from gradveil.defences import parse_arm
from gradveil.federated import FederatedSettings
from gradveil.inspection import choose_images, inspect_model
from gradveil.journal import Journal
from gradveil.losses import parse_loss
from gradveil.models import ModelSpec
from gradveil.results import seal
from gradveil.rng import generator
from gradveil.search import SearchSettings, make_status, read_records
from gradveil.training import TrainingSettings, load_checkpoint, parse_phase, save_checkpoint
from gradveil.transforms import from_record, parse_policy
from gradveil.types import LocalTraining
from tests.data.official_files import python2_pickle, random_pixels, write_tar
from tests.faults.mutations import damaged_bytes, damaged_record, odd_texts, reseal
from tests.test_capsule import written

ROOT = Path(__file__).parents[2]
SPEC = ModelSpec("lenet", (1, 12, 12), 3, (0.5,), (0.5,))
Draw = Callable[[SearchStrategy[Any]], Any]


class SilentDifferenceError(Exception):
    """A damaged file was read without a word, and gave something else."""


class Reader(ABC):
    """One class of inputs; `attempt` damages one and reads it. What it raises must be an error of gradveil's."""

    name: str

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Write what all attempts share."""

    @abstractmethod
    def attempt(self, draw: Draw, folder: Path) -> None:
        """Draw one malformed input and read it."""


@final
class Texts(Reader):
    """A grammar."""

    def __init__(self, name: str, read: Callable[[str], object], *examples: str) -> None:
        self.name, self.read, self.examples = name, read, examples

    def attempt(self, draw: Draw, folder: Path) -> None:  # noqa: ARG002
        self.read(draw(odd_texts(*self.examples)))


@final
class Records(Reader):
    """Settings that come back from JSON."""

    def __init__(self, name: str, read: Callable[[dict[str, Any]], object], record: dict[str, Any]) -> None:
        self.name, self.read, self.record = name, read, json.loads(json.dumps(record))

    def attempt(self, draw: Draw, folder: Path) -> None:  # noqa: ARG002
        self.read(draw(damaged_record(self.record)))


class Damaged(Reader):
    """A file whose bytes are damaged."""

    file: str
    content: bytes

    def attempt(self, draw: Draw, folder: Path) -> None:
        (folder / self.file).write_bytes(draw(damaged_bytes(self.content)))
        self.read(folder)

    @abstractmethod
    def read(self, folder: Path) -> None:
        """Read the damaged file."""


@final
class NpzBytes(Damaged):
    """Damaged archives of arrays, or of JPEG bytes."""

    file = "data.npz"

    def __init__(self, jpeg: bool) -> None:
        self.name = f"npz: damaged bytes, {'JPEG' if jpeg else 'arrays'}"
        picture = io.BytesIO()
        Image.fromarray(random_pixels(9, 9, 3)).save(picture, "JPEG")
        stored = np.frombuffer(picture.getvalue() * 4, np.uint8)
        arrays: dict[str, Any] = {"jpeg": stored, "offsets": np.arange(5) * (len(stored) // 4)}
        arrays = arrays if jpeg else {"images": random_pixels(4, 8, 8)}
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, labels=np.arange(4) % 2, class_names=np.array(["a", "b"]), **arrays)
        self.content = content.getvalue()

    def read(self, folder: Path) -> None:
        data.load(f"npz:{folder / self.file}")


@final
class NpzArrays(Reader):
    """Whole archives with arrays of odd types, shapes and names, and headers that say anything."""

    name = "npz: odd arrays and headers"
    names = ("images", "labels", "jpeg", "offsets", "class_names", "train_images", "train_labels", "test_images")
    kinds = ("|u1", "<i8", "<f4", "<U3", "|S2", "|O", "<M8[s]", "|V4", "<c8", "|b1", "(2,)<i4", "<u8", "x", "\x00")

    def attempt(self, draw: Draw, folder: Path) -> None:
        path = folder / "odd.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in draw(st.lists(st.sampled_from(self.names), max_size=4, unique=True)):
                shape = tuple(draw(st.lists(st.sampled_from((0, 1, 2, 3, 4, -1, 2**40)), max_size=4)))
                header = repr({"descr": draw(st.sampled_from(self.kinds)), "fortran_order": False, "shape": shape})
                if draw(st.integers(0, 9)) == 0:
                    header = draw(st.text(max_size=20))
                text = header.encode("latin1", "replace") + b"\n"
                values = draw(st.binary(max_size=4)) * draw(st.sampled_from((0, 1, 2, 6, 48)))
                archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + values)
        data.load(f"npz:{path}")


@final
class Folders(Reader):
    """Class folders with odd names, links, pipes, devices and damaged images."""

    name = "folder: odd names and files"

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        picture = io.BytesIO()
        Image.fromarray(random_pixels(9, 9, 3)).save(picture, "PNG")
        self.picture = picture.getvalue()

    def attempt(self, draw: Draw, folder: Path) -> None:
        place = Path(tempfile.mkdtemp(dir=folder))
        alphabet = st.characters(exclude_characters="/\x00", codec="utf-8") | st.sampled_from("²\n\x1b")
        if draw(st.integers(0, 9)) == 0:
            alphabet = alphabet | st.just("\udce9")
        for name in draw(st.lists(st.text(alphabet, min_size=1, max_size=8), min_size=1, max_size=3)):
            if name not in (".", ".."):
                (place / name).mkdir(parents=True, exist_ok=True)
                for number in range(draw(st.integers(1, 3))):
                    self.make(draw, place / name / f"{draw(st.text(alphabet, max_size=6))}{number}.png")
        data.load(f"folder:{place}" + draw(st.sampled_from(("", ",skip-broken", ",size=8", ",channels=1,skip-broken"))))

    def make(self, draw: Draw, path: Path) -> None:
        if os.path.lexists(path):
            # It may be a pipe, at which the harness itself would wait.
            path.unlink()
        match draw(st.sampled_from((*["whole"] * 12, "damaged", "empty", "pipe", "device", "dangling", "loop"))):
            case "whole":
                path.write_bytes(self.picture)
            case "damaged":
                path.write_bytes(draw(damaged_bytes(self.picture)))
            case "empty":
                path.touch()
            case "pipe":
                os.mkfifo(path)
            case kind:
                path.symlink_to({"device": "/dev/zero", "loop": str(path)}.get(kind, "/nowhere"))


@final
class Pictures(Reader):
    """Damaged images in the usual formats."""

    name = "images: damaged bytes"
    formats = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP", "ICO", "TGA")

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.contents = []
        for form in self.formats:
            content = io.BytesIO()
            Image.fromarray(random_pixels(16, 16, 3)).save(content, form)
            self.contents.append(content.getvalue())

    def attempt(self, draw: Draw, folder: Path) -> None:
        place = folder / "pictures"
        for name in ("a", "b"):
            (place / name).mkdir(parents=True, exist_ok=True)
            (place / name / "0.png").write_bytes(self.contents[0])
        (place / "a" / "1.png").write_bytes(draw(damaged_bytes(draw(st.sampled_from(self.contents)))))
        data.load(f"folder:{place},size=8")


@final
class Idx(Damaged):
    """Damaged idx files."""

    name, file = "idx: damaged bytes", "images"

    def __init__(self) -> None:
        self.content = bytes([0, 0, 8, 3]) + struct.pack(">3I", 4, 5, 5) + random_pixels(4, 5, 5).tobytes()

    def read(self, folder: Path) -> None:
        parse_idx((folder / self.file).read_bytes(), 3, folder / self.file)


@final
class CifarPickles(Damaged):
    """Damaged pickles of CIFAR's python form."""

    name, file = "CIFAR pickle: damaged bytes", "data_batch_1"

    def __init__(self) -> None:
        self.content = python2_pickle({"data": random_pixels(2, 3072), "labels": [0, 1], "batch_label": "one"})

    def read(self, folder: Path) -> None:
        parse_pickle((folder / self.file).read_bytes(), self.file, label="labels")


@final
class Archives(Damaged):
    """Damaged tar and zip archives."""

    def __init__(self, form: str) -> None:
        self.name, self.file = f"{form}: damaged bytes", f"archive.{form}"

    def prepare(self, folder: Path) -> None:
        path = folder / self.file
        members = {"folder/a.bin": random_pixels(50).tobytes(), "folder/b.txt": b"words\n"}
        if self.file.endswith("zip"):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
        else:
            write_tar(path, members)
        self.content = path.read_bytes()

    def read(self, folder: Path) -> None:
        container = open_container(folder / self.file, 10_000)
        for name in container.names():
            container.read(name)


@final
class Checkpoints(Reader):
    """Damaged weights or descriptions; with `sealed`, descriptions with odd values and a seal that holds."""

    def __init__(self, sealed: bool) -> None:
        self.sealed = sealed
        self.name = f"checkpoint: {'odd values, sealed' if sealed else 'damaged bytes'}"

    def prepare(self, folder: Path) -> None:
        model = SPEC.build(generator(0, "model"))
        self.weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        made = {"settings": TrainingSettings().to_record(), "model_defences": [], "seed": 0}
        save_checkpoint(folder / "model.safetensors", self.weights, SPEC, made)
        self.files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "model.json")}
        self.record = json.loads(self.files["model.json"])
        self.made = self.record["made"]

    def attempt(self, draw: Draw, folder: Path) -> None:
        files = dict(self.files)
        if self.sealed:
            files["model.json"] = reseal(draw(damaged_record(self.record)))
        else:
            name = draw(st.sampled_from(list(files)))
            files[name] = draw(damaged_bytes(files[name]))
        for name, content in files.items():
            (folder / name).write_bytes(content)
        loaded = load_checkpoint(folder / "model.safetensors")
        loaded.build()
        same = all(torch.equal(loaded.weights[key], tensor) for key, tensor in self.weights.items())
        if not self.sealed and not (same and loaded.spec == SPEC and loaded.made == self.made):
            raise SilentDifferenceError("the checkpoint differs from what was written")
        assert loaded.loss


@final
class Capsules(Reader):
    """Damaged tensors, descriptions or truths; with `sealed`, descriptions with odd values and a seal that holds."""

    def __init__(self, sealed: bool) -> None:
        self.sealed = sealed
        self.name = f"capsule: {'odd values, sealed' if sealed else 'damaged bytes'}"

    def prepare(self, folder: Path) -> None:
        self.paths = written(folder)
        places = (self.paths.tensors, self.paths.description, self.paths.truth)
        self.files = {path: path.read_bytes() for path in places}
        self.record = json.loads(self.files[self.paths.description])
        self.before = self.describe()

    def describe(self) -> object:
        captured, truths = read_capsule(self.paths.tensors), read_truth(self.paths.tensors)
        captured.task(None, "cpu")
        sums = {name: float(tensor.double().sum()) for name, tensor in captured.update.tensors.items()}
        return captured.spec, captured.update.local, sums, [(one.label, float(one.original.sum())) for one in truths]

    def attempt(self, draw: Draw, folder: Path) -> None:  # noqa: ARG002
        files = dict(self.files)
        if self.sealed:
            files[self.paths.description] = reseal(draw(damaged_record(self.record)))
        else:
            path = draw(st.sampled_from(list(files)))
            files[path] = draw(damaged_bytes(files[path]))
        for path, content in files.items():
            path.write_bytes(content)
        read_round_number(self.paths.tensors)
        if self.describe() != self.before and not self.sealed:
            raise SilentDifferenceError("the capsule differs from what was written")


@final
class Journals(Reader):
    """Damaged lines; a torn last line counts as never written."""

    name = "journal: damaged bytes"
    entries = ({"trial": {"part": "a", "seed": 1}, "value": 1.5}, {"trial": {"part": "b", "seed": 2}, "value": None})

    def prepare(self, folder: Path) -> None:
        journal = Journal(folder / "journal.jsonl")
        for entry in self.entries:
            journal.append(entry)
        self.content = journal.path.read_bytes()

    def attempt(self, draw: Draw, folder: Path) -> None:
        odd = st.sampled_from(
            (b"5\n", b"null\n", b"[]\n", b"[" * 3000 + b"]" * 3000 + b"\n", b'"\\ud800"\n', b"\xff\n", b"{}\n")
        )
        damaged = draw(damaged_bytes(self.content) | odd)
        (folder / "journal.jsonl").write_bytes(damaged)
        if any(entry not in self.entries for entry in Journal(folder / "journal.jsonl").read()):
            raise SilentDifferenceError("a line differs from what was written")


@final
class Searches(Reader):
    """Lines of a search with odd values and a seal that holds, for `search --status`."""

    name = "search journal: odd values, sealed"

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.lines: list[dict[str, Any]] = [
            {"study": SearchSettings().to_record()},
            {"privacy": "lobatto-7", "places": [0, 1], "scores": {"3-1-7": [0.5, None]}, "seconds": 1.0},
            {"accuracy": {"3-1-7": [-1.5, None]}, "seconds": 2.0},
            {"event": "round", "number": 1, "of": 2},
            {"validation": {"best": 1}, "policy": "3-1-7"},
        ]

    def attempt(self, draw: Draw, folder: Path) -> None:
        place = draw(st.integers(0, len(self.lines) - 1))
        lines = [*map(seal, self.lines[:place]), *map(seal, self.lines[place + 1 :])]
        changed = reseal(draw(damaged_record(self.lines[place])))
        (folder / "journal.jsonl").write_bytes(
            b"\n".join([*(json.dumps(line).encode() for line in lines), changed, b""])
        )
        assert make_status(read_records(folder)).headline


@final
class Policies(Reader):
    """The policies of a search with odd values, sealed or not."""

    name = "policies.json: odd values"

    def attempt(self, draw: Draw, folder: Path) -> None:
        entry = {"catalogue": "v1", "policy": "3-1-7"}
        changed = draw(damaged_record({"hybrid": entry, "policies": [entry]}))
        (folder / "policies.json").write_bytes(reseal(changed) if draw(st.booleans()) else json.dumps(changed).encode())
        read_policy(f"{folder / 'policies.json'}{draw(st.sampled_from(('', '#1', '#2', '#²', '#')))}")


@final
class Audits(Reader):
    """The record of an audit with odd values and a seal that holds, for `gradveil report`."""

    name = "audit.json: odd values, sealed"

    def prepare(self, folder: Path) -> None:  # noqa: ARG002
        self.record = json.loads((ROOT / "docs" / "measured" / "audit" / "seed-0.json").read_bytes())

    def attempt(self, draw: Draw, folder: Path) -> None:
        (folder / "report.html").unlink(missing_ok=True)
        (folder / "audit.json").write_bytes(reseal(draw(damaged_record(self.record))))
        draw_one(folder, None, "none")


@final
class Plants(Reader):
    """Models with odd weights, for `gradveil inspect`."""

    name = "inspect: odd weights"

    def attempt(self, draw: Draw, folder: Path) -> None:  # noqa: ARG002
        model = SPEC.build(generator(0, "model"))
        for parameter in model.parameters():
            with torch.no_grad():
                match draw(st.sampled_from(("keep", "keep", "zero", "one", "huge", "tiny", "row"))):
                    case "zero":
                        parameter.zero_()
                    case "one":
                        parameter.fill_(1.0)
                    case "huge":
                        parameter.mul_(1e18)
                    case "tiny":
                        parameter.mul_(1e-30)
                    case "row":
                        parameter.copy_(parameter[:1].expand_as(parameter).clone())
        found = inspect_model(model, parse_loss("cross-entropy"), choose_images(SPEC, None)[:4])
        json.dumps(found.to_record(), allow_nan=False)


def load_named(text: str) -> object:
    return data.load(text, root=Path("/nowhere"))


def readers() -> list[Reader]:
    """List all classes of inputs."""
    return [
        Texts("policy", parse_policy, "3-1-7", "43-18-18", "+", "none", "v1/", "rotate"),
        Texts(
            "arm and defence",
            lambda text: parse_arm(read_arm(text)),
            "none",
            "policy:3-1-7",
            "gaussian:1e-3",
            ",no-base",
        ),
        Texts("data specification", load_named, "folder:", "npz:", "cifar100", ",size=8", ",seed=", "~", "/tmp/*"),
        Texts("loss", parse_loss, "cross-entropy", ":smoothing=", "0.1", "nan"),
        Texts("phase", parse_phase, "init", "final", "step-", "epoch-", "3"),
        Texts("attack", find_attack, "standard", "fast", "adam-cosine", ":"),
        Records("model settings", ModelSpec.from_record, SPEC.to_record()),
        Records("training settings", TrainingSettings.from_record, TrainingSettings().to_record()),
        Records("local settings", LocalTraining.from_record, LocalTraining().to_record()),
        Records("audit settings", AuditSettings.from_record, AuditSettings().to_record()),
        Records("search settings", SearchSettings.from_record, SearchSettings().to_record()),
        Records("federated settings", FederatedSettings.from_record, FederatedSettings().to_record()),
        Records("policy record", from_record, {"catalogue": "v1", "policy": "3-1-7+43-18-18"}),
        NpzBytes(jpeg=False),
        NpzBytes(jpeg=True),
        NpzArrays(),
        Folders(),
        Pictures(),
        Idx(),
        CifarPickles(),
        Archives("zip"),
        Archives("tar.gz"),
        Checkpoints(sealed=False),
        Checkpoints(sealed=True),
        Capsules(sealed=False),
        Capsules(sealed=True),
        Journals(),
        Searches(),
        Policies(),
        Audits(),
        Plants(),
    ]
