"""What a forward and backward really did on CPU PyTorch: the ATen calls below autograd, in order, with shapes; the bytes
that live before each of them; and the tensors that autograd saved, by storage."""

import dataclasses
import gc

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclasses.dataclass(frozen=True)
class Call:
    phase: str  # "forward" or "backward"
    op: str  # "aten::addmm"; overloads that differ in how a number is passed are one operator
    inputs: tuple  # (shape, dtype) of each tensor argument
    outputs: tuple  # likewise
    live: int = dataclasses.field(compare=False)  # bytes of storages alive before the call, constants of the run left out

    def __str__(self):
        def text(values):
            return ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in values)

        return f"{self.phase} {self.op}({text(self.inputs)}) -> {text(self.outputs)}"


@dataclasses.dataclass(frozen=True)
class Saved:
    shape: tuple
    dtype: str
    storage: int  # number of the storage, in order of first saving
    nbytes: int
    name: str = dataclasses.field(compare=False)  # of the parameter, buffer or input that it is; "": a result

    def __str__(self):
        shape = ",".join(map(str, self.shape))
        return f"{self.dtype}[{shape}] of storage {self.storage} ({self.name or 'result'}, {self.nbytes:,} B)"


@dataclasses.dataclass
class Record:
    calls: list
    saved: list
    kept: int  # bytes that live between forward and backward
    peak: int  # of the bytes alive before each call


def described(value):
    return tuple(value.shape), str(value.dtype).removeprefix("torch.")


class Calls(TorchDispatchMode):
    """Records every call that reaches a kernel, and the storages that live meanwhile."""

    def __init__(self, constants):
        super().__init__()
        self.constants = constants  # data pointers of storages that are there before and after
        self.calls, self.phase, self.storages = [], "forward", {}

    def live(self):
        self.storages = {ref: size for ref, size in self.storages.items() if not ref.expired()}
        return sum(self.storages.values())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        live = self.live()
        inputs = tuple(described(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
        out = func(*args, **(kwargs or {}))
        tensors = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        name = "aten::" + func._schema.name.removeprefix("aten::")
        self.calls.append(Call(self.phase, name, inputs, tuple(map(described, tensors)), live))
        for t in tensors:
            storage = t.untyped_storage()
            if storage.data_ptr() and storage.data_ptr() not in self.constants:
                self.storages[StorageWeakRef(storage)] = storage.nbytes()
        return out


def loss_of(outputs):
    """A scalar that depends on every output that has a gradient."""
    return sum((t.sum() for t in outputs if t.requires_grad), start=torch.zeros(()))


def record(forward, names):
    """`forward` makes a list of the output tensors. `names`: tensor → name, of the parameters, buffers and inputs."""
    pointers = {t.untyped_storage().data_ptr(): name for t, name in names}

    saved, numbers, held = [], {}, {}

    def pack(t):
        storage = t.untyped_storage()
        held[storage.data_ptr()] = storage  # so that no other one gets its address
        number = numbers.setdefault(storage.data_ptr(), len(numbers))
        saved.append(Saved(*described(t), number, storage.nbytes(), pointers.get(storage.data_ptr(), "")))
        return t

    torch.manual_seed(0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        outputs = forward()
    del outputs
    gc.collect()

    torch.manual_seed(0)
    with Calls(set(pointers)) as calls:
        outputs = forward()
        kept = calls.live()
        calls.phase = "loss"
        loss = loss_of(outputs)
        if loss.requires_grad:
            calls.phase = "backward"
            loss.backward()
    for t, _ in names:
        t.grad = None
    relevant = [c for c in calls.calls if c.phase != "loss"]
    return Record(relevant, saved, kept, max((c.live for c in relevant), default=0))
