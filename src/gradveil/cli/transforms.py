"""`gradveil transforms`: list the catalogue, look at what it does, apply a policy to stored images."""

import gzip
import io
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from PIL import Image
from rich.table import Table

from gradveil import data
from gradveil.cli.options import AsJson, Overwrite, Quiet, Seed, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.data.archives import read_file, read_plain
from gradveil.data.fashion_mnist import parse_idx
from gradveil.data.folder import MAX_FILE_BYTES, files_in
from gradveil.data.images import MAX_BYTES, Source, decode
from gradveil.data.npz import ArrayFile
from gradveil.errors import DataError, OutputError, SettingsError
from gradveil.reports.sheet import draw_catalogue, draw_policies
from gradveil.results import claimed_folder, record, to_json, write_file
from gradveil.rng import generator
from gradveil.transforms import Catalogue, PolicySet, Transform, parse_policy, pillow, transform_array, transform_arrays
from gradveil.transforms.catalogue import find_catalogue

SAMPLE = "fashion-mnist-sample"

app = typer.Typer(
    invoke_without_command=True, help="List the transformations, look at what they do, apply a policy to stored images."
)

CatalogueName = Annotated[
    str, typer.Option("--catalogue", help="v1, the papers' own, or wide, with AutoAugment's range.")
]
PolicyText = Annotated[str | None, typer.Option("--policy", help="Show this policy step by step, e.g. 3-1-7.")]
RequiredPolicy = Annotated[str, typer.Option("--policy", help="What to apply, e.g. 3-1-7+43-18-18.")]
Sheet = Annotated[Path | None, typer.Option("--sheet", help="Draw what they do into this PNG file.")]
Data = Annotated[str, typer.Option("--data", help="Whose test images to draw: see 'gradveil data list'.")]
Images = Annotated[int, typer.Option("--images", help="How many images to draw.")]
In = Annotated[Path, typer.Argument(metavar="IN", help="A folder of images, an .npz file or an idx file.")]
To = Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or a new file of the same kind.")]


@app.callback()
def show(
    context: typer.Context,
    catalogue: CatalogueName = "v1",
    policy: PolicyText = None,
    sheet: Sheet = None,
    data_set: Data = SAMPLE,
    images: Images = 4,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """List the catalogue, or show a policy step by step; draw it with --sheet."""
    if context.invoked_subcommand is not None:
        return
    chosen = find_catalogue(catalogue)
    policies = None if policy is None else parse_policy(policy, None if "/" in policy else chosen)
    if sheet is not None:
        draw_sheet(sheet, chosen, policies, data_set, images, seed)
    if as_json:
        named = chosen if policies is None else policies.catalogue
        settings = {"catalogue": named.name, "policy": policies and str(policies), "seed": seed}
        print_json(record("transforms", settings, figures(chosen, policies)))
        return
    console = make_console(quiet, as_json)
    console.print(list_catalogue(chosen) if policies is None else list_steps(policies))
    if sheet is not None:
        console.print(f"drawn: {sheet}", soft_wrap=True, markup=False)


def draw_sheet(
    path: Path, catalogue: Catalogue, policies: PolicySet | None, data_set: str, images: int, seed: int
) -> None:
    if images < 1:
        raise SettingsError(f"--images {images}: draw at least 1")
    chosen = data.load(data_set).test.images[:images]
    if policies is None:
        write_file(path, draw_catalogue(catalogue, chosen))
    else:
        write_file(path, draw_policies(policies, chosen, generator(seed, "sheet")))


def list_catalogue(catalogue: Catalogue) -> Table:
    table = Table("index", "operation", "level", "magnitude", "the same as", title=f"catalogue {catalogue.name}")
    first: dict[str, int] = {}
    for index, transform in enumerate(catalogue.transforms):
        place = first.setdefault(transform.function, index)
        same = "changes nothing" if transform.is_identity else "" if place == index else str(place)
        table.add_row(str(index), transform.operation.name, str(transform.level), describe(transform), same)
    return table


def list_steps(policies: PolicySet) -> Table:
    table = Table("policy", "step", "index", "operation", "level", "magnitude", title=str(policies))
    for policy in policies.policies:
        for step, (index, transform) in enumerate(zip(policy.indices, policy.transforms, strict=True), start=1):
            name = policy.text if step == 1 else ""
            table.add_row(
                name, str(step), str(index), transform.operation.name, str(transform.level), describe(transform)
            )
        if not policy.indices:
            table.add_row(policy.text, "", "", "no transformation", "", "")
    return table


UNITS: dict[str, Callable[[float, str], str]] = {
    "shear": lambda value, sign: f"{sign}{value:.3f} pixels per pixel",
    "translate": lambda value, sign: f"{sign}{value:.1%} of the side",
    "rotate": lambda value, sign: f"{sign}{value:.1f}°",
    "posterize": lambda value, _: f"{round(value)} bits",
    "solarize": lambda value, _: f"from {value:.1f} up",
}


def describe(transform: Transform) -> str:
    """Say how strong a transform is, in the unit of its operation."""
    if not transform.operation.has_levels:
        return ""
    sign = "±" if transform.draws_sign else ""
    name = transform.operation.name.rstrip("XY")
    if name in UNITS:
        return UNITS[name](transform.magnitude, sign)
    return f"factor 1 {sign or '+'} {transform.magnitude:.3f}"


def figures(catalogue: Catalogue, policies: PolicySet | None) -> dict[str, Any]:
    if policies is not None:
        members = [[as_record(transform) for transform in policy.transforms] for policy in policies.policies]
        return {"readable": policies.readable, "draws": len(policies.draws()), "policies": members}
    return {"transforms": [as_record(transform) for transform in catalogue.transforms]}


def as_record(transform: Transform) -> dict[str, Any]:
    return {
        "operation": transform.operation.name,
        "level": transform.level,
        "magnitude": transform.magnitude,
        "draws_sign": transform.draws_sign,
        "function": transform.function,
    }


@app.command("apply")
def apply(
    source: In,
    target: To,
    policy: RequiredPolicy,
    catalogue: CatalogueName = "v1",
    overwrite: Overwrite = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a copy of stored images with every image transformed once.

    Images of a folder keep their names and become PNG files, which lose nothing. A file keeps its form; in an .npz
    file the arrays whose names end in 'images' are transformed.
    """
    policies = parse_policy(policy, None if "/" in policy else find_catalogue(catalogue))
    console = make_console(quiet, as_json)
    if not source.exists():
        raise DataError(f"{source} does not exist: give a folder of images, an .npz file or an idx file")
    work = apply_to_folder if source.is_dir() else apply_to_file
    with progress_bar(console) as progress:
        counts = work(source, target, policies, seed, overwrite, progress)
    settings = {"source": str(source), "target": str(target), "policy": str(policies), "seed": seed}
    done = record("transforms", settings, counts)
    place = target / "transforms.json" if source.is_dir() else target.with_name(f"{target.name}.json")
    write_file(place, to_json(done))
    if as_json:
        print_json(done)
    left_out = f"; files that are no images, left out: {counts['other_files']:,}" if counts.get("other_files") else ""
    console.print(f"{policies}: {counts['images']:,} images in {target}{left_out}", soft_wrap=True, markup=False)


def apply_to_folder(
    source: Path, target: Path, policies: PolicySet, seed: int, overwrite: bool, progress: data.Progress
) -> dict[str, int]:
    """Transform every image at any depth; the draw of an image follows from the seed and its name."""
    if target.resolve().is_relative_to(source.resolve()):
        raise OutputError(f"{target} is within {source}: write the copy somewhere else")
    files = files_in(source)
    pictures = [path for path in files if path.suffix.lower() in Image.registered_extensions()]
    if not pictures:
        raise DataError(f"{source} has no images: give a folder with image files, at any depth")
    targets = plan_targets(source, target, pictures)
    with claimed_folder(target, "transforms", overwrite):
        for number, path in enumerate(pictures, start=1):
            image = decode(Source(str(path), partial(read_file, path, MAX_FILE_BYTES)), None, None)
            name = path.relative_to(source).as_posix()
            write_image(targets[path], transform_image(image, path, policies, seed, name))
            progress("transforming images", number, len(pictures))
    return {"images": len(pictures), "other_files": len(files) - len(pictures)}


def plan_targets(source: Path, target: Path, pictures: list[Path]) -> dict[Path, Path]:
    """Name the PNG file of each image; two that would get one name are refused."""
    planned: dict[Path, Path] = {}
    taken: dict[Path, Path] = {}
    for path in pictures:
        place = (target / path.relative_to(source)).with_suffix(".png")
        if place in taken:
            raise DataError(f"{taken[place]} and {path} would both become {place.name}: rename one of them")
        taken[place] = path
        planned[path] = place
    return planned


def transform_image(image: Image.Image, path: Path, policies: PolicySet, seed: int, name: str) -> Image.Image:
    if min(image.size) < 2:
        raise DataError(f"{path} is {image.width}×{image.height} pixels: both sides must be at least 2; remove it")
    pixels = pillow.to_tensor(image).unsqueeze(0)
    return pillow.to_image(policies.transform(pixels, generator(seed, "offline", name)).squeeze(0))


def write_image(path: Path, image: Image.Image) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    image.save(content, "PNG")
    write_file(path, content.getvalue())


def apply_to_file(
    source: Path, target: Path, policies: PolicySet, seed: int, overwrite: bool, progress: data.Progress
) -> dict[str, int]:
    """Transform the images of one data file."""
    if target.exists() and (not overwrite or target.is_dir() or target.resolve() == source.resolve()):
        raise OutputError(f"{target} exists already: give the name of a new file, or pass --overwrite for another one")
    progress("transforming images", 0, 1)
    if source.suffix == ".npz":
        content, count = apply_to_npz(source, policies, seed)
    elif "idx3-ubyte" in source.name:
        content, count = apply_to_idx(source, policies, seed, target.suffix == ".gz")
    else:
        raise DataError(f"{source} is no folder, no .npz file and no idx3-ubyte file: give one of these")
    write_file(target, content)
    progress("transforming images", 1, 1)
    return {"images": count}


def apply_to_npz(source: Path, policies: PolicySet, seed: int) -> tuple[bytes, int]:
    file = ArrayFile(source)
    arrays = {name: file.read(name) for name in file.members}
    if any(name.endswith("jpeg") for name in arrays):
        raise DataError(f"{source} holds JPEG bytes, which cannot be kept: give a folder of images instead")
    try:
        changed = transform_arrays(arrays, policies, seed)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **changed)
    return content.getvalue(), sum(len(array) for name, array in changed.items() if name.endswith("images"))


def apply_to_idx(source: Path, policies: PolicySet, seed: int, compressed: bool) -> tuple[bytes, int]:
    images = parse_idx(read_plain(source, MAX_BYTES), 3, source)
    changed = transform_array(images, policies, generator(seed, "offline", "images"))
    content = bytes([0, 0, 8, 3]) + struct.pack(">3I", *changed.shape) + changed.tobytes()
    return gzip.compress(content, mtime=0) if compressed else content, len(changed)
