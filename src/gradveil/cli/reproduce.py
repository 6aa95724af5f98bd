"""`gradveil reproduce`: make the tables of the documentation again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from gradveil import data as data_sets
from gradveil import models
from gradveil.attacks import find_attack
from gradveil.cli.attacker_study import attackers
from gradveil.cli.batches import batches
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.federated_study import federated_study
from gradveil.cli.local_steps import local_steps
from gradveil.cli.options import (
    AsJson,
    Quiet,
    Root,
    Seed,
    StudyFolder,
    WorkerCount,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.paper_study import add_paper_study
from gradveil.cli.policies_hide import policies_hide
from gradveil.cli.progress import progress_bar
from gradveil.cli.single_transforms import single_transforms
from gradveil.cli.study_folders import own_journal, prepare_folder, require_results
from gradveil.cli.told_study import told_study
from gradveil.cli.verdict_study import verdict
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.experiments import defence_tables, score_tables
from gradveil.experiments.attack_cells import BEST, COLOUR, GREY, PARTS
from gradveil.experiments.attack_comparisons import render_comparisons, render_models
from gradveil.experiments.attack_sheets import draw_sheets, render_pictures
from gradveil.experiments.attack_tables import make_lines, make_paths, render_markdown
from gradveil.experiments.attacks import AttackStudy
from gradveil.experiments.defences import PARTS as DEFENCE_PARTS
from gradveil.experiments.defences import DefenceStudy
from gradveil.experiments.score_study import MODELS, POLICIES, ScoreStudy, study_policies
from gradveil.experiments.versions import render_appendix, require_one_version, versions_of
from gradveil.reports import draw_pareto, draw_paths
from gradveil.results import record, to_json, write_file
from gradveil.rng import generator
from gradveil.training import FAST

app = typer.Typer(no_args_is_help=True, help="Make the tables of the documentation again.")
app.command("single-transforms")(single_transforms)
app.command("verdict")(verdict)
app.command("federated")(federated_study)
app.command("policies-hide")(policies_hide)
app.command("told-defences")(told_study)
app.command("batches")(batches)
app.command("local-steps")(local_steps)
app.command("attackers")(attackers)
add_paper_study(app)
Parts = Annotated[list[str] | None, typer.Option("--part", help=f"One of {', '.join(PARTS)}; all unless given.")]
Colour = Annotated[
    str | None, typer.Option("--colour", help="Colour images, e.g. cifar100; without them their cells are not run.")
]
Epochs = Annotated[int, typer.Option("--epochs", help="Epochs of training of the models that are attacked.")]
OnlyModels = Annotated[
    list[str] | None, typer.Option("--model", help="Run on this model only, also several times; all unless given.")
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


@app.command("attacks")
def attacks(
    part: Parts = None,
    model: OnlyModels = None,
    colour: Colour = None,
    root: Root = None,
    epochs: Epochs = FAST.epochs,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/attacks"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure how strong every attack is; a run that was stopped goes on where it was."""
    check_names("part", part, PARTS)
    chosen = {name: list(PARTS[name]()) for name in part or PARTS}
    check_names("model", model, {cell.model for cells in chosen.values() for cell in cells})
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["cell.part", "rows"], "attacks")
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        names = {GREY: "fashion-mnist-sample", **({COLOUR: colour} if colour else {})}
        loaded = {} if table else {key: data_sets.load(name, root, progress) for key, name in names.items()}
        study = AttackStudy(out, loaded, seed, epochs)
        if not table:
            for cells in chosen.values():
                study.run([cell for cell in cells if model is None or cell.model in model], progress)
    settings = {"colour": colour, "epochs": epochs, "seed": seed, "threads": 1}
    with own_journal(out, "attacks", table):
        written = write_attacks(out, study, part or [], settings)
    if as_json:
        print_json(written)
    print_path(console, out / "attacks.md")


def check_names(kind: str, names: Sequence[str] | None, allowed: Iterable[str]) -> None:
    """Refuse a name that is not allowed, before anything is loaded."""
    known = list(allowed)
    for name in names or []:
        if name not in known:
            raise UnknownNameError(kind, name, known)


def write_attacks(out: Path, study: AttackStudy, wanted: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the pictures of what was run, the tables, and the record of all cells: all parts that have results."""
    entries = study.journal.read()
    parts = {name: list(make()) for name, make in PARTS.items()}
    every = {part: make_lines(cells, entries) for part, cells in parts.items()}
    lines = {part: found for part, found in every.items() if any(line.rows for line in found)}
    require_results(study.journal.path, wanted, list(lines))
    for (kind, name, phase, _), paths in make_paths(parts["speed"], entries).items():
        title = f"{kind}, {name}, {phase}: {', '.join(paths)}"
        write_file(out / f"time-{kind}_{name}_{phase}.png", draw_paths(paths, title))
    for part in lines:
        for file, sheet in draw_sheets(out, parts[part]):
            write_file(out / f"{part}-{file}", sheet)
    text = [
        render_markdown(lines),
        render_comparisons(lines, BEST),
        render_models(entries),
        render_pictures(out),
        render_appendix(entries),
    ]
    write_file(out / "attacks.md", "\n".join(text))
    written = record("reproduce attacks", {"parts": list(lines), **settings}, {"cells": entries})
    write_file(out / "attacks.json", to_json(written))
    return written


DefenceParts = Annotated[
    list[str] | None, typer.Option("--part", help=f"One of {', '.join(DEFENCE_PARTS)}; all unless given.")
]
AttackName = Annotated[str, typer.Option("--attack", help="The attack that every defence is held against.")]
Steps = Annotated[
    int | None, typer.Option("--steps", min=1, help="Steps of the attack, or of each member, instead of its own.")
]


@app.command("defences")
def defences(
    part: DefenceParts = None,
    colour: Colour = None,
    root: Root = None,
    attack: AttackName = "standard",
    steps: Steps = None,
    epochs: Epochs = FAST.epochs,
    table: TableOnly = False,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    out: StudyFolder = Path("runs/defences"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure what every defence costs and saves; a run that was stopped goes on where it was."""
    check_names("part", part, DEFENCE_PARTS)
    find_attack(attack)
    if "colour" in (part or []) and colour is None and not table:
        raise SettingsError("--part colour needs images: give --colour, e.g. --colour cifar100")
    chosen = {name: list(DEFENCE_PARTS[name]()) for name in part or DEFENCE_PARTS}
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["trial.part", "study.training"], "defences")
    with progress_bar(console) as progress, gather_crew(workers, ray) as crew:
        names = {GREY: "fashion-mnist-sample", **({COLOUR: colour} if colour else {})}
        loaded = {} if table else {key: data_sets.load(name, root, progress) for key, name in names.items()}
        training = replace(FAST, epochs=epochs, test_every=epochs, threads=1)
        study = DefenceStudy(out, loaded, attack, steps, training=training, workers=crew)
        if not table:
            for trials in chosen.values():
                study.run(trials, progress)
    with own_journal(out, "defences", table):
        written = write_defences(out, study, part or [])
    if as_json:
        print_json(written)
    print_path(console, out / "defences.md")


def write_defences(out: Path, study: DefenceStudy, wanted: Sequence[str]) -> dict[str, Any]:
    """Write the tables, a picture for each part that has results, and the record of all trials."""
    entries = study.entries_of_any_version()
    require_study(study, entries)
    every = {name: list(make()) for name, make in DEFENCE_PARTS.items()}
    parts = {name: trials for name, trials in every.items() if any(one["trial"]["part"] == name for one in entries)}
    require_results(study.journal.path, wanted, list(parts))
    described = {**study.describe(), **versions_of(entries[0])}
    lines = {part: defence_tables.make_lines(trials, entries) for part, trials in parts.items()}
    text = [defence_tables.render_markdown(parts, lines, described), render_appendix(entries)]
    write_file(out / "defences.md", "\n".join(text))
    for part, found in lines.items():
        panels = defence_tables.make_panels(found)
        if any(panels.values()):
            write_file(out / f"{part}.png", draw_pareto(panels, f"{part}: accuracy against leak, {study.attack}"))
    written = record("reproduce defences", {"parts": list(parts), **described}, {"trials": entries})
    write_file(out / "defences.json", to_json(written))
    return written


def require_study(study: DefenceStudy, entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse settings that nothing was run with; say with which something was."""
    if entries:
        return
    known = dict.fromkeys(
        f"--attack {one['attack']} --epochs {one['training']['epochs']}"
        + ("" if one["steps"] is None else f" --steps {one['steps']}")
        for one in (entry["study"] for entry in study.journal.read())
    )
    raise SettingsError(
        f"{study.journal.path} has no results of these settings: it has those of {', '.join(known) or 'none'}; "
        "no table was written"
    )


Models = Annotated[
    list[str] | None, typer.Option("--model", help=f"A small model, also several times. [default: {', '.join(MODELS)}]")
]
PolicyCount = Annotated[int, typer.Option("--policies", min=8, help="How many random policies to score and attack.")]


@app.command("scores")
def scores(
    model: Models = None,
    policies: PolicyCount = POLICIES,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/scores"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure which score tells what an attack will gain; a run that was stopped goes on where it was."""
    console = make_console(quiet, as_json)
    torch.set_num_threads(1)
    chosen = study_policies(seed, policies)
    with progress_bar(console) as progress:
        sample = data_sets.load("fashion-mnist-sample", None, progress)
        for name in model or MODELS:
            models.build(name, sample.shape, sample.classes, sample.mean, sample.std, generator(seed, "model"))
        for file in ("scores.jsonl", "journal.jsonl"):
            prepare_folder(out, table, ["cell.model"], "scores", file)
        study = ScoreStudy(out, sample, seed)
        if not table:
            study.run(model or MODELS, chosen, progress)
    with own_journal(out, "scores", table):
        scored, attacked = study.journal.read(), study.attacks.journal.read()
        require_one_version([*scored, *attacked], study.journal.path)
        lines = score_tables.make_lines(chosen, scored, attacked)
    require_results(study.journal.path, model or [], list(dict.fromkeys(line.model for line in lines)))
    write_file(out / "scores.md", "\n".join([score_tables.render_markdown(lines), render_appendix(attacked)]))
    settings = {"models": list(model or MODELS), "policies": chosen, "seed": seed, "threads": 1}
    result = record("reproduce scores", settings, {"lines": [asdict(line) for line in lines]})
    write_file(out / "scores.json", to_json(result))
    if as_json:
        print_json(result)
    print_path(console, out / "scores.md")
