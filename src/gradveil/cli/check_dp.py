"""`gradveil check-dp`: what the differential privacy settings of Flower, NVFlare or Opacus are worth."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gradveil.cli.options import AsJson, OptionalOut, Overwrite, Quiet, make_console, print_json
from gradveil.cli.records import keep_record
from gradveil.errors import SettingsError
from gradveil.privacy import (
    CHANCE,
    Figures,
    GaussianRelease,
    LocalDpMod,
    PrivacyCheck,
    PureRelease,
    Run,
    format_epsilon,
    read_flower,
    read_nvflare,
    read_opacus,
)
from gradveil.results import record

Clip = Annotated[float | None, typer.Option("--clip", help="The norm that an update is clipped to.")]
Sensitivity = Annotated[float | None, typer.Option("--sensitivity", help="The sensitivity that the noise is made for.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="The ε that the noise is made for.")]
Delta = Annotated[float | None, typer.Option("--delta", help="δ; if nobody states it, 1e-5.")]
Rounds = Annotated[int | None, typer.Option("--rounds", help="Rounds of the run.")]
Sampling = Annotated[float | None, typer.Option("--sampling", help="Share of the clients that a round draws.")]
Flower = Annotated[Path | None, typer.Option("--flower", help="A Flower app's pyproject.toml, or a JSON file.")]
NVFlare = Annotated[Path | None, typer.Option("--nvflare", help="An NVFlare job's config_fed_client.json.")]
Opacus = Annotated[Path | None, typer.Option("--opacus", help="A JSON or TOML file of Opacus settings.")]
Weights = Annotated[int | None, typer.Option("--weights", help="With --nvflare: how many values the model sends.")]


def check_dp(
    clip: Clip = None,
    sensitivity: Sensitivity = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rounds: Rounds = None,
    sampling: Sampling = None,
    flower: Flower = None,
    nvflare: NVFlare = None,
    opacus: Opacus = None,
    weights: Weights = None,
    out: OptionalOut = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compute the true ε of differential privacy settings, and list what nothing enforces."""
    numbers = {"clip": clip, "sensitivity": sensitivity, "epsilon": epsilon}
    files = {"flower": flower, "nvflare": nvflare, "opacus": opacus}
    run = Run(rounds, sampling, delta)
    check = find_release(numbers, files, run, weights).check()
    given = {**numbers, "delta": delta, "rounds": rounds, "sampling": sampling, "weights": weights}
    settings = given | {name: path and str(path) for name, path in files.items()}
    written = record("check-dp", settings, check.to_record())
    console = make_console(quiet, as_json)
    if as_json:
        print_json(written)
    render(console, check)
    keep_record(out, overwrite, written, console)


def find_release(
    numbers: dict[str, float | None], files: dict[str, Path | None], run: Run, weights: int | None
) -> GaussianRelease | PureRelease:
    """Describe the release of the one source that was given."""
    given = [name for name, path in files.items() if path is not None]
    stated = [name for name, value in numbers.items() if value is not None]
    if len(given) + bool(stated) != 1:
        raise SettingsError(
            "give one of --flower, --nvflare and --opacus, or --clip, --sensitivity, --epsilon, --delta"
        )
    if weights is not None and given != ["nvflare"]:
        raise SettingsError("--weights is for --nvflare: leave it out")
    if stated:
        return build_local(numbers, run)
    path = files[given[0]]
    assert path is not None
    if given == ["flower"]:
        return read_flower(path, run)
    if run.sampling is not None:
        raise SettingsError(f"--sampling does not go with --{given[0]}: it would not be counted; leave it out")
    return read_opacus(path, run) if given == ["opacus"] else read_nvflare(path, run, weights)


def build_local(numbers: dict[str, float | None], run: Run) -> GaussianRelease:
    """Describe what Flower's LocalDpMod does with numbers from the command line."""
    values = [numbers["clip"], numbers["sensitivity"], numbers["epsilon"], run.delta]
    if any(value is None for value in values):
        raise SettingsError("--clip, --sensitivity, --epsilon and --delta belong together: give all four")
    return LocalDpMod(*(value for value in values if value is not None)).release(run)


def render(console: Console, check: PrivacyCheck) -> None:
    """Print the figures as a table, and the warnings below it."""
    columns = [(check.neighbours, check.figures)]
    if check.replacing is not None:
        columns.append((f"one {check.unit} replaced", check.replacing))
    table = Table("", *(name for name, _ in columns), title=check.mechanism)
    for label, values in list_rows(check, [figures for _, figures in columns]):
        table.add_row(label, *values)
    console.print(table)
    for warning in check.warnings:
        console.print(f"- {warning}", markup=False, highlight=False)


def list_rows(check: PrivacyCheck, columns: list[Figures]) -> list[tuple[str, list[str]]]:
    """List the rows of the table: a label, and a cell for each column."""
    release, each = ("release", "round") if check.unit == "client" else ("step", "step")
    count = f"{check.rounds:,} {each}{'' if check.rounds == 1 else 's'}"
    sampled = "" if check.sampling == 1 else f", sampling {check.sampling:g}"
    unsampled = "" if check.sampling == 1 else ", without sampling,"
    rows = [
        (
            f"true ε of one {release}, at δ = {check.delta:g}",
            [format_epsilon(figures.epsilon_release) for figures in columns],
        ),
        (f"true ε of the run, {count}{sampled}", [format_epsilon(figures.epsilon_run) for figures in columns]),
        (
            f"what succeeds by chance in {CHANCE:.0%} succeeds from one {release} in at most",
            [f"{figures.reconstruction_bound:.1%}" for figures in columns],
        ),
        (
            f"and from the run{unsampled} in at most",
            [f"{figures.reconstruction_bound_run:.1%}" for figures in columns],
        ),
    ]
    if check.epsilon_claimed is not None:
        rows.insert(0, ("ε that the settings claim", [format_epsilon(check.epsilon_claimed)] * len(columns)))
    if check.deviation is not None:
        rows.append(("standard deviation of the noise", [f"{check.deviation:.4g}"] * len(columns)))
    return rows
