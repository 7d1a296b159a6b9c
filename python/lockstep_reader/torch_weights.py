"""A checkpoint's weights in a PyTorch module."""
from collections.abc import Mapping

from .checkpoint import Checkpoint
from .errors import FitError, MissingError, optional_module
from .fit import Fit, Names, fit_of
from .flattened import Flattened, flattened_in, flattened_of, order_of_torch
from .safetensors import Tensors, WeightsFile


def load_into(module, source: Tensors, names: Names = None, *, flattened: Mapping[str, int] | None = None,
              strict: bool = True) -> Fit:
    """Copies the weights of a Checkpoint or a WeightsFile into a torch.nn.Module, in place, whatever its device and type,
    and returns what went where.

    `names`: from the module's names to the checkpoint's (fit.py says how); by default they are the same, but that
    `running_var` is called `running_variance` here. `flattened`: for tensors behind a flattened image, by the checkpoint's
    name, the number of channels of that image: their last dimension is put into PyTorch's order. By default it is what the
    checkpoint says, and the rows of layers that make an image are turned, too; {} turns nothing.

    Raises FitError, with all that does not fit, before anything is copied; with `strict=False` only if nothing fits.
    Raises MissingError where it is not known which tensors are behind a flattened image, and DamagedError.
    """
    torch = optional_module("torch", "load_into()")
    weights = source.weights() if isinstance(source, Checkpoint) else source.shapes()
    states = {name for name in weights if name.endswith((".running_mean", ".running_variance", ".running_var"))}
    entries = module.state_dict()
    buffers = {name for name, _ in module.named_buffers()}
    fit = fit_of(source.path, {name: tuple(entry.shape) for name, entry in entries.items()}, buffers, weights, states, names)
    if not fit.pairs or (strict and not fit.is_whole):
        raise FitError(source.path, f"weights for all of {type(module).__name__}, and no others",
                       f"{len(fit.pairs)} that fit and {len(fit.problems())} problems",
                       "\n  ".join(["say names=, or strict=False to load what fits:", *fit.problems()]), fit)
    turned = _turned(source, flattened, weights)
    with torch.no_grad():
        for name, of in fit.pairs.items():
            values = source.read(of).torch()
            for axis, channels in ((-1, turned.channels.get(of, 1)), (0, turned.rows.get(of, 1))):
                if 1 < channels < values.shape[axis]:
                    values = values.index_select(axis, torch.tensor(order_of_torch(values.shape[axis], channels)))
                    if name not in fit.turned:
                        fit.turned.append(name)
            entries[name].copy_(values)
    return fit


def _turned(source, flattened, weights) -> Flattened:
    if flattened is not None:
        for name, count in flattened.items():
            if name not in weights or count < 1 or weights[name][-1] % count:
                raise MissingError(f"{source.path}: flattened", "tensors, and channels that divide their last dimension",
                                   f"{count} for '{name}'", "shapes() has all names and shapes")
        return Flattened(dict(flattened))
    found = _known(source, weights)
    if found.unclear:
        raise MissingError(source.path, "to know which tensors are behind a flattened image, since PyTorch flattens it in "
                           "another order", f"{found.unclear}, behind which that is unclear",
                           "say flattened={tensor's name: the image's channels}, or flattened={} if there is none")
    return found


def _known(source, weights) -> Flattened:
    if isinstance(source, Checkpoint):
        return flattened_in(source.metadata) or flattened_of(source.job, source.data)
    if isinstance(source, WeightsFile) and source.metadata.get("format") == "pt":
        return Flattened()
    if not any(len(shape) == 2 for shape in weights.values()):
        return Flattened()  # no linear layer
    return Flattened(unclear="a file without a job")
