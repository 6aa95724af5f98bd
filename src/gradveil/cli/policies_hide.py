"""`gradveil reproduce policies-hide`: does a policy hide the original from someone who knows it?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.options import (
    AsJson,
    DataName,
    Quiet,
    Root,
    StudyFolder,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.study_folders import own_journal, prepare_folder, require_results
from gradveil.errors import UnknownNameError
from gradveil.experiments.hide_tables import render_markdown
from gradveil.experiments.policies_hide import ATTACKS, RUN, SEEDS, SHARES, HideStudy, HideTrial, trials
from gradveil.results import record, to_json, write_file

Arms = Annotated[
    list[str] | None, typer.Option("--arm", help="Run this arm only, also several times; all unless given.")
]
Attacks = Annotated[
    list[str] | None,
    typer.Option(
        "--attack", help=f"Run this attack only ({', '.join(ATTACKS)}), also several times; all unless given."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help=f"Run this model only ({', '.join(SHARES)}), also several times; all unless given."),
]
Seeds = Annotated[int, typer.Option("--seeds", min=1, max=SEEDS, help="How many seeds to run.")]
Images = Annotated[
    int | None,
    typer.Option("--images", min=1, help="How many test images to attack; as many as the table has unless given."),
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


def policies_hide(
    data: DataName = "fashion-mnist",
    root: Root = None,
    arm: Arms = None,
    attack: Attacks = None,
    model: Models = None,
    seeds: Seeds = SEEDS,
    images: Images = None,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/policies-hide"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack the original under every policy, by learning and by matching; a run that was stopped goes on."""
    chosen = choose_trials({"arm": arm, "attack": attack, "model": model}, seeds, images)
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["trial.arm", "phases"], "policies-hide", versions=RUN)
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        study = HideStudy(out, None if table else data_sets.load(data, root, progress))
        if not table:
            study.run(chosen, progress)
    entries = study.read()
    with own_journal(out, "policies-hide", table):
        require_results(study.journal.path, arm or [], list(dict.fromkeys(entry["trial"]["arm"] for entry in entries)))
        text = render_markdown(entries)
    write_file(out / "policies-hide.md", text)
    written = record("reproduce policies-hide", {"seeds": seeds, "images": images, "threads": 1}, {"trials": entries})
    write_file(out / "policies-hide.json", to_json(written))
    if as_json:
        print_json(written)
    print_path(console, out / "policies-hide.md")


def choose_trials(asked: Mapping[str, Sequence[str] | None], seeds: int, images: int | None) -> list[HideTrial]:
    """Choose the trials of these arms, attacks and models; a name that no trial has is refused."""
    for kind, names in asked.items():
        known = list(dict.fromkeys(getattr(one, kind) for one in trials()))
        for name in names or []:
            if name not in known:
                raise UnknownNameError(kind, name, known)
    found = [
        one
        for one in trials()
        if one.seed < seeds and all(names is None or getattr(one, kind) in names for kind, names in asked.items())
    ]
    return found if images is None else [replace(one, images=images) for one in found]
