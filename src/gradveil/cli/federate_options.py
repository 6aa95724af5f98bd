"""The options of `gradveil federate`."""

from typing import Annotated

import typer

from gradveil.cli.options import DEFENCE_HELP, WHAT

TRAINING, CURIOUS, EXCHANGE = "How clients train", "What is captured and attacked", "How updates travel"

Clients = Annotated[
    int, typer.Option("--clients", help="Participants; each image belongs to one of them.", rich_help_panel=WHAT)
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", help="Default: as many as 12 passes over all images take.", rich_help_panel=TRAINING),
]
AlgorithmName = Annotated[
    str,
    typer.Option(
        "--algorithm",
        help="fedsgd: clients send gradients; fedavg: weight changes of local training.",
        rich_help_panel=TRAINING,
    ),
]
PolicyText = Annotated[
    str,
    typer.Option(
        "--policy", help="Transform every image, e.g. by 3-1-7+43-18-18 or policies.json.", rich_help_panel=WHAT
    ),
]
Base = Annotated[
    bool,
    typer.Option(
        "--base/--no-base", help="Random crop and flip of every image, before the policy.", rich_help_panel=WHAT
    ),
]
Defences = Annotated[
    list[str] | None,
    typer.Option("--defence", help=f"{DEFENCE_HELP}; after the policy. Repeat for more.", rich_help_panel=WHAT),
]
ModeName = Annotated[
    str,
    typer.Option("--mode", help="Batch normalisation and dropout as in train or as in eval.", rich_help_panel=TRAINING),
]
PartitionName = Annotated[
    str,
    typer.Option("--partition", help="iid, dirichlet:ALPHA, classes:K, or by-class (classes:2).", rich_help_panel=WHAT),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="Images of a client's gradient, or of a local step. Default: 64 / clients; 8.",
        rich_help_panel=TRAINING,
    ),
]
LocalEpochs = Annotated[
    int | None,
    typer.Option(
        "--local-epochs",
        help="Passes over its images in a round of fedavg, instead of steps.",
        rich_help_panel=TRAINING,
    ),
]
LocalSteps = Annotated[
    int | None,
    typer.Option("--local-steps", help="Steps of a round of fedavg; 5 unless given.", rich_help_panel=TRAINING),
]
LocalOptimiser = Annotated[
    str,
    typer.Option("--local-optimiser", help="Optimiser of local steps: sgd, adam or muon.", rich_help_panel=TRAINING),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate", help="The server's with fedsgd, the clients' with fedavg.", rich_help_panel=TRAINING
    ),
]
LocalMomentum = Annotated[
    float, typer.Option("--local-momentum", help="Momentum of local steps.", rich_help_panel=TRAINING)
]
ServerMomentum = Annotated[
    float,
    typer.Option(
        "--server-momentum",
        help="Momentum of the server with fedavg; 0 adds the mean change alone.",
        rich_help_panel=TRAINING,
    ),
]
Capture = Annotated[
    str,
    typer.Option("--capture", help="Rounds whose updates are kept as capsules, e.g. 1,10.", rich_help_panel=CURIOUS),
]
KeepTruth = Annotated[
    bool,
    typer.Option("--keep-truth", help="Let clients keep the images behind captured updates.", rich_help_panel=CURIOUS),
]
Checkpoints = Annotated[
    str, typer.Option("--checkpoints", help="Rounds whose weights are kept, e.g. 1,100.", rich_help_panel=CURIOUS)
]
Engine = Annotated[
    str, typer.Option("--engine", help="in-process, ray (Flower's simulation) or deployment.", rich_help_panel=EXCHANGE)
]
TopologyOption = Annotated[
    str,
    typer.Option(
        "--topology",
        help="server; or without one: ring or full (each participant with all others).",
        rich_help_panel=EXCHANGE,
    ),
]
Observer = Annotated[
    int,
    typer.Option(
        "--observer", help="The participant whose view is captured if there is no server.", rich_help_panel=EXCHANGE
    ),
]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="Secure aggregation (SecAgg+): the server gets the mean of all updates only.",
        rich_help_panel=EXCHANGE,
    ),
]
LeastValid = Annotated[
    int | None,
    typer.Option(
        "--least-valid", help="Valid replies that a round needs; more than half unless given.", rich_help_panel=EXCHANGE
    ),
]
LargestNorm = Annotated[
    float, typer.Option("--largest-norm", help="An update with a larger norm is dropped.", rich_help_panel=EXCHANGE)
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", help="Seconds that the server waits for the replies of a round.", rich_help_panel=EXCHANGE
    ),
]
Observe = Annotated[
    str,
    typer.Option(
        "--observe",
        help="Rounds whose updates the server attacks when training is over, e.g. 1,10.",
        rich_help_panel=CURIOUS,
    ),
]
ObserveAttack = Annotated[
    str,
    typer.Option(
        "--observe-attack", help="The attack of the curious server, ours or your own.", rich_help_panel=CURIOUS
    ),
]
ObserveSteps = Annotated[
    int | None,
    typer.Option(
        "--observe-steps", help="Steps of that attack, or of each member, instead of its own.", rich_help_panel=CURIOUS
    ),
]
ObserveTogether = Annotated[
    bool,
    typer.Option(
        "--together",
        help="Attack the observed rounds of a client that show the same images as one.",
        rich_help_panel=CURIOUS,
    ),
]
