"""The annex: which kinds of attack this audit covers, and which it does not."""

from dataclasses import dataclass

from gradveil.reports.audit_record import Record


@dataclass(frozen=True)
class Risk:
    """One kind of attack: whether it is in scope, whether it was run, how, on how many images, with which limits."""

    name: str
    question: str
    scope: str
    run: str
    method: str
    count: str
    limits: str


def make_annex(record: Record) -> list[Risk]:
    """List the kinds of attack that a data-protection assessment asks about."""
    return [describe_reconstruction(record), describe_membership(), describe_attributes(record), describe_inversion()]


def describe_reconstruction(record: Record) -> Risk:
    rows, settings = record["rows"], record["settings"]
    sound = sum(row["status"] == "ok" for row in rows)
    attacks = ", ".join(settings.get("attacks") or record["attacker_needs"])
    images = len({row["image"] for row in rows})
    return Risk(
        "Reconstruction",
        "Can someone who receives an update rebuild the picture behind it?",
        "in scope",
        "run",
        f"{attacks}; judged against a wrong-gradient control and the best guess without any update",
        f"{images} images, {sound} of {len(rows)} attacks with a result",
        "These attacks with this effort, these images, this model at these phases. A stronger attack may succeed. An "
        "attack without a result counts as nothing, not as protection.",
    )


def describe_membership() -> Risk:
    return Risk(
        "Membership inference",
        "Can someone tell whether a picture was used in training?",
        "not in scope",
        "not run",
        "none",
        "0",
        "Nothing here says anything about it, neither for the updates nor for the finished model.",
    )


def describe_attributes(record: Record) -> Risk:
    limits = "Nothing here says anything about properties of people or of a client's data as a whole."
    if record["settings"].get("labels") == "hidden":
        limits += " Only the class of each image was read from the update; the table of images has it as 'label found'."
        return Risk(
            "Attribute inference",
            "Can someone learn a property that the picture does not name?",
            "class label only",
            "as part of the reconstruction",
            "the label is read from the update",
            f"{len(record['rows'])} attacks",
            limits,
        )
    return Risk(
        "Attribute inference",
        "Can someone learn a property that the picture does not name?",
        "not in scope",
        "not run",
        "none",
        "0",
        limits + " The attacker was given the class of each image.",
    )


def describe_inversion() -> Risk:
    return Risk(
        "Model inversion",
        "Can someone draw typical or training pictures out of the finished model?",
        "not in scope",
        "not run",
        "none",
        "0",
        "The attacks here start from one client's update. The finished model by itself was not attacked.",
    )
