"""`gradveil transforms`: list the catalogue, look at what it does, apply a policy to stored images."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gradveil import data
from gradveil.cli.image_choice import choose_images
from gradveil.cli.options import (
    WHAT,
    AsJson,
    DataName,
    Overwrite,
    Quiet,
    Root,
    Seed,
    make_console,
    print_json,
)
from gradveil.cli.progress import progress_bar
from gradveil.errors import printable
from gradveil.reports import draw_catalogue, draw_policies
from gradveil.results import PRIVATE, record, to_json, write_file
from gradveil.rng import generator
from gradveil.stops import say_on_stop
from gradveil.transforms import Catalogue, PolicySet, Transform, find_catalogue, parse_policy

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
Images = Annotated[
    str,
    typer.Option("--images", help="Test images to draw: how many, or their places, as in 3,14.", rich_help_panel=WHAT),
]
In = Annotated[Path, typer.Argument(metavar="IN", help="A folder of images, an .npz file or an idx file.")]
To = Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or a new file of the same kind.")]


@app.callback()
def show(
    context: typer.Context,
    catalogue: CatalogueName = "v1",
    policy: PolicyText = None,
    sheet: Sheet = None,
    data_set: DataName = SAMPLE,
    root: Root = None,
    images: Images = "4",
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
        draw_sheet(sheet, chosen, policies, data.load(data_set, root), images, seed)
    if as_json:
        named = chosen if policies is None else policies.catalogue
        settings = {"catalogue": named.name, "policy": policies and str(policies), "seed": seed}
        print_json(record("transforms", settings, make_figures(chosen, policies)))
        return
    console = make_console(quiet, as_json)
    console.print(list_catalogue(chosen) if policies is None else list_steps(policies))
    if sheet is not None:
        console.print(f"drawn: {printable(str(sheet))}", soft_wrap=True, markup=False)


def draw_sheet(
    path: Path, catalogue: Catalogue, policies: PolicySet | None, loaded: data.DataSet, images: str, seed: int
) -> None:
    chosen = loaded.test.images[list(choose_images(images, loaded, seed))]
    if policies is None:
        write_file(path, draw_catalogue(catalogue, chosen), PRIVATE)
    else:
        write_file(path, draw_policies(policies, chosen, generator(seed, "sheet")), PRIVATE)


def list_catalogue(catalogue: Catalogue) -> Table:
    table = Table("index", "operation", "level", "magnitude", "the same as", title=f"catalogue {catalogue.name}")
    first: dict[str, int] = {}
    for index, transform in enumerate(catalogue.transforms):
        earlier = first.setdefault(transform.function, index)
        same = "changes nothing" if transform.is_identity else "" if earlier == index else str(earlier)
        table.add_row(str(index), transform.operation.name, str(transform.level), describe_magnitude(transform), same)
    return table


def list_steps(policies: PolicySet) -> Table:
    table = Table("policy", "step", "index", "operation", "level", "magnitude", title=str(policies))
    for policy in policies.policies:
        for step, (index, transform) in enumerate(zip(policy.indices, policy.transforms, strict=True), start=1):
            name = policy.text if step == 1 else ""
            table.add_row(
                name,
                str(step),
                str(index),
                transform.operation.name,
                str(transform.level),
                describe_magnitude(transform),
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


def describe_magnitude(transform: Transform) -> str:
    """Write the magnitude of a transform in the unit of its operation."""
    if not transform.operation.has_levels:
        return ""
    sign = "±" if transform.draws_sign else ""
    name = transform.operation.name.rstrip("XY")
    if name in UNITS:
        return UNITS[name](transform.magnitude, sign)
    return f"factor 1 {sign or '+'} {transform.magnitude:.3f}"


def make_figures(catalogue: Catalogue, policies: PolicySet | None) -> dict[str, Any]:
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
    say_on_stop(lambda: f"{target} is not complete: run it again with --overwrite")
    with progress_bar(console) as progress:
        counts = data.transform_stored(source, target, policies, seed, overwrite, progress)
    settings = {"source": str(source), "target": str(target), "policy": str(policies), "seed": seed}
    done = record("transforms", settings, counts)
    write_file(
        target / "transforms.json" if source.is_dir() else target.with_name(f"{target.name}.json"), to_json(done)
    )
    if as_json:
        print_json(done)
    left_out = f"; files that are no images, left out: {counts['other_files']:,}" if counts.get("other_files") else ""
    console.print(
        f"{policies}: {counts['images']:,} images in {printable(str(target))}{left_out}", soft_wrap=True, markup=False
    )
