"""What `--help` teaches: options in groups, two examples, and the names that attacks, defences and models go by."""

from collections.abc import Iterator
from typing import Any

import click
from typer.core import TyperCommand, TyperGroup

from gradveil.cli.runs import restore

OWN = "package.module:object"
PHOTOS = "folder:photos"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "attack": (
        "gradveil attack --images 3,14 --attack adam-cosine",
        f"gradveil attack --data {PHOTOS} --model my_model:Net --checkpoint trained.pt --defence policy:3-1-7",
    ),
    "audit": (
        f"gradveil audit --data {PHOTOS} --model my_model:Net --checkpoint trained.pt --out runs/mine",
        "gradveil audit --policy 3-1-7 --defence gaussian:1e-3 --attack standard --dry-run",
        "gradveil audit --resume runs/mine",
    ),
    "check-dp": (
        "gradveil check-dp --clip 1 --sensitivity 1 --epsilon 1 --delta 1e-5 --rounds 100",
        "gradveil check-dp --flower pyproject.toml --rounds 100",
    ),
    "data": ("gradveil data list", f"gradveil data info {PHOTOS}"),
    "data get": ("gradveil data get cifar100", "gradveil data get fashion-mnist --root datasets"),
    "data info": ("gradveil data info fashion-mnist-sample", f"gradveil data info {PHOTOS},size=64 --json"),
    "data list": ("gradveil data list", "gradveil data list --json"),
    "federate": (
        f"gradveil federate --data {PHOTOS} --model my_model:Net --clients 4 --policy 3-1-7",
        "gradveil federate --clients 4 --rounds 20 --observe 1,20 --observe-attack fast",
        "gradveil federate --resume runs/federate",
    ),
    "inspect": (
        "gradveil inspect weights.safetensors",
        f"gradveil inspect trained.pt --model my_model:Net --data {PHOTOS} --fail",
    ),
    "report": ("gradveil report runs/mine --no-originals --out shared.html", "gradveil report runs/before runs/after"),
    "reproduce": ("gradveil reproduce attacks --part speed", "gradveil reproduce defences --table"),
    "reproduce attackers": (
        "gradveil reproduce attackers --part versions",
        "gradveil reproduce attackers --table --out runs/attackers",
    ),
    "reproduce attacks": ("gradveil reproduce attacks --part speed", "gradveil reproduce attacks --table"),
    "reproduce batches": ("gradveil reproduce batches", "gradveil reproduce batches --table"),
    "reproduce defences": (
        "gradveil reproduce defences --part bundled --workers 2",
        "gradveil reproduce defences --table",
    ),
    "reproduce federated": ("gradveil reproduce federated", "gradveil reproduce federated --table"),
    "reproduce local-steps": ("gradveil reproduce local-steps", "gradveil reproduce local-steps --table"),
    "reproduce policies-hide": ("gradveil reproduce policies-hide", "gradveil reproduce policies-hide --table"),
    "reproduce scores": ("gradveil reproduce scores --model lenet-relu", "gradveil reproduce scores --table"),
    "reproduce single-transforms": (
        "gradveil reproduce single-transforms --images 20",
        "gradveil reproduce single-transforms --checkpoint runs/semi/final.safetensors",
    ),
    "reproduce told-defences": ("gradveil reproduce told-defences", "gradveil reproduce told-defences --table"),
    "reproduce verdict": ("gradveil reproduce verdict --workers 2", "gradveil reproduce verdict --table"),
    "score": (
        "gradveil score 3-1-7+43-18-18",
        f"gradveil score 3-1-7 --data {PHOTOS} --model my_model:Net --checkpoint trained.pt --out runs/score",
    ),
    "search": (
        f"gradveil search --data {PHOTOS} --model my_model:Net --candidates 200 --out runs/search",
        "gradveil search --resume runs/search",
        "gradveil search --status runs/search",
    ),
    "train": (
        f"gradveil train --data {PHOTOS} --model my_model:Net --policy runs/search/policies.json",
        "gradveil train --recipe fast --epochs 3 --defence gaussian:1e-3 --out runs/noisy",
        "gradveil train --resume runs/train",
    ),
    "transforms": ("gradveil transforms --policy 3-1-7", f"gradveil transforms --data {PHOTOS} --sheet sheet.png"),
    "transforms apply": (
        "gradveil transforms apply photos photos-317 --policy 3-1-7",
        "gradveil transforms apply images.npz hidden.npz --policy 3-1-7+43-18-18 --seed 1",
    ),
}


def teach(command: click.Command, path: str) -> click.Command:
    """Put examples and names at the end of a command's help, and of the commands below it."""
    if isinstance(command, TyperGroup):
        command.__class__ = GroupedGroup
        command.commands = {name: teach(one, f"{path} {name}") for name, one in command.commands.items()}
    elif isinstance(command, TyperCommand):
        command.__class__ = GroupedCommand
    if isinstance(command, (TyperCommand, TyperGroup)):
        # In typer's own mode the brackets of an option's help would be markup.
        command.rich_markup_mode = None
    examples = "\n".join(["\b", "Examples:", *(f"  {line}" for line in examples_of(path))])
    command.epilog = "\n\n".join([examples, *([] if path.startswith("reproduce") else notes(command))])
    return command


def examples_of(path: str) -> tuple[str, ...]:
    """Return the examples of a command; those of the published study differ in their name only."""
    study = (f"gradveil {path} --scale smoke", f"gradveil {path} --scale cpu --data-root data --dry-run")
    return EXAMPLES.get(path, study)


def notes(command: click.Command) -> Iterator[str]:
    """List what the options of a command can name, and how a person's own code is named."""
    options = {name for parameter in command.params for name in parameter.opts}
    if options & {"--attack", "--observe-attack", "--validate-attack"}:
        from gradveil.attacks import ATTACKS

        yield f"Attacks: {', '.join(ATTACKS)}."
    if "--defence" in options:
        from gradveil.defences import DEFENCES

        yield f"Defences: none, {', '.join(DEFENCES)}; with parameters, as gaussian:1e-3. Commas join several."
    if "--model" in options:
        from gradveil.models import MODELS

        yield f"Models: {', '.join(MODELS)}; K and W stand for a number."
    own = [f"--{name}" for name in ("model", "attack", "observe-attack", "defence") if f"--{name}" in options]
    if own:
        yield (
            f"Your own: {', '.join(own)} {OWN}, found in the current folder too: a class, a factory without arguments "
            "(a model's may take shape, classes, mean, std), or, but for models, an object."
        )


class GroupedCommand(TyperCommand):
    """A command whose help shows its options under the headings that they name, and that goes on by itself."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; with --resume its options are those of the run there."""
        restore(ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self, ctx, formatter)


class GroupedGroup(TyperGroup):
    """The same for a command with commands below it."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def write_groups(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        line = parameter.get_help_record(ctx)
        if line is not None:
            # Typer escapes the bracket for rich, which is not used here.
            groups.setdefault(heading_of(parameter), []).append((line[0], line[1].replace("\\[", "[")))
    for heading, lines in groups.items():
        with formatter.section(heading):
            formatter.write_dl(lines)


def heading_of(parameter: click.Parameter) -> str:
    """Find the heading that an option names; typer keeps it for panels."""
    if isinstance(parameter, click.Argument):
        return "Arguments"
    named: Any = vars(parameter).get("rich_help_panel")
    return str(named or "Options")
