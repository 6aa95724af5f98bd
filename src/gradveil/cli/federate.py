"""`gradveil federate`: train a model together, as participants of a collaborative training would."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from gradveil import data as data_sets
from gradveil.attacks import find_attack
from gradveil.cli.audit_table import print_report
from gradveil.cli.data import Root
from gradveil.cli.options import AsJson, Out, Overwrite, Quiet, Run, Seed, make_console, print_json
from gradveil.cli.policy_files import read_arm, read_policy
from gradveil.cli.progress import progress_bar
from gradveil.data import DataSet
from gradveil.errors import SettingsError, printable
from gradveil.federated import FEDAVG, FederatedSettings, RoundOutcome, is_unfinished
from gradveil.reports import draw_leak_by_round, draw_rounds, pictures_of, record_of, write_audit
from gradveil.results import write_file
from gradveil.types import LocalTraining, Mode, OptimiserName

DEFAULTS = FederatedSettings()
OBSERVATION = "observation"
BY_CLASS = "classes:2"
SHOWN = 10
PIECES = ("resume.safetensors", "journal.jsonl", "final.*", "round-*.*", "capsules", "curve.png")
"""What a run leaves that was cut short."""

Data = Annotated[str, typer.Option("--data", help="A name of 'gradveil data list', folder:PATH or npz:PATH.")]
Model = Annotated[str, typer.Option("--model", help="A model by name, or your own as package.module:factory.")]
Clients = Annotated[int, typer.Option("--clients", help="Participants; each image belongs to one of them.")]
Rounds = Annotated[int | None, typer.Option("--rounds", help="Default: as many as 12 passes over all images take.")]
AlgorithmName = Annotated[
    str, typer.Option("--algorithm", help="fedsgd: clients send gradients; fedavg: weight changes of local training.")
]
PolicyText = Annotated[
    str, typer.Option("--policy", help="Transform every image, e.g. by 3-1-7+43-18-18 or policies.json.")
]
Base = Annotated[bool, typer.Option("--base/--no-base", help="Random crop and flip of every image, before the policy.")]
Defences = Annotated[
    list[str] | None,
    typer.Option("--defence", help="Another defence as in an audit's arm, e.g. gaussian:1e-3; may be repeated."),
]
ModeName = Annotated[str, typer.Option("--mode", help="Batch normalisation and dropout as in train or as in eval.")]
PartitionName = Annotated[
    str, typer.Option("--partition", help="iid, dirichlet:ALPHA, classes:K, or by-class (classes:2).")
]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", help="Images of a client's gradient, or of a local step. Default: 64 / clients; 8."),
]
LocalEpochs = Annotated[
    int | None, typer.Option("--local-epochs", help="Passes over its images in a round of fedavg, instead of steps.")
]
LocalSteps = Annotated[int | None, typer.Option("--local-steps", help="Steps of a round of fedavg; 5 unless given.")]
LocalOptimiser = Annotated[str, typer.Option("--local-optimiser", help="Optimiser of local steps: sgd, adam or muon.")]
LearningRate = Annotated[
    float | None, typer.Option("--learning-rate", help="The server's with fedsgd, the clients' with fedavg.")
]
LocalMomentum = Annotated[float, typer.Option("--local-momentum", help="Momentum of local steps.")]
ServerMomentum = Annotated[
    float, typer.Option("--server-momentum", help="Momentum of the server with fedavg; 0 adds the mean change alone.")
]
Capture = Annotated[str, typer.Option("--capture", help="Rounds whose updates are kept as capsules, e.g. 1,10.")]
KeepTruth = Annotated[bool, typer.Option("--keep-truth", help="Let clients keep the images behind captured updates.")]
Checkpoints = Annotated[str, typer.Option("--checkpoints", help="Rounds whose weights are kept, e.g. 1,100.")]
Engine = Annotated[str, typer.Option("--engine", help="in-process, ray (Flower's simulation) or deployment.")]
TopologyOption = Annotated[
    str, typer.Option("--topology", help="server; or without one: ring or full (each participant with all others).")
]
Observer = Annotated[
    int, typer.Option("--observer", help="The participant whose view is captured if there is no server.")
]
Secure = Annotated[
    bool, typer.Option("--secure", help="Secure aggregation (SecAgg+): the server gets the mean of all updates only.")
]
LeastValid = Annotated[
    int | None, typer.Option("--least-valid", help="Valid replies that a round needs; more than half unless given.")
]
LargestNorm = Annotated[float, typer.Option("--largest-norm", help="An update with a larger norm is dropped.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds that the server waits for the replies of a round.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes to use; the weights do not depend on it.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder, with the same options.")]


Observe = Annotated[
    str, typer.Option("--observe", help="Rounds whose updates the server attacks when training is over, e.g. 1,10.")
]
ObserveAttack = Annotated[str, typer.Option("--observe-attack", help="The attack of the curious server.")]
ObserveSteps = Annotated[
    int | None, typer.Option("--observe-steps", help="Steps of that attack, or of each member, instead of its own.")
]
ObserveTogether = Annotated[
    bool,
    typer.Option("--together", help="Attack the observed rounds of a client that show the same images as one."),
]


def federate(
    data: Data = DEFAULTS.data,
    root: Root = None,
    model: Model = DEFAULTS.model,
    clients: Clients = DEFAULTS.clients,
    rounds: Rounds = None,
    algorithm: AlgorithmName = DEFAULTS.algorithm,
    policy: PolicyText = "none",
    base: Base = True,
    defence: Defences = None,
    mode: ModeName = FEDAVG.mode,
    partition: PartitionName = DEFAULTS.partition,
    batch_size: BatchSize = None,
    local_epochs: LocalEpochs = None,
    local_steps: LocalSteps = None,
    local_optimiser: LocalOptimiser = FEDAVG.optimiser,
    local_momentum: LocalMomentum = FEDAVG.momentum,
    server_momentum: ServerMomentum = DEFAULTS.server_momentum,
    learning_rate: LearningRate = None,
    capture: Capture = "",
    keep_truth: KeepTruth = False,
    observe: Observe = "",
    observe_attack: ObserveAttack = "standard",
    observe_steps: ObserveSteps = None,
    together: ObserveTogether = False,
    checkpoints: Checkpoints = "",
    engine: Engine = "in-process",
    topology: TopologyOption = "server",
    observer: Observer = 0,
    secure: Secure = False,
    workers: Workers = 1,
    least_valid: LeastValid = None,
    largest_norm: LargestNorm = DEFAULTS.largest_norm,
    timeout: Timeout = DEFAULTS.timeout,
    resume: Resume = False,
    out: Out = Path("runs/federate"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train together with others on Flower; the weights, captured rounds and federate.json go to the folder."""
    from gradveil.federated import run_federated

    console = make_console(quiet, as_json)
    training = DEFAULTS.training
    if algorithm == "fedsgd" and learning_rate is not None:
        training = replace(training, learning_rate=learning_rate)
    settings = FederatedSettings(
        data=data,
        model=model,
        clients=clients,
        algorithm=algorithm,  # type: ignore[arg-type]  # a wrong name is refused there
        arm=write_arm(base, policy, defence or []),
        partition=BY_CLASS if partition == "by-class" else partition,
        rounds=rounds,
        batch_size=batch_size,
        local=choose_local(local_epochs, local_steps, batch_size, local_optimiser, learning_rate, local_momentum, mode),
        server_momentum=server_momentum,
        training=training,
        least_valid=least_valid,
        largest_norm=largest_norm,
        timeout=timeout,
        seed=seed,
    )
    observed, kept = read_rounds(observe, "--observe"), read_rounds(checkpoints, "--checkpoints")
    captured = sorted({*read_rounds(capture, "--capture"), *observed})
    find_attack(observe_attack)
    if observe_steps is not None and observe_steps < 1:
        raise SettingsError(f"--observe-steps {observe_steps}: give 1 or more")
    with progress_bar(console) as loading:
        loaded = data_sets.load(data, root, loading)
    with Run("federate", out, is_unfinished, PIECES).folder(resume, overwrite) as folder:
        with rounds_bar(console) as progress:
            result = run_federated(
                settings,
                loaded,
                folder,
                engine=engine,  # type: ignore[arg-type]  # a wrong name is refused there
                workers=workers,
                capture=captured,
                keep_truth=keep_truth or bool(observed),
                checkpoints=kept,
                resume=resume,
                progress=progress,
                root=root,
                topology=topology,  # type: ignore[arg-type]  # a wrong name is refused there
                observer=observer,
                secure=secure,
            )
        title = f"{settings.model} on {settings.data}, {settings.clients} clients, {settings.algorithm}, {settings.arm}"
        write_file(folder / "curve.png", draw_rounds(result.rounds, title))
        if observed:
            attack_captured(folder, loaded, observed, observe_attack, observe_steps, together, model, seed, console)
    if as_json:
        print_json(json.loads((folder / "federate.json").read_text()))
    console.print(make_table(result.rounds))
    console.print(summarise(settings, result.rounds, result.seconds, folder))


def attack_captured(
    folder: Path,
    data: DataSet,
    rounds: Sequence[int],
    attack: str,
    steps: int | None,
    together: bool,
    model: str,
    seed: int,
    console: Console,
) -> None:
    """Let the server attack the updates of some rounds; the report and the picture go to a folder of their own."""
    from gradveil.federated import observe

    own = model if ":" in model else None
    with progress_bar(console) as show:
        report = observe(
            folder,
            data,
            rounds,
            [attack],
            steps=steps,
            together=together,
            model=own,
            seed=seed,
            progress=lambda stage, share: show(stage, round(100 * share), 100),
        )
    place = folder / OBSERVATION
    place.mkdir(exist_ok=True)
    title = f"{attack} on the updates of {report.settings.model}, {report.settings.arms[0]}"
    write_file(place / "leak.png", draw_leak_by_round(report.rows, title))
    write_audit(place, record_of(report), pictures_of(report))
    print_report(console, report, place)


def write_arm(base: bool, policy: str, others: Sequence[str]) -> str:
    """Write the base augmentation, the policy and the other defences as one arm."""
    chosen = read_policy(policy)
    parts = [*([] if chosen == "none" else [f"policy:{chosen}"]), *map(read_arm, others)]
    if not parts:
        return "crop-flip" if base else "none"
    return ",".join(parts if base else [*parts, "no-base"])


def choose_local(
    epochs: int | None,
    steps: int | None,
    batch_size: int | None,
    optimiser: str,
    learning_rate: float | None,
    momentum: float,
    mode: str,
) -> LocalTraining:
    """Take the local training of FedAvg and put what the person chose in its place."""
    for name, value, allowed in (("mode", mode, Mode), ("local optimiser", optimiser, OptimiserName)):
        if value not in get_args(allowed):
            raise SettingsError(f"{name} '{value}': choose from {', '.join(get_args(allowed))}")
    return replace(
        FEDAVG,
        epochs=epochs,
        steps=FEDAVG.steps if epochs is None and steps is None else steps,
        batch_size=FEDAVG.batch_size if batch_size is None else batch_size,
        optimiser=optimiser,  # type: ignore[arg-type]
        learning_rate=FEDAVG.learning_rate if learning_rate is None else learning_rate,
        momentum=momentum,
        mode=mode,  # type: ignore[arg-type]
    )


def read_rounds(text: str, option: str) -> list[int]:
    """Read numbers of rounds with commas between.

    >>> read_rounds("1,10", "--capture")
    [1, 10]
    """
    if not re.fullmatch(r"\s*|\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*", text, re.ASCII):
        raise SettingsError(f"{option} {text}: write the numbers of rounds with commas between, as in 1,10")
    return sorted({int(part) for part in text.split(",") if part.strip()})


@contextmanager
def rounds_bar(console: Console) -> Iterator[Callable[[RoundOutcome, int], None]]:
    """Show how many rounds are done, with the latest figures."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: list[TaskID] = []
        tested = ""

        def report(outcome: RoundOutcome, rounds: int) -> None:
            nonlocal tested
            if not tasks:
                tasks.append(bars.add_task("", total=rounds, completed=outcome.round - 1))
            if outcome.test_accuracy is not None:
                tested = f", test {outcome.test_accuracy:.1%}"
            dropped = f", {len(outcome.dropped)} dropped" if outcome.dropped else ""
            loss = "" if outcome.loss is None else f", loss {outcome.loss:.3f}"
            description = f"round {outcome.round}{loss}{tested}{dropped}"
            bars.update(tasks[0], completed=outcome.round, description=description)

        yield report


def make_table(rounds: Sequence[RoundOutcome]) -> Table:
    """Lay out some of the tested rounds, evenly over the run, and every round with a dropped reply up to a limit."""
    tested = [outcome for outcome in rounds if outcome.test_accuracy is not None]
    step = max(1, -(-len(tested) // SHOWN))
    chosen = {outcome.round for outcome in tested[::-1][::step]}
    chosen |= {outcome.round for outcome in [one for one in rounds if one.dropped][:SHOWN]}
    table = Table(box=None, pad_edge=False)
    for column in ("round", "loss", "test accuracy", "valid"):
        table.add_column(column, justify="right")
    table.add_column("dropped", overflow="fold")
    for outcome in rounds:
        if outcome.round in chosen:
            table.add_row(
                str(outcome.round),
                "–" if outcome.loss is None else f"{outcome.loss:.3f}",
                "–" if outcome.test_accuracy is None else f"{outcome.test_accuracy:.2%}",
                str(outcome.valid),
                printable("; ".join(map(str, outcome.dropped))),
            )
    return table


def summarise(settings: FederatedSettings, rounds: Sequence[RoundOutcome], seconds: float, folder: Path) -> Table:
    """Show the outcome in a few lines."""
    table = Table("", Column("", overflow="fold"), show_header=False, box=None, pad_edge=False)
    table.add_row("clients", printable(f"{settings.clients}, {settings.partition}; {settings.data}; {settings.arm}"))
    each = f"{seconds / len(rounds):.2f} s a round"
    table.add_row("training", f"{settings.model}, {settings.algorithm}, {len(rounds)} rounds, {seconds:.0f} s, {each}")
    table.add_row("dropped", f"{sum(len(outcome.dropped) for outcome in rounds)} replies")
    table.add_row("test accuracy", f"{rounds[-1].test_accuracy:.2%}", style="bold")
    table.add_row("written to", printable(f"{folder}/ (final.safetensors, journal.jsonl, curve.png, federate.json)"))
    return table
