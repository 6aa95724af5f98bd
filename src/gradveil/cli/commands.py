"""The commands by name. A command's module is imported when that command is called, so `--help` needs no torch."""

from dataclasses import dataclass
from importlib import import_module

import click
import typer
from typer.core import TyperGroup
from typer.main import get_group

from gradveil.cli.teaching import teach


@dataclass(frozen=True)
class Entry:
    """A command: its module in this package, the function or `typer.Typer` there, and the first line of its help."""

    module: str
    attribute: str
    help: str


COMMANDS: dict[str, Entry] = {
    "attack": Entry(
        "attack",
        "attack_images",
        "Attack single images; pictures over the steps, curves and attack.json go to the folder.",
    ),
    "audit": Entry(
        "audit", "audit", "Attack the updates that clients release, image by image, beside the chance level."
    ),
    "federate": Entry(
        "federate",
        "federate",
        "Train together with others on Flower; the weights, captured rounds and federate.json go to the folder.",
    ),
    "inspect": Entry(
        "inspect",
        "inspect_checkpoint",
        "Look at a model from someone else before you train it: is it planted to give images away?",
    ),
    "report": Entry(
        "report",
        "report",
        "Draw the page of an audit again, compare several, or check with --verify that nothing was changed.",
    ),
    "score": Entry(
        "score",
        "score_policy",
        "Print S_pri, lower hides more, and S_acc, higher costs less, of a policy beside those of none.",
    ),
    "search": Entry(
        "search",
        "search_policies",
        "Search for policies with a low S_pri and a sufficient S_acc; --status DIR shows one that is at work.",
    ),
    "train": Entry(
        "train",
        "train_model",
        "Train a model; its weights at named phases, its curves and train.json go to the folder.",
    ),
    "check-dp": Entry(
        "check_dp",
        "check_dp",
        "Compute the true ε of differential privacy settings, and list what nothing enforces.",
    ),
    "data": Entry("data", "app", "List, describe and download data sets."),
    "reproduce": Entry("reproduce", "app", "Make the tables of the documentation again."),
    "transforms": Entry(
        "transforms", "app", "List the transformations, look at what they do, apply a policy to stored images."
    ),
}


def load_command(name: str) -> click.Command:
    """Import the module of a command and build the command."""
    entry = COMMANDS[name]
    target = getattr(import_module(f"gradveil.cli.{entry.module}"), entry.attribute)
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(target, typer.Typer):
        holder.add_typer(target, name=name)
    else:
        holder.command(name)(target)
    return teach(get_group(holder).commands[name], name)


class LazyGroup(TyperGroup):
    """List the commands from the table, and import only the one that is called."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands with the whole of their first line; click would cut it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


def add_entries(app: typer.Typer) -> None:
    """Add an entry for each command to `app`, for its help; `LazyGroup` replaces the entry by the command itself."""
    for name, entry in COMMANDS.items():

        @app.command(name, help=entry.help)
        def listed() -> None:
            raise NotImplementedError("the group that lists this command did not load it")
