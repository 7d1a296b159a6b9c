"""The events of a run. Written by scripts/python_events.py from `lockstep events --markdown`."""
from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict, overload


class Start(TypedDict):
    """Training begins, or begins again after a restart."""
    event: Literal["start"]
    job: str  # name of the job
    ranks: int  # number of ranks
    threads: int  # worker threads of rank 0
    hosts: int  # hosts that the ranks run on
    micro_batches: int  # micro-batches that each batch is cut into
    batch_size: int  # samples of a step, over all ranks
    parameters: int  # elements of all parameters of the model
    trained: NotRequired[int]  # where some are frozen: elements of those that are trained
    states: int  # elements of its states, such as running means
    steps: int  # steps of the whole job
    epochs: float  # the same in passes over the training set
    device: str  # what rank 0 computes on, and with which libraries
    samples: int  # samples of the training set
    validation_samples: int  # samples of the validation set; 0: there is none
    fingerprint: str  # hash of what the kernels of all ranks compute
    exactness: str  # "bitwise", or what is promised instead
    first_micro_batch_seconds: float  # s; time that the check of the job's own kernels took
    arena_bytes: int  # bytes; memory for the activations and gradients of a micro-batch
    seconds: float  # s; time that the set-up took
    version: str  # version of lockstep
    # where checkpoints, events and the rest of the run are, as the job says it; absent with `checkpoint: never
    run_directory: NotRequired[str]
    plugins: NotRequired[str]  # the plugins of the job, with the first digits of their files' SHA-256
    higher_is_better: NotRequired[str]  # those of the job's metrics of which more is better, if it has any: "accuracy f1"
    algorithms: NotRequired[str]  # algorithms that libraries chose for kernels, a layer per line
    micro_batches_chosen: NotRequired[str]  # why there are that many micro-batches, where the job does not say
    inputs: NotRequired[str]  # on GPUs: where the inputs of a step are prepared
    initialized: NotRequired[str]  # with `initialize`, where the run begins: which tensors have values of the file
    weights: NotRequired[str]  # with weights of samples, how the loss counts them
    # hash of what training and validation samples are of, before any are held out or drawn again
    data_sha256: NotRequired[str]
    # files and folders that training and validation samples are read from, one per line, each after a hash of what it holds,
    # whatever settings it is read with
    sources: NotRequired[str]
    index: NotRequired[str]  # whether the index of the data set was read ("cached") or built ("made")
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Part(TypedDict):
    """A part of a model that is cut into parts; one event per part, after `start`."""
    event: Literal["part"]
    part: int  # number of the part, from 0
    parts: int  # how many parts there are
    ranks: str  # the ranks that have it: "0 1 2"
    first: str  # name of its first layer
    last: str  # name of its last layer
    parameters: int  # elements of its parameters; what parts share is in each of them
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Gpu(TypedDict):
    """The GPU of a rank; one event per rank, after `start`."""
    event: Literal["gpu"]
    rank: int  # the rank that computes on it
    host: str  # the host that it is in
    model: str  # name of the model
    memory_bytes: int  # bytes; size of its memory
    compute_capability: str  # such as "9.0"
    multiprocessors: int  # number of streaming multiprocessors
    clock_mhz: int  # MHz; highest clock of the multiprocessors; 0: not known
    memory_clock_mhz: int  # MHz; highest clock of the memory; 0: not known
    pci_bus: str  # PCI address
    driver: str  # newest CUDA version that the driver supports
    driver_version: NotRequired[str]  # the driver's own version, where NVML reports it
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Step(TypedDict):
    """A training step is done."""
    event: Literal["step"]
    step: int  # number of the step, from 1
    epoch: int  # number of the epoch, from 1
    loss: float  # mean loss of the batch
    learning_rate: float  # learning rate of the step
    metrics: dict[str, float]  # the job's metrics on the batch
    samples_per_second: float  # samples/s; mean rate since the start
    data_wait_seconds: float  # s; time that rank 0 waited for input since the step before
    seconds: float  # s; time since the first step of this start began
    gradient_norm: NotRequired[float]  # with `clip_norm`: L2 norm of the gradient before clipping
    loss_scale: NotRequired[float]  # with `precision: fp16`: scale that the step was computed with
    skipped: NotRequired[bool]  # with `precision: fp16`: whether the update was skipped
    # s; on several ranks: mean compute time of a micro-batch, on the slowest 16 ranks at most
    micro_batch_seconds: NotRequired[dict[int, float]]
    micro_batch_seconds_of_all: NotRequired[dict[str, float]]  # s; the same over all ranks: "min", "median", "p95" and "max"
    # J; energy that GPUs have used since the start, at most those 16 that have used most
    energy_joules: NotRequired[dict[int, float]]
    energy_joules_of_all: NotRequired[float]  # J; the sum over all GPUs
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Eval(TypedDict):
    """The model was evaluated."""
    event: Literal["eval"]
    step: int  # steps done so far
    set: str  # name of the set: "validation"
    loss: float  # mean loss over the set
    metrics: dict[str, float]  # the job's metrics over the set
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Checkpoint(TypedDict):
    """A checkpoint is committed."""
    event: Literal["checkpoint"]
    step: int  # steps done when it was taken
    path: str  # its directory
    seconds: float  # s; time from its beginning until it was committed
    blocked_seconds: float  # s; part of it for which training was blocked
    bytes: int  # bytes; its size
    best: NotRequired[str]  # the metric by which it is the best so far
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Copy(TypedDict):
    """A checkpoint is copied to an object store, or fetched from it (checkpoint.copy_to)."""
    event: Literal["copy"]
    step: int  # steps done when the checkpoint was taken
    path: str  # of the copy
    fetched: bool  # true: it was fetched into the run directory, which had no checkpoint
    seconds: float  # s; time that it took
    bytes: int  # bytes; its size
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Goodput(TypedDict):
    """Where the time since the first start of the run has gone, as rank 0 sees it; from time to time, and at the end."""
    event: Literal["goodput"]
    step: int  # steps done so far
    useful_seconds: float  # s; steps done for the first time, and evaluations
    repeated_seconds: float  # s; steps that had been done, and were lost
    checkpoint_seconds: float  # s; training stood while a checkpoint was taken
    data_wait_seconds: float  # s; rank 0 waited for its input
    peer_wait_seconds: float  # s; rank 0 waited for other ranks
    restart_seconds: float  # s; from the last sign of life before a restart to the next step, and the first set-up
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Balance(TypedDict):
    """Micro-batches move between ranks."""
    event: Literal["balance"]
    step: int  # steps done when the assignment changes
    reason: str  # why they move
    evidence: str  # what the speeds of the ranks are based on
    shares_by_rank: dict[int, float]  # micro-batches that each rank computes from now on
    micro_batches_moved: int  # micro-batches that change their rank
    micro_batch_seconds_by_rank: NotRequired[dict[int, float]]  # s; compute time of a micro-batch
    reduce_seconds: NotRequired[float]  # s; time of a step's all-reduce that compute does not hide
    predicted_before_seconds: NotRequired[float]  # s; predicted time of a step with the old assignment
    predicted_seconds: NotRequired[float]  # s; predicted time of a step with the new assignment
    measured_seconds: NotRequired[float]  # s; measured time of a step with the old assignment
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class BadSample(TypedDict):
    """A sample could not be decoded and is replaced; one event for each such sample."""
    event: Literal["bad_sample"]
    step: int  # steps done so far
    set: str  # the set that it belongs to
    sample: int  # its number in the set
    name: str  # its name, such as a file's
    replaced_by: int  # number of the sample that is used instead
    replaced_by_name: str  # name of the sample that is used instead
    message: str  # what is wrong with it, as a sentence
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Restart(TypedDict):
    """A run resumes from a checkpoint (`step`, `path`), or the supervisor starts its ranks again (all but `path`)."""
    event: Literal["restart"]
    reason: NotRequired[str]  # "death", "hang", "error", "mpirun", "resize", or "given up": no restart follows
    message: NotRequired[str]  # what happened, as a sentence; with `path`, the settings that are new from here on
    rank: NotRequired[int]  # the rank that it happened to; -1: none in particular
    host: NotRequired[str]  # host of that rank
    step: int  # steps done so far
    path: NotRequired[str]  # the checkpoint that the run resumes from
    attempt: NotRequired[int]  # number of the attempt that ended
    after_seconds: NotRequired[float]  # s; time until the ranks are started again
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Warning(TypedDict):
    """Something a person should know; the run goes on."""
    event: Literal["warning"]
    message: str  # one sentence
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class Launch(TypedDict):
    """The supervisor starts the ranks of an attempt."""
    event: Literal["launch"]
    attempt: int  # number of the attempt in this run directory, from 1
    ranks: int  # number of ranks
    on: str  # hosts and their ranks: "node1:4,node2:4"
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


class End(TypedDict):
    """The run ends in order."""
    event: Literal["end"]
    outcome: str  # "done", "stopped early", "interrupted" or "already finished"
    steps: int  # steps done in all, also before a restart
    samples: int  # samples trained on since this start
    seconds: float  # s; time from the first step of this start to the end of the last one
    samples_per_second: float  # samples/s; mean rate since the start
    loss: NotRequired[float]  # loss of the last step
    metrics: dict[str, float]  # loss and metrics of the last evaluation
    best: NotRequired[dict[str, float]]  # with early_stop: its metric in the best evaluation
    evaluations_since_best: NotRequired[int]  # with early_stop: how many evaluations were after it
    # s; where the time of rank 0 went, from the first step to the end, the last evaluation and checkpoint included; "other"
    # is what lies between phases
    phases: dict[str, float]
    interrupted: bool  # whether a signal or a stop request ended the run
    parameters_sha256: str  # hash of the model's parameters
    micro_batches_by_rank: dict[int, float]  # micro-batches of each rank in the last step
    # bytes; gradients and parameters sent to other ranks, and of a model in parts activations and their gradients
    bytes_sent_by_rank: dict[int, float]
    bytes_by_formula_by_rank: dict[int, float]  # bytes; the same as predicted by the communication plan
    # bytes; with sharding: parameters on several hosts: parameters sent to hosts that fetched them, beside what is sent by
    # the plan
    fetched_parameter_bytes_by_rank: NotRequired[dict[int, float]]
    compute_seconds_by_rank: dict[int, float]  # s; compute time, added up over workers
    bytes_read_by_rank: dict[int, float]  # bytes; bytes read from the files of the data set
    # bytes; most memory that the process has had, pages that it shares with other ranks among them
    peak_memory_bytes_by_rank: NotRequired[dict[int, float]]
    prefetch: dict[str, float]  # threads and depth of rank 0's prefetcher
    sample_cache_bytes: int  # bytes; memory of rank 0's cache of decoded samples
    checkpoint: NotRequired[str]  # the newest checkpoint
    checkpoints_failed: NotRequired[int]  # checkpoints that could not be written
    energy_joules_by_rank: NotRequired[dict[int, float]]  # J; energy that GPUs used since the start
    busy_seconds_by_rank: NotRequired[dict[int, float]]  # s; on several ranks, as all that follow: compute time of a worker
    data_wait_seconds_by_rank: NotRequired[dict[int, float]]  # s; time that it waited for input
    waited_seconds_by_rank: NotRequired[dict[int, float]]  # s; time that it waited for slower ranks
    held_up_seconds_by_rank: NotRequired[dict[int, float]]  # s; time that other ranks waited for it
    reduce_seconds_by_rank: NotRequired[dict[int, float]]  # s; time of the all-reduce that compute did not hide
    update_seconds_by_rank: NotRequired[dict[int, float]]  # s; time of the optimizer's updates
    # s; of a model in parts: time that a worker waited for activations and gradients of other parts
    part_wait_seconds_by_rank: NotRequired[dict[int, float]]
    share_moves: NotRequired[int]  # how often micro-batches moved between ranks
    time: NotRequired[float]  # Unix seconds; in events.jsonl only


Event = (Start | Part | Gpu | Step | Eval
         | Checkpoint | Copy | Goodput | Balance | BadSample | Restart | Warning | Launch | End)


class EventSource:
    """Whatever has events: for a type checker, events("step") gives steps."""

    def _iterate(self, kinds: tuple[str, ...], strict: bool) -> Iterator[Event]:
        raise NotImplementedError

    @overload
    def events(self, kind: Literal["start"], /, *, strict: bool = ...) -> Iterator[Start]: ...

    @overload
    def events(self, kind: Literal["part"], /, *, strict: bool = ...) -> Iterator[Part]: ...

    @overload
    def events(self, kind: Literal["gpu"], /, *, strict: bool = ...) -> Iterator[Gpu]: ...

    @overload
    def events(self, kind: Literal["step"], /, *, strict: bool = ...) -> Iterator[Step]: ...

    @overload
    def events(self, kind: Literal["eval"], /, *, strict: bool = ...) -> Iterator[Eval]: ...

    @overload
    def events(self, kind: Literal["checkpoint"], /, *, strict: bool = ...) -> Iterator[Checkpoint]: ...

    @overload
    def events(self, kind: Literal["copy"], /, *, strict: bool = ...) -> Iterator[Copy]: ...

    @overload
    def events(self, kind: Literal["goodput"], /, *, strict: bool = ...) -> Iterator[Goodput]: ...

    @overload
    def events(self, kind: Literal["balance"], /, *, strict: bool = ...) -> Iterator[Balance]: ...

    @overload
    def events(self, kind: Literal["bad_sample"], /, *, strict: bool = ...) -> Iterator[BadSample]: ...

    @overload
    def events(self, kind: Literal["restart"], /, *, strict: bool = ...) -> Iterator[Restart]: ...

    @overload
    def events(self, kind: Literal["warning"], /, *, strict: bool = ...) -> Iterator[Warning]: ...

    @overload
    def events(self, kind: Literal["launch"], /, *, strict: bool = ...) -> Iterator[Launch]: ...

    @overload
    def events(self, kind: Literal["end"], /, *, strict: bool = ...) -> Iterator[End]: ...

    @overload
    def events(self, *kinds: str, strict: bool = ...) -> Iterator[Event]: ...

    def events(self, *kinds, strict=False):
        """All events so far in the order of the file, or those of some kinds; repeated steps are in it twice. Lines that
        are damaged are left out, or raise DamagedError with `strict`."""
        return self._iterate(kinds, strict)
