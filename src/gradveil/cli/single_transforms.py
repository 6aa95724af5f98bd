"""`gradveil reproduce single-transforms`: S_pri of each of the 50 transformations alone."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.options import (
    AsJson,
    CheckpointFile,
    DataName,
    Quiet,
    Root,
    Seed,
    StudyFolder,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.score import FormName, QuadratureName, StartName
from gradveil.cli.study_folders import keep_others_out
from gradveil.experiments.single_transforms import (
    SingleSettings,
    SingleTransforms,
    make_bars,
    make_lines,
    render_markdown,
)
from gradveil.losses import CrossEntropy
from gradveil.metrics import mean_interval
from gradveil.reports import draw_bars
from gradveil.results import record, to_json, write_file
from gradveil.scores import choose_privacy_images

ModelName = Annotated[str, typer.Option("--model", help="The model to train; one of --checkpoint is its own.")]
Images = Annotated[int, typer.Option("--images", help="Test images to score; 100 in the papers.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Epochs of training of the semi-trained model.")]
Fraction = Annotated[float, typer.Option("--fraction", help="Share of the training images that it is trained on.")]


def single_transforms(
    data: DataName = "fashion-mnist-sample",
    root: Root = None,
    model: ModelName = "resnet20-1",
    checkpoint: CheckpointFile = None,
    images: Images = 100,
    form: FormName = "layerwise",
    quadrature: QuadratureName = "trapezoid-21",
    start: StartName = "uniform",
    epochs: Epochs = 50,
    fraction: Fraction = 0.1,
    out: StudyFolder = Path("runs/single-transforms"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score the 50 transformations one by one (Figure 5); a run that was stopped goes on where it was."""
    console = make_console(quiet, as_json)
    torch.set_num_threads(1)
    chosen = SingleSettings(images, form, quadrature, start, seed)
    with progress_bar(console) as progress:
        loaded = data_sets.load(data, root, progress)
        # Refused now, not after the training.
        choose_privacy_images(loaded, images, seed)
        keep_others_out(out)
        study = SingleTransforms(out, loaded, model, chosen, checkpoint, epochs, fraction)
        weights = study.find_weights(progress)
        trained = study.load(weights)
        name, loss = trained.spec.name, str(trained.loss)
        scores = study.run(weights, progress)
    lines, none = make_lines(scores, seed), mean_interval(scores["none"])
    title = f"{loaded.name}, {name}, GradSim {form}, {quadrature}, {start} start"
    title += "" if loss == str(CrossEntropy()) else f", {loss}"
    table = render_markdown(lines, none, title)
    write_file(out / "single_transforms.md", table)
    write_file(
        out / "single_transforms.png", draw_bars(make_bars(lines, none), none.mean, f"S_pri, {title}, n = {images}")
    )
    settings = {
        "data": data,
        "model": name,
        "checkpoint": None if checkpoint is None else checkpoint.name,
        "epochs": epochs,
        "fraction": fraction,
        "threads": 1,
        "loss": loss,
        **vars(chosen),
    }
    figures = {"none": asdict(none), "lines": [asdict(line) for line in lines], "scores": scores}
    result = record("reproduce single-transforms", settings, figures)
    write_file(out / "single_transforms.json", to_json(result))
    if as_json:
        print_json(result)
    console.print(next(line for line in table.splitlines() if line.startswith("Best five")), highlight=False)
    for file in ("single_transforms.md", "single_transforms.png"):
        print_path(console, out / file)
