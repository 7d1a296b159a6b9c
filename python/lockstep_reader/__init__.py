"""Reads what lockstep leaves behind: runs, checkpoints, sweeps, predictions. See docs/python.md.

Needs nothing but Python 3.11; numpy, pandas and torch are imported where they are asked for. Nothing here writes a file.
"""
from ._version import VERSION as __version__
from .checkpoint import Checkpoint, open_checkpoint
from .columns import Columns
from .errors import DamagedError, FitError, MissingError, ReaderError, UnsupportedError
from .event_types import Event
from .events import EventLog, parse_event, read_events
from .fit import Fit
from .history import Best, Status
from .predictions import ClassScore, Prediction, read_predictions
from .run import Run, open_run
from .safetensors import Tensors, WeightsFile, open_weights
from .schema import Schema, schema_of
from .sweeps import Sweep, Trial, open_sweep, read_trials_csv
from .tensor import Tensor
from .torch_weights import load_into

__all__ = ["Best", "Checkpoint", "ClassScore", "Columns", "DamagedError", "Event", "EventLog", "Fit", "FitError",
           "MissingError", "Prediction", "ReaderError", "Run", "Schema", "Status", "Sweep", "Tensor", "Tensors",
           "Trial", "UnsupportedError", "WeightsFile", "load_into", "open_checkpoint", "open_run", "open_sweep",
           "open_weights", "parse_event", "read_events", "read_predictions", "read_trials_csv", "schema_of",
           "__version__"]
