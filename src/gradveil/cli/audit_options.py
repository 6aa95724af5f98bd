"""The options of `gradveil audit`. One that is not given leaves the value of the preset, or of the audit to resume."""

from pathlib import Path
from typing import Annotated

import typer

from gradveil.audit import PRESETS, AuditSettings
from gradveil.cli.options import HOW, MODEL_HELP, WHAT
from gradveil.training import BRIEF
from gradveil.types import ONE_GRADIENT

QUICK = AuditSettings()


CLIENT, ATTACKER, VERDICT, CAPTURED = "What a client does", "Who attacks", "What counts as a leak", "Captured rounds"


def option(name: str, text: str, default: object = None, heading: str = WHAT) -> object:
    """Declare an option without a default of its own; its help names the value of the preset `quick`."""
    shown = text if default is None else f"{text} [quick: {default}]"
    return typer.Option(name, help=shown, rich_help_panel=heading)


PresetName = Annotated[
    str | None,
    option("--preset", f"The values of all options that are not given: {', '.join(PRESETS)}. [default: quick]"),
]
DataName = Annotated[
    str | None, option("--data", "A name of 'gradveil data list', folder:PATH or npz:PATH for your own.", QUICK.data)
]
ModelName = Annotated[str | None, option("--model", MODEL_HELP, QUICK.model)]
Defences = Annotated[
    list[str] | None,
    option(
        "--defence",
        "An arm: crop-flip, or defences, ours or your own, as policy:3-1-7,gaussian:1e-3. Repeat for more arms.",
    ),
]
Policies = Annotated[
    list[str] | None, option("--policy", "Short for --defence policy:X; X may be the policies.json of a search.")
]
NoControl = Annotated[
    bool,
    typer.Option(
        "--no-control", help="Do not add the arm none, which shows that the attack works at all.", rich_help_panel=WHAT
    ),
]
Phases = Annotated[list[str] | None, option("--phase", "init, step-N, epoch-N or final. Repeat for more phases.")]
Attacks = Annotated[
    list[str] | None,
    option("--attack", "By name, or your own as package.module:object. Repeat for more.", heading=ATTACKER),
]
Images = Annotated[
    str | None, option("--images", "Test images: how many at most, or their places, as in 3,14,15.", QUICK.images)
]
AllImages = Annotated[
    bool,
    typer.Option(
        "--all-images", help="Attack all of them, even where fewer settle the question.", rich_help_panel=WHAT
    ),
]
Labels = Annotated[
    str | None,
    option("--labels", "known: the attacker is told the labels; hidden: it is not.", QUICK.labels, heading=ATTACKER),
]

Untold = Annotated[
    bool,
    typer.Option(
        "--untold",
        help="Do not tell the attacker the arm's defences; it never knows their draws.",
        rich_help_panel=ATTACKER,
    ),
]
Steps = Annotated[
    int | None, option("--steps", "Steps of the attack, or each member, instead of its own.", heading=ATTACKER)
]

Budget = Annotated[
    float | None,
    option(
        "--budget",
        "Seconds of search for one image, shared by all members; turned into gradients once, here.",
        heading=ATTACKER,
    ),
]

Epochs = Annotated[int | None, option("--epochs", "Epochs of the training before the later phases.", BRIEF.epochs)]
CheckpointFile = Annotated[
    Path | None,
    option("--checkpoint", "Attack these weights: a file of 'gradveil train', or a state_dict (then with --model)."),
]
LossName = Annotated[str | None, option("--loss", "Loss of the training, as cross-entropy:smoothing=0.1.", BRIEF.loss)]
Epsilon = Annotated[
    float | None,
    option("--epsilon", "Decibels over chance that an attack must reach.", QUICK.rule.epsilon, heading=VERDICT),
]

Delta = Annotated[
    float | None,
    option("--delta", "Share of images that it may reach before it is a leak.", QUICK.rule.delta, heading=VERDICT),
]

Gamma = Annotated[
    float | None, option("--gamma", "Accuracy that a defence may cost, as a share.", QUICK.rule.gamma, heading=VERDICT)
]

Canary = Annotated[
    int | None,
    option("--canary", "Attack so many readable cards as well, and try to read what was rebuilt.", heading=VERDICT),
]

FailAbove = Annotated[
    float | None,
    option(
        "--fail-above",
        "Exit with 3 if a defended arm leaks and its mean or a confirmed image lies above, in dB.",
        heading=VERDICT,
    ),
]

Participants = Annotated[
    int | None,
    option(
        "--participants", "Attack the mean of so many clients' updates, as secure aggregation does.", heading=CLIENT
    ),
]

ImagesPerClient = Annotated[
    int | None, option("--images-per-client", "Images that a client has; they go into one update.", 1, heading=CLIENT)
]

LocalSteps = Annotated[
    int | None,
    option("--local-steps", "Steps that a client takes before it releases its weight change.", heading=CLIENT),
]

LocalEpochs = Annotated[
    int | None,
    option("--local-epochs", "Passes over its images that a client makes, instead of steps.", heading=CLIENT),
]

LocalBatchSize = Annotated[
    int | None,
    option("--local-batch-size", "Images of a local step; all that the client has unless given.", heading=CLIENT),
]

LocalRate = Annotated[
    float | None,
    option("--local-learning-rate", "Learning rate of local steps.", ONE_GRADIENT.learning_rate, heading=CLIENT),
]

LocalMomentum = Annotated[
    float | None, option("--local-momentum", "Momentum of local steps with sgd.", ONE_GRADIENT.momentum, heading=CLIENT)
]

LocalOptimiser = Annotated[
    str | None,
    option("--local-optimiser", "sgd, adam or muon (the fast recipe's).", ONE_GRADIENT.optimiser, heading=CLIENT),
]

Shuffle = Annotated[
    bool,
    typer.Option(
        "--local-shuffle", help="Take the images in a new random order at every pass.", rich_help_panel=CLIENT
    ),
]
ModeName = Annotated[
    str | None,
    option(
        "--mode",
        "Batch normalisation and dropout as in eval (a diagnostic) or train.",
        ONE_GRADIENT.mode,
        heading=CLIENT,
    ),
]

Capsules = Annotated[
    list[Path] | None,
    option("--capsule", "Attack a captured round instead, a file of capsules/. Repeat for more.", heading=CAPTURED),
]

Together = Annotated[
    bool,
    typer.Option(
        "--together",
        help="Attack the capsules of a client that show the same number and labels as one.",
        rich_help_panel=CAPTURED,
    ),
]
Truths = Annotated[
    list[Path] | None, option("--truth", "The truth part of a capsule that does not lie beside it.", heading=CAPTURED)
]

SeedOrNone = Annotated[int | None, option("--seed", "The one seed that every random draw comes from.", 0, heading=HOW)]
