"""Differentiable functions that are recorded once, as a flat list of tensor operations, and replayed from then on.

On small networks most of a step of gradient matching is not arithmetic: it is what torch does around each operation
for `vmap` and for two backward passes. A replay computes the same operations on the same numbers, to the last bit,
without that; what depends on no input is computed once.
"""

import logging
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from torch import Tensor, fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

log = logging.getLogger(__name__)
Function = Callable[..., Tensor]
AFTER = 32
"""Calls of one kind before they are recorded: recording takes as long as about ten of them."""


@final
class Recorder:
    """Call functions of tensors that return one tensor; after `AFTER` calls of one kind, replay them.

    Calls are of one kind if they have the same `key` and inputs of the same form: a key must stand for one function and
    all that it reads beside its inputs. Only first derivatives can be taken of a replay. A function that draws at
    random, that leaves something written, or whose replay differs in a single bit is never replayed.
    """

    def __init__(self) -> None:
        self.kind: Hashable = None
        self.calls = 0
        self.recording: Recording | None = None

    def __call__(self, function: Function, key: Hashable, *inputs: Tensor) -> Tensor:
        if not torch.is_grad_enabled() or not any(each.requires_grad for each in inputs):
            return function(*inputs)
        kind = (key, *((each.shape, each.stride(), each.dtype, each.device, each.requires_grad) for each in inputs))
        if kind != self.kind:
            self.kind, self.calls, self.recording = kind, 0, None
        self.calls += 1
        if self.calls == AFTER:
            self.recording = record(function, inputs)
        if self.recording is None:
            return function(*inputs)
        return self.recording(inputs)


@dataclass(frozen=True, eq=False)
class Recording:
    """Two lists of operations.

    `forward` takes the inputs and returns the value and what is kept for `backward`; that takes what was kept and the
    slope at the value, and returns the slopes at the inputs at `places`.
    """

    forward: fx.GraphModule
    backward: fx.GraphModule
    places: tuple[int, ...]

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        return cast(Tensor, Replay.apply(self, *inputs))  # type: ignore[no-untyped-call]


@final
class Replay(torch.autograd.Function):
    """A recording as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, *inputs: Tensor) -> Tensor:
        value, *kept = recording.forward(*inputs)
        ctx.recording, ctx.count = recording, len(inputs)
        ctx.save_for_backward(*kept)
        return cast(Tensor, value)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        slopes = ctx.recording.backward(*ctx.saved_tensors, slope)
        found = dict(zip(ctx.recording.places, slopes, strict=True))
        return (None, *(found.get(place) for place in range(ctx.count)))


def record(function: Function, inputs: Sequence[Tensor]) -> Recording | None:
    """Record a function; None if it cannot be, or if its replay would not be the same."""
    others = [each.detach().flip(0, -1).requires_grad_(each.requires_grad) for each in inputs]
    try:
        with torch.random.fork_rng(devices=list({each.device for each in inputs if each.is_cuda})):
            recording = split(*write_down(function, inputs))
        same = all(agrees(recording, function, given) for given in (inputs, others))
    except Exception as error:  # what may stop a recording of somebody's model is open
        log.info("not replayed: %s", error)
        return None
    if not same:
        log.info("not replayed: a replay gives other numbers")
    return recording if same else None


def write_down(function: Function, inputs: Sequence[Tensor]) -> tuple[fx.GraphModule, tuple[int, ...]]:
    """List every operation of the function and of its derivative, which takes the slope as its first input."""
    leaves = copy_leaves(inputs)
    slope = make_slope(function(*leaves).detach())
    with Tape([slope, *leaves]) as tape:
        value = function(*leaves)
        results = (value.detach(), *differentiate(value, leaves, slope))
    return tape.finish(results), tuple(place for place, each in enumerate(inputs) if each.requires_grad)


@final
class Tape(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Write down every operation that depends on an input; what depends on none is a constant."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.constants: dict[str, Tensor] = {}
        # Weak, so that a recording takes no more memory than a call.
        self.nodes, self.fixed = WeakTensorKeyDictionary(), WeakTensorKeyDictionary()
        for number, tensor in enumerate(inputs):
            self.note(tensor, self.graph.placeholder(f"input_{number}"))

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        named = kwargs or {}
        if torch.Tag.nondeterministic_seeded in function.tags:
            raise NotImplementedError(f"{function} draws at random")
        result = function(*args, **named)
        if any(isinstance(each, Tensor) and each in self.nodes for each in tree_leaves((args, named))):
            self.refuse_lasting(function, args, named)
            given = tree_map_only(Tensor, self.find, (args, named))
            self.note(result, self.graph.call_function(function, *given))
        return result

    def refuse_lasting(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Refuse an operation that writes into what outlives a call: an input, or what depends on none."""
        given = dict(zip((each.name for each in function._schema.arguments), args, strict=False)) | named
        for argument in function._schema.arguments:
            if argument.is_write and self.find(given[argument.name]).op in ("placeholder", "get_attr"):
                raise NotImplementedError(f"{function} writes into a tensor that outlives a call")

    def note(self, result: object, node: fx.Node) -> None:
        """Note which node a tensor comes from; of several tensors, each on its own."""
        if isinstance(result, Tensor):
            self.nodes[result] = node
        elif isinstance(result, (tuple, list)):
            for number, part in enumerate(result):
                self.note(part, self.graph.call_function(operator.getitem, (node, number)))
        elif result is not None:
            raise NotImplementedError(f"{node.target} returns a plain {type(result).__name__}")

    def find(self, tensor: Tensor) -> fx.Node:
        """Return the node that a tensor comes from; a tensor that comes from none is a constant."""
        known = self.nodes.get(tensor, self.fixed.get(tensor))  # type: ignore[no-untyped-call]
        if known is None:
            name = f"constant_{len(self.constants)}"
            self.constants[name] = tensor.detach()
            known = self.fixed[tensor] = self.graph.get_attr(name)
        return cast(fx.Node, known)

    def finish(self, results: Sequence[Tensor]) -> fx.GraphModule:
        """Make a graph of what leads to these results."""
        self.graph.output(tuple(map(self.find, results)))
        self.graph.eliminate_dead_code()
        return fx.GraphModule(self.constants, self.graph)


def split(module: fx.GraphModule, places: tuple[int, ...]) -> Recording:
    """Part the operations that need the slope, which is the first input, from those that do not."""
    slope, *others, output = module.graph.nodes
    late = {slope: None}
    for node in others:
        if any(one in late for one in node.all_input_nodes):
            late[node] = None
    value, *slopes = output.args[0]
    needed = {one for node in (*late, *slopes) for one in node.all_input_nodes} | set(slopes)
    early = [node for node in others if node not in late]
    inputs = [node for node in early if node.op == "placeholder"]
    constants = [node for node in early if node.op == "get_attr"]
    kept = [node for node in early if node in needed and node not in constants]
    forward = subgraph(module, inputs, [node for node in early if node not in inputs], (value, *kept))
    backward = subgraph(module, [*kept, slope], [*constants, *list(late)[1:]], slopes)
    return Recording(forward, backward, places)


def subgraph(
    module: fx.GraphModule, inputs: Sequence[fx.Node], operations: Sequence[fx.Node], results: Sequence[fx.Node]
) -> fx.GraphModule:
    """Make a graph of some operations of another."""
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for number, node in enumerate(inputs):
        copies[node] = graph.placeholder(f"input_{number}")
    for node in operations:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in results))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph)


def agrees(recording: Recording, function: Function, inputs: Sequence[Tensor]) -> bool:
    """Compare a replay with the function, value and slopes, bit by bit."""
    ours, theirs = copy_leaves(inputs), copy_leaves(inputs)
    replayed, value = recording(ours), function(*theirs)
    slope = make_slope(value.detach())
    pairs = [(replayed, value)]
    pairs += zip(differentiate(replayed, ours, slope), differentiate(value, theirs, slope), strict=True)
    return all(one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in pairs)


def copy_leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy tensors without what they were computed from."""
    return [each.detach().requires_grad_(each.requires_grad) for each in tensors]


def differentiate(value: Tensor, leaves: Sequence[Tensor], slope: Tensor) -> tuple[Tensor, ...]:
    wanted = [each for each in leaves if each.requires_grad]
    return torch.autograd.grad(value, wanted, slope, materialize_grads=True, allow_unused=True)


def make_slope(value: Tensor) -> Tensor:
    """Make some slope at a value, the same at every call, with no two entries alike."""
    return torch.arange(value.numel(), device=value.device).cos().to(value.dtype).view(value.shape)
