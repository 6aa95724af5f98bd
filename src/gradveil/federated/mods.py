"""A client mod for Flower apps: defend the update before it leaves the client, or send nothing."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import final

import numpy as np
import torch
from torch import Tensor

from gradveil.defences import Defence, defend_release, parse_defences
from gradveil.errors import GradveilError, SettingsError
from gradveil.federated.app_model import AppModel, find_arrays, find_count, is_training
from gradveil.federated.flower import Array, ArrayRecord, Context, Error, Message, RecordDict
from gradveil.federated.flower_internals import REFUSED, find_inner_mod, is_inside_dp_mod
from gradveil.federated.memory import remembering
from gradveil.types import Update

log = logging.getLogger(__name__)

CallNext = Callable[[Message, Context], Message]
DEFENCE = "gradveil-defence"
BUFFERS = "gradveil-buffers"
FORM = f"{DEFENCE}='clip:1,gaussian:1e-3'"
STATE = slice(3, 3 + 624)
"""Where the state of the Mersenne Twister stands in torch's 64-bit words."""


@final
class DefenceMod:
    """Apply defences to the weight change of a reply, as the last of an app's mods.

    The node's own settings decide, never the run's, which the server controls: `gradveil-defence` names the defences,
    with commas between, `none` for none; `gradveil-buffers` is `send`, or `keep` to reply with the buffers that came
    in. `default` stands in for `gradveil-defence` where a node has no settings, as in a simulation. Anything that goes
    wrong ends in an error reply without content.
    """

    def __init__(self, app: AppModel, default: str | None = None) -> None:
        self.app, self.default = app, default
        if default is not None:
            parse_update_defences(default)

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        """Let the app work, and defend its reply."""
        try:
            if not is_training(message):
                return refuse_arrays(call_next(message, context))
            return self.defend(message, context, call_next)
        # Whatever it is, nothing undefended may leave.
        except Exception as error:
            return refuse(message, "DefenceMod", explain(error))

    def defend(self, message: Message, context: Context, call_next: CallNext) -> Message:
        defences = self.read_defences(context)
        keeps_buffers = read_choice(context, BUFFERS, ("send", "keep")) == "keep"
        self.check_place(call_next)
        sent = self.app.read_sent(message)
        with remembering() as memory:
            reply = call_next(message, context)
            if reply.has_error():
                return reply
            trained = self.app.read_reply(reply)
            self.check_frozen(sent, trained)
            memory.defences = defences
            memory.change = {name: trained[name] - sent[name] for name in self.app.trained}
        update = Update(memory.change, find_count(reply.content), self.app.local)
        released = {**trained, **self.release(sent, update, defences)}
        if keeps_buffers:
            released |= {name: sent[name] for name in self.app.buffers}
        return replace_arrays(message, reply, released)

    def read_defences(self, context: Context) -> tuple[Defence, ...]:
        """Read the defences from the node's settings."""
        text = context.node_config.get(DEFENCE, self.default)
        if not isinstance(text, str):
            raise SettingsError(
                f"the node's settings have {DEFENCE} = {text!r}: name defences, such as {FORM}, or none"
            )
        return parse_update_defences(text)

    def check_place(self, call_next: CallNext) -> None:
        """Refuse a place among the mods where something else changes the update, or takes it for weights."""
        inner = find_inner_mod(call_next)
        if inner is not None:
            name = getattr(inner, "__name__", type(inner).__name__)
            raise SettingsError(f"{name} comes after DefenceMod: put DefenceMod last in the list of mods")
        if self.app.sends == "difference" and is_inside_dp_mod():
            raise SettingsError(
                "Flower's differential privacy mods take a reply for weights, and this app sends differences: remove "
                "the mod, and name clip and gaussian as defences"
            )

    def check_frozen(self, sent: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> None:
        """Refuse a change of parameters that are not trained: it would leave undefended."""
        for name in sent.keys() - set(self.app.trained) - set(self.app.buffers):
            if not torch.equal(sent[name], trained[name]):
                raise SettingsError(f"the app changed '{name}', which the model has as frozen: train it, or leave it")

    def release(self, sent: Mapping[str, Tensor], update: Update, defences: tuple[Defence, ...]) -> dict[str, Tensor]:
        """Defend the change of the weights, and put it back into the form that is sent."""
        defended = defend_release(defences, update, make_secret_generator()).tensors
        weights = self.app.sends == "weights"
        released = {name: sent[name] + tensor if weights else tensor for name, tensor in defended.items()}
        for name, tensor in released.items():
            if tensor.shape != sent[name].shape or not torch.isfinite(tensor).all():
                raise SettingsError(f"the defences made '{name}' another shape or not finite: choose other settings")
        return released


def parse_update_defences(text: str) -> tuple[Defence, ...]:
    """Read defences that act on an update alone."""
    defences = parse_defences(text.split(",")) if text != "none" else ()
    for defence in defences:
        if defence.hooks != ("release",):
            raise SettingsError(
                f"{defence} acts on {', '.join(defence.hooks)}, which a mod does not see: a mod takes defences of "
                f"updates, such as {FORM}; give a policy to the data loader"
            )
    return defences


def read_choice(context: Context, key: str, allowed: tuple[str, ...]) -> str:
    """Read one of several words from the node's settings; the first is the default."""
    value = context.node_config.get(key, allowed[0])
    if value not in allowed:
        raise SettingsError(f"the node's settings have {key} = {value!r}: choose {' or '.join(allowed)}")
    return str(value)


def make_secret_generator() -> torch.Generator:
    """Make a generator whose whole state comes from the operating system.

    A seed would not do: torch uses 32 bits of it, and whoever tries them all subtracts the noise.
    """
    generator = torch.Generator()
    words = generator.get_state().numpy().copy().view(np.uint64)
    words[STATE] = np.frombuffer(os.urandom(4 * 624), np.uint32)
    generator.set_state(torch.from_numpy(words.view(np.uint8)))
    return generator


def replace_arrays(message: Message, reply: Message, tensors: Mapping[str, Tensor]) -> Message:
    """Make a new reply with other arrays, in the order and under the keys that the app chose."""
    arrays = find_arrays(reply)
    values = list(tensors.values())
    new = ArrayRecord({key: Array(value.numpy()) for key, value in zip(arrays, values, strict=True)})
    content = {key: new if record is arrays else record for key, record in reply.content.items()}
    return Message(RecordDict(content), reply_to=message)


def refuse_arrays(reply: Message) -> Message:
    """Let a reply to another message than training pass unless it carries arrays: nobody defended them."""
    if reply.has_content() and reply.content.array_records:
        raise SettingsError("a reply to something else than training carries arrays: only training may send them")
    return reply


def explain(error: Exception) -> str:
    """Say what went wrong. What a foreign exception says may hold data: it goes to the log, only its kind leaves."""
    if isinstance(error, GradveilError):
        return str(error)
    log.error("a mod met an unexpected error", exc_info=error)
    return type(error).__name__


def refuse(message: Message, who: str, reason: str) -> Message:
    """Reply that nothing is sent, and why."""
    log.warning("%s sends nothing: %s", who, reason)
    return Message(Error(REFUSED, f"{who} sends nothing: {reason}"), reply_to=message)
