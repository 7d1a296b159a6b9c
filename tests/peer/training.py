"""A job's training in PyTorch: losses, optimizers, schedules, clipping and metrics, one table each."""
import fnmatch
import math
import warnings

import torch
from torch.nn import functional as F
from torch.optim import lr_scheduler

import network
import streams

# What lockstep documents but a job cannot set; tests of the test change one of these.
CONVENTIONS = {"dampening": 0.0, "shard_statistics": True, "gradient": 1.0, "bias_decays": False, "clip_by": 2.0}


def cross_entropy(prediction, target, settings):
    """(sum over the rows that count, number of these rows)."""
    ignored = settings.get("ignored_index", -100)
    soft = target.is_floating_point()
    rows, targets = prediction.flatten(0, -2), target.flatten(0, -2) if soft else target.flatten()
    total = F.cross_entropy(rows, targets, reduction="sum", label_smoothing=settings["label_smoothing"],
                            **({} if soft else {"ignore_index": ignored}))
    return total, len(rows) if soft else int((targets != ignored).sum())


def mean_squared_error(prediction, target, settings):
    return F.mse_loss(prediction, target, reduction="sum"), target.numel()


LOSSES = {"cross_entropy": cross_entropy, "mean_squared_error": mean_squared_error}


def sgd(groups, rate, settings):
    return torch.optim.SGD(groups, rate, settings["momentum"], CONVENTIONS["dampening"], nesterov=settings["nesterov"])


def adam(groups, rate, settings, kind=torch.optim.Adam):
    return kind(groups, rate, (settings["beta1"], settings["beta2"]), settings["epsilon"])


def adamw(groups, rate, settings):
    return adam(groups, rate, settings, torch.optim.AdamW)


OPTIMIZERS = {"sgd": sgd, "adam": adam, "adamw": adamw}
STATES = {"momentum_buffer": "momentum", "exp_avg": "first_moment", "exp_avg_sq": "second_moment"}


class Course:
    """Converts lengths such as `200 steps` and `1.5 epochs` to steps."""

    def __init__(self, per_epoch, steps):
        self.per_epoch, self.steps = per_epoch, steps

    def length(self, text):
        number, unit = text.split()
        return int(number) if unit.startswith("step") else math.floor(float(number) * self.per_epoch + 0.5)


def constant(optimizer, settings, rate, left, course, warmup):
    return lr_scheduler.ConstantLR(optimizer, 1.0, 1)


def linear(optimizer, settings, rate, left, course, warmup):
    return lr_scheduler.LinearLR(optimizer, 1.0, settings["final"] / rate, left)


def cosine(optimizer, settings, rate, left, course, warmup):
    return lr_scheduler.CosineAnnealingLR(optimizer, left, settings["final"])


def steps(optimizer, settings, rate, left, course, warmup):
    milestones = [course.length(text) - warmup for text in settings["milestones"]]
    return lr_scheduler.MultiStepLR(optimizer, milestones, settings["factor"])


SCHEDULES = {"constant": constant, "linear": linear, "cosine": cosine, "steps": steps}


def rate_settings(job, forms):
    """(peak, warm-up, name of the schedule, its settings)."""
    value = job.get("learning_rate", {})
    value = forms.rate | (value if isinstance(value, dict) else {"peak": value})
    schedule, settings, _ = forms.chosen("schedule", value["schedule"])
    scale = 1 if value["reference_batch"] == "never" else job["batch_size"] / value["reference_batch"]
    return value["peak"] * scale, value["warmup"], schedule, settings


def scheduler(optimizer, job, forms, course):
    peak, warmup, schedule, settings = rate_settings(job, forms)
    warmup = course.length(warmup)
    after = SCHEDULES[schedule](optimizer, settings, peak, course.steps - warmup, course, warmup)
    if warmup == 0:
        return after
    for group in optimizer.param_groups:  # a scheduler takes the current rate as the initial one
        group["lr"] = group["initial_lr"] = peak
    rise = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1) if warmup > 1 else \
        lr_scheduler.ConstantLR(optimizer, 1.0, 1)
    return lr_scheduler.SequentialLR(optimizer, [rise, after], [warmup])


METRICS = {
    "accuracy": lambda rows, labels, loss: (rows.argmax(-1) == labels).double().mean().item(),
    "top5": lambda rows, labels, loss: (rows.topk(5).indices == labels[:, None]).any(1).double().mean().item(),
    "perplexity": lambda rows, labels, loss: math.exp(F.cross_entropy(rows.double(), labels).item()),
}


class Peer:
    """The job's run in PyTorch. `narrow` and `distorted`: see network.Network."""

    def __init__(self, job, forms, data, dtype, classes, narrow=None, distorted=None):
        self.job, self.data, self.dtype = job, data, dtype
        self.batch, self.shards, seed = job["batch_size"], job.get("shards", 1), job.get("seed", 1)
        self.per_epoch = data.size // self.batch
        loss = job.get("loss", "cross_entropy")
        self.loss_name, self.loss_settings, rest = forms.chosen("loss", loss)
        sample = self.samples(data.read([0], None))
        self.target = rest.get("target", "label" if "label" in sample else "target")
        unused = {self.target, "label", "target"}
        features = job["model"].get("inputs") if isinstance(job["model"], dict) else None
        features = features or [name for name in sample if name not in unused]
        run = network.Run(seed)
        self.net = network.Network(network.layers_of(job["model"], forms, classes), forms, run, dtype, features, narrow)
        self.net.distorted = distorted
        with torch.no_grad():
            self.net.training = False
            self.net(sample)  # creates the parameters
            self.net.training = True
        self.make_optimizer(forms)

    def make_optimizer(self, forms):
        frozen = self.job["model"].get("freeze", []) if isinstance(self.job["model"], dict) else []
        for name, parameter in self.net.parameters.items():
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in frozen):
                parameter.requires_grad_(False)
        name, settings, _ = forms.chosen("optimizer", self.job.get("optimizer", "sgd"))
        trained = {name: p for name, p in self.net.parameters.items() if p.requires_grad}
        decaying = set(trained) if settings["decay_all"] or CONVENTIONS["bias_decays"] else self.net.decaying
        groups = [{"params": [p for name, p in trained.items() if name in decaying],
                   "weight_decay": settings["weight_decay"]},
                  {"params": [p for name, p in trained.items() if name not in decaying], "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        peak = rate_settings(self.job, forms)[0]
        self.state_kinds = ["exp_avg", "exp_avg_sq"]
        if name == "sgd":
            self.state_kinds = ["momentum_buffer"] if settings["momentum"] > 0 else []
        self.trained, self.optimizer = trained, OPTIMIZERS[name](groups, peak, settings)
        self.scheduler = scheduler(self.optimizer, self.job, forms, Course(self.per_epoch, self.job["steps"]))

    def samples(self, arrays):
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        return {name: t.to(self.dtype) if t.is_floating_point() else t for name, t in tensors.items()}

    def predictions(self, ids, epoch, step):
        """(prediction, target) of each shard, in order."""
        pieces = self.shards if CONVENTIONS["shard_statistics"] else 1
        size = len(ids) // pieces
        for shard in range(pieces):
            self.net.run.step, self.net.run.first_position = step, shard * size
            sample = self.samples(self.data.read(ids[shard * size:(shard + 1) * size], epoch))
            yield self.net(sample), sample[self.target]

    def step(self, number, loss_scale=None, skipped=False):
        """Does step `number`, from 0; returns the values of lockstep's event for it. A skipped step changes only the
        rate."""
        ids = streams.batch_ids(self.job.get("seed", 1), self.data.size, self.batch, number)
        total, count, rows, labels = 0.0, 0, [], []
        for prediction, target in self.predictions(ids, number // self.per_epoch, number):
            part, counted = LOSSES[self.loss_name](prediction, target, self.loss_settings)
            total, count = total + part, count + counted
            rows.append(prediction.detach().flatten(0, -2))
            labels.append(target.flatten())
        loss = total / count
        said = {"loss": loss.item(), "learning_rate": self.optimizer.param_groups[0]["lr"]}
        said |= self.metrics(torch.cat(rows), torch.cat(labels), said["loss"])
        said["gradient_norm"] = self.backward(loss, loss_scale or 1.0)
        if skipped:
            self.net.followed = {}
        else:
            self.optimizer.step()
            self.net.end_step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about rates that advance although the first update was skipped
            self.scheduler.step()
        return said

    def backward(self, loss, scale):
        self.optimizer.zero_grad()
        (loss * (scale * CONVENTIONS["gradient"])).backward()
        gradients = [p.grad for p in self.trained.values() if p.grad is not None]
        for gradient in gradients:
            gradient.div_(scale)
        clip = self.job.get("clip_norm", "never")
        if clip == "never":
            return math.sqrt(sum(g.double().square().sum().item() for g in gradients))
        return torch.nn.utils.clip_grad_norm_(self.trained.values(), clip, CONVENTIONS["clip_by"]).item()

    def metrics(self, rows, labels, loss):
        names = self.job.get("metrics", [])
        counts = labels != self.loss_settings.get("ignored_index", -100)
        return {name: METRICS[name](rows[counts], labels[counts], loss) for name in names}

    @torch.no_grad()
    def evaluate(self, data):
        """Evaluates every sample of another set once, with the running statistics."""
        self.net.training = False
        sample = self.samples(data.read(list(range(data.size)), None))
        prediction = self.net(sample)
        total, count = LOSSES[self.loss_name](prediction, sample[self.target], self.loss_settings)
        loss = total.item() / count
        self.net.training = True
        return {"loss": loss} | self.metrics(prediction.flatten(0, -2), sample[self.target].flatten(), loss)

    def state(self):
        """Copies of everything that a checkpoint holds, by its names."""
        parameters = {name: p.detach().double().clone() for name, p in self.net.parameters.items()}
        states = {name: s.double().clone() for name, s in self.net.states.items()}

        def of(parameter, kind):  # what PyTorch has not created yet is 0
            return self.optimizer.state.get(parameter, {}).get(kind, torch.zeros_like(parameter)).double().clone()

        optimizer = {f"{name}:{STATES[kind]}": of(parameter, kind) for kind in self.state_kinds
                     for name, parameter in self.net.parameters.items()}
        return {"parameters": parameters, "statistics": states, "optimizer": optimizer}
