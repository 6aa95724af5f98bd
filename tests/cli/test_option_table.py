"""One language: which command has which of the common options, and why one has it not."""

import click
import pytest

from gradveil.cli.commands import COMMANDS, load_command
from gradveil.experiments.paper import EXPERIMENTS, GROUPS

COMMON = (
    "--out",
    "--seed",
    "--device",
    "--workers",
    "--quiet",
    "--json",
    "--root",
    "--checkpoint",
    "--labels",
    "--images",
)
NO_DRAWS = "nothing is drawn at random"
NO_MODEL = "it runs no model"
NO_WEIGHTS = "it takes no weights"
NO_ATTACK = "it attacks nothing"
NO_DATA = "it loads no data set by name"
ONE_JOB = "it is one job"
BUNDLED = "it runs on the bundled images, which are in no folder of data sets"
PUBLISHED = "the committed tables were measured on the processor, and a journal must not mix devices"
OWN_SEEDS = "the table has its own seeds"
OWN_IMAGES = "the table has its own images"
OWN_MODELS = "it trains its own models"
OWN_LABELS = "the table says which cells know the labels"
SMALL = "the weights are looked at once, in seconds"
STUDY = {
    "--device": PUBLISHED,
    "--checkpoint": OWN_MODELS,
    "--labels": OWN_LABELS,
    "--images": OWN_IMAGES,
    "--workers": ONE_JOB,
    "--seed": OWN_SEEDS,
    "--root": BUNDLED,
}


def study(*present: str) -> dict[str, str]:
    """Return why a study lacks all but these of the options that studies lack."""
    return {option: reason for option, reason in STUDY.items() if option not in present}


ABSENT: dict[str, dict[str, str]] = {
    "attack": {"--workers": ONE_JOB},
    "audit": {},
    "check-dp": {
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--seed": NO_DRAWS,
        "--root": NO_DATA,
        "--checkpoint": NO_WEIGHTS,
        **dict.fromkeys(["--labels", "--images"], NO_ATTACK),
    },
    "data get": {
        "--out": "--root says where the files go, and every command looks there",
        "--seed": NO_DRAWS,
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--checkpoint": NO_WEIGHTS,
        **dict.fromkeys(["--labels", "--images"], NO_ATTACK),
    },
    "data info": {
        "--out": "it describes what is there: --json can be kept",
        "--seed": "the seed of a split stands in the name, as folder:PATH,seed=1",
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--checkpoint": NO_WEIGHTS,
        **dict.fromkeys(["--labels", "--images"], NO_ATTACK),
    },
    "data list": {
        "--out": "it describes what is there: --json can be kept",
        "--seed": NO_DRAWS,
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--checkpoint": NO_WEIGHTS,
        **dict.fromkeys(["--labels", "--images"], NO_ATTACK),
    },
    "federate": {
        "--device": "participants run on processors; Flower's engines place them",
        "--checkpoint": "everyone starts from the weights of the seed",
        "--labels": "what is observed is what clients send, labels included or not",
        "--images": "what is attacked are the images behind the observed updates",
    },
    "inspect": {
        **dict.fromkeys(["--device", "--workers"], SMALL),
        "--checkpoint": "the weights are its argument",
        **dict.fromkeys(["--labels", "--images"], NO_ATTACK),
    },
    "report": {
        "--seed": NO_DRAWS,
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--root": NO_DATA,
        "--checkpoint": NO_WEIGHTS,
        **dict.fromkeys(["--labels", "--images"], "the audit decided that"),
    },
    "reproduce attackers": study("--root"),
    "reproduce attacks": study("--root", "--seed"),
    "reproduce batches": study("--root", "--images"),
    "reproduce defences": study("--root", "--workers"),
    "reproduce federated": study("--workers"),
    "reproduce local-steps": study(),
    "reproduce policies-hide": study("--root", "--images"),
    "reproduce scores": study("--seed"),
    "reproduce single-transforms": study("--root", "--seed", "--checkpoint", "--images"),
    "reproduce told-defences": study(),
    "reproduce verdict": study("--root", "--workers"),
    **{
        f"reproduce {name}": {**study("--root", "--workers", "--device"), "--json": "the pages hold every figure"}
        for name in (*EXPERIMENTS, *GROUPS)
    },
    "score": {"--workers": ONE_JOB, "--labels": "S_pri knows the labels, as in the papers"},
    "search": {"--labels": "S_pri knows the labels, as in the papers"},
    "train": {
        "--workers": ONE_JOB,
        "--checkpoint": "it starts from the weights of the seed, or goes on with --resume",
        "--labels": NO_ATTACK,
        "--images": "--fraction says how many it trains on, and all test images are tested",
    },
    "transforms": {
        "--out": "the one file that it draws is named by --sheet",
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--checkpoint": NO_WEIGHTS,
        "--labels": NO_ATTACK,
    },
    "transforms apply": {
        "--out": "where the copy goes is its second argument",
        **dict.fromkeys(["--device", "--workers"], NO_MODEL),
        "--root": NO_DATA,
        "--checkpoint": NO_WEIGHTS,
        "--labels": NO_ATTACK,
        "--images": "every image is transformed",
    },
}


def list_commands() -> dict[str, click.Command]:
    """List all commands that do something by themselves."""
    found = {name: load_command(name) for name in COMMANDS}
    groups = {name: command for name, command in found.items() if isinstance(command, click.Group)}
    below = {f"{name} {one}": command for name, group in groups.items() for one, command in group.commands.items()}
    alone = {name: command for name, command in found.items() if name not in groups or name == "transforms"}
    return {**alone, **below}


ALL = list_commands()


def options_of(command: click.Command) -> dict[str, click.Option]:
    return {name: one for one in command.params if isinstance(one, click.Option) for name in one.opts}


@pytest.mark.parametrize("path", ALL)
def test_a_common_option_is_there_or_has_a_reason(path: str) -> None:
    present = options_of(ALL[path])
    absent = {option for option in COMMON if option not in present}
    assert absent == set(ABSENT[path])
    assert all(ABSENT[path].values())


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--seed", "The one seed that every random draw comes from."),
        ("--device", "auto, cpu, cuda or cuda:N."),
        ("--workers", "Processes to use; the figures do not depend on it."),
        ("--quiet", "Print nothing but errors."),
        ("--json", "Print the JSON record to stdout and nothing else."),
        ("--root", "Folder that holds the data sets"),
        ("--labels", "known: the attacker is told the labels; hidden: it is not."),
        ("--resume", "Go on with the unfinished run in this folder"),
        ("--dry-run", "Run nothing: print how much work it is"),
    ],
)
def test_an_option_means_the_same_everywhere(option: str, words: str) -> None:
    found = {path: options_of(command)[option] for path, command in ALL.items() if option in options_of(command)}
    assert len(found) > 1
    assert {path: one.help for path, one in found.items() if not (one.help or "").startswith(words)} == {}


def test_out_is_a_folder_except_for_the_one_page_of_a_report() -> None:
    helps = {
        path: options_of(command)["--out"].help or ""
        for path, command in ALL.items()
        if path not in ("report",) and "--out" in options_of(command)
    }
    assert {path: text for path, text in helps.items() if not text.startswith("Folder ")} == {}


def test_the_default_model_is_the_same_everywhere() -> None:
    shown = {}
    for path, command in ALL.items():
        model = options_of(command).get("--model")
        if model is not None and not path.startswith(("reproduce", "inspect")):
            shown[path] = f"{model.default or ''} {model.help}"
    assert set(shown) == {"attack", "audit", "federate", "score", "search", "train"}
    assert {path: text for path, text in shown.items() if "lenet-relu" not in text} == {}


@pytest.mark.parametrize("path", ["audit", "search", "train", "federate"])
def test_what_can_be_resumed_can_be_estimated(path: str) -> None:
    assert {"--resume", "--dry-run", "--overwrite"} <= set(options_of(ALL[path]))
