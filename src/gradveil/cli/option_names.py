"""The options of every command, so that a mistyped one is told before the command, and torch, are imported."""

from difflib import get_close_matches

from gradveil.errors import InputError

PAPER = (
    "table-1a table-1b table-1c table-1d table-2 table-3 table-4a table-4b table-5 figure-1 figure-2 figure-3 figure-4 "
    "figure-5 figure-6 claim-1 claim-2 claim-3 claim-4 claim-5 claim-6 claim-7 extension-1 extension-2 quirks "
    "k-batch-size k-width k-depth k-local-epochs k-training k-restarts anchor table-1 table-4 k-points all"
)
"""The experiments of the published study, which all have the same options."""
OPTIONS: dict[str, str] = {
    **dict.fromkeys(
        [f"reproduce {name}" for name in PAPER.split()],
        "data-root device dry-run ledger out quiet ray root scale table workers",
    ),
    "attack": (
        "attack budget checkpoint data defence device images json knows-defence labels model "
        "out overwrite phase quiet root seed steps threads"
    ),
    "audit": (
        "all-images attack budget canary capsule checkpoint data defence delta device dry-run "
        "epochs epsilon fail-above gamma images images-per-client json labels "
        "local-batch-size local-epochs local-learning-rate local-momentum local-optimiser "
        "local-shuffle local-steps loss mode model no-control no-originals no-pictures out overwrite "
        "participants phase policy preset quiet ray resume root seed steps together truth "
        "untold workers"
    ),
    "federate": (
        "algorithm base batch-size capture checkpoints clients data defence dry-run engine "
        "json keep-truth largest-norm learning-rate least-valid local-epochs local-momentum "
        "local-optimiser local-steps mode model no-base observe observe-attack observe-steps "
        "observer out overwrite partition policy quiet resume root rounds secure seed "
        "server-momentum timeout together topology workers"
    ),
    "inspect": "data fail json model out overwrite quiet root seed",
    "report": "json no-originals no-pictures out quiet verify",
    "score": (
        "accuracy-form batches checkpoint data device figure form images json model out "
        "overwrite quadrature quiet root seed start threads"
    ),
    "search": (
        "accuracy-batches accuracy-sample accuracy-threshold candidates checkpoint data "
        "device dry-run epochs error images json keep length model out overwrite quadrature "
        "quiet ray resume root score seed select status strategy validate validate-attack "
        "validate-images validate-steps workers"
    ),
    "train": (
        "base batch-size data defence device dry-run epochs fraction json learning-rate model "
        "no-base out overwrite policy quiet recipe resume root seed snapshots test-every "
        "threads"
    ),
    "check-dp": (
        "clip delta epsilon flower json nvflare opacus out overwrite quiet rounds sampling sensitivity weights"
    ),
    "data": "",
    "data list": "json quiet root",
    "data info": "json quiet root",
    "data get": "json mirror quiet root",
    "reproduce": "",
    "reproduce single-transforms": (
        "checkpoint data epochs form fraction images json model out quadrature quiet root seed start"
    ),
    "reproduce verdict": "colour json out part quiet ray root table workers",
    "reproduce federated": "json out part quiet ray table workers",
    "reproduce policies-hide": "arm attack data images json model out quiet root seeds table",
    "reproduce told-defences": "arm json out quiet table",
    "reproduce batches": "attack data images json model out quiet root table",
    "reproduce local-steps": "json out part quiet table",
    "reproduce attackers": "colour data json out part quiet root table",
    "reproduce attacks": "colour epochs json model out part quiet root seed table",
    "reproduce defences": "attack colour epochs json out part quiet ray root steps table workers",
    "reproduce scores": "json model out policies quiet seed table",
    "transforms": "catalogue data images json policy quiet root seed sheet",
    "transforms apply": "catalogue json overwrite policy quiet seed",
}
"""By what is typed, without the hyphens; a test compares it with the commands themselves."""
HELP = {"--help"}


def check_options(words: list[str]) -> None:
    """Refuse an option that the command does not have; what follows another option may be its value."""
    path = next((path for path in (" ".join(words[:2]), " ".join(words[:1])) if path in OPTIONS), None)
    if path is None or names_a_missing_command(words, path):
        return
    known = {f"--{name}" for name in OPTIONS[path].split()} | HELP
    for before, word in zip([path, *words], words, strict=False):
        name = word.partition("=")[0]
        if word == "--":
            return
        if name.startswith("--") and name not in known and not before.startswith("-"):
            raise InputError(say_unknown(name, sorted(known), f"gradveil {path}"))


def names_a_missing_command(words: list[str], path: str) -> bool:
    """Tell whether a command with others below it is followed by a name that none of them has."""
    has_others = any(other.startswith(f"{path} ") for other in OPTIONS)
    return path == words[0] and has_others and not "".join(words[1:2]).startswith("-")


def say_unknown(name: str, known: list[str], command: str) -> str:
    """Say that there is no such option, and which one is near."""
    near = get_close_matches(name, known, n=1)
    hint = f", did you mean {near[0]}?" if near else ""
    return f"there is no option {name}{hint}; see {command} --help"
