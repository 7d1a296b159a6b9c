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
CONVENTIONS = {"dampening": 0.0, "micro_batch_statistics": True, "gradient": 1.0, "bias_decays": False, "clip_by": 2.0}


def cross_entropy(prediction, target, settings):
    """(sum over the rows that count, number of these rows)."""
    if settings.get("focal", 0) > 0:
        return focal_cross_entropy(prediction, target, settings)
    ignored = settings.get("ignored_index", -100)
    soft = target.is_floating_point()
    rows, targets = prediction.flatten(0, -2), target.flatten(0, -2) if soft else target.flatten()
    total = F.cross_entropy(rows, targets, reduction="sum", label_smoothing=settings["label_smoothing"],
                            **({} if soft else {"ignore_index": ignored}))
    return total, len(rows) if soft else int((targets != ignored).sum())


def focal_cross_entropy(prediction, target, settings):
    """-sum q (1 - p)^gamma log p over classes; F.cross_entropy has no such setting."""
    rows, classes = prediction.flatten(0, -2), prediction.shape[-1]
    soft = target.is_floating_point()
    counts = torch.ones(len(rows), dtype=torch.bool) if soft else target.flatten() != settings.get("ignored_index", -100)
    targets = target.flatten(0, -2) if soft else F.one_hot(target.flatten().long().clamp(0), classes).to(rows.dtype)
    smoothing = settings["label_smoothing"]
    log_p = F.log_softmax(rows, -1)
    missing = -torch.expm1(log_p).clamp(max=-1e-30)
    terms = (targets * (1 - smoothing) + smoothing / classes) * missing ** settings["focal"] * log_p
    return -terms[counts].sum(), int(counts.sum())


def kl_divergence(prediction, target, settings):
    rows = prediction.flatten(0, -2)
    return F.kl_div(F.log_softmax(rows, -1), target.flatten(0, -2), reduction="sum"), len(rows)


def mean_squared_error(prediction, target, settings):
    return F.mse_loss(prediction, target, reduction="sum"), target.numel()


def mean_absolute_error(prediction, target, settings):
    return F.l1_loss(prediction, target, reduction="sum"), target.numel()


def huber(prediction, target, settings):
    return F.huber_loss(prediction, target, reduction="sum", delta=settings["delta"]), target.numel()


def binary_cross_entropy(prediction, target, settings):
    smoothing = settings["label_smoothing"]
    target = target.view_as(prediction).to(prediction.dtype) * (1 - smoothing) + smoothing / 2
    weight = torch.tensor(settings["positive_weight"], dtype=prediction.dtype)
    if settings.get("focal", 0) > 0:  # of labels, as torchvision's sigmoid_focal_loss
        p, power = torch.sigmoid(prediction), settings["focal"]
        terms = weight * target * (1 - p) ** power * F.logsigmoid(prediction)
        terms += (1 - target) * p ** power * F.logsigmoid(-prediction)
        return -terms.sum(), target.numel()
    return F.binary_cross_entropy_with_logits(prediction, target, reduction="sum", pos_weight=weight), target.numel()


def contrastive(prediction, target, settings):
    """Of one micro-batch; F has no such loss."""
    left, right = (F.normalize(half, dim=-1) for half in prediction.chunk(2, -1))
    compared = (target[:, None] != target) | torch.eye(len(target), dtype=torch.bool)
    scores = (left @ right.T / settings["temperature"]).masked_fill(~compared, -math.inf)
    own = torch.arange(len(target))
    rows, columns = (F.cross_entropy(of, own, reduction="sum") for of in (scores, scores.T))
    return (rows + columns) / 2, len(target)


def triplet(prediction, target, settings):
    """F.triplet_margin_loss, but for where it adds its epsilon."""
    anchor, positive, negative = prediction.chunk(3, -1)
    near, far = (((anchor - other).square().sum(-1) + 1e-12).sqrt() for other in (positive, negative))
    return F.relu(near - far + settings["margin"]).sum(), len(prediction)


LOSSES = {"cross_entropy": cross_entropy, "contrastive": contrastive, "triplet": triplet, "kl_divergence": kl_divergence,
          "mean_squared_error": mean_squared_error, "mean_absolute_error": mean_absolute_error, "huber": huber,
          "binary_cross_entropy": binary_cross_entropy}


def sgd(groups, rate, settings):
    return torch.optim.SGD(groups, rate, settings["momentum"], CONVENTIONS["dampening"], nesterov=settings["nesterov"])


def adam(groups, rate, settings, kind=torch.optim.Adam):
    return kind(groups, rate, (settings["beta1"], settings["beta2"]), settings["epsilon"])


def adamw(groups, rate, settings):
    return adam(groups, rate, settings, torch.optim.AdamW)


def nadam(groups, rate, settings):
    return torch.optim.NAdam(groups, rate, (settings["beta1"], settings["beta2"]), settings["epsilon"],
                             momentum_decay=settings["momentum_decay"])


def rmsprop(groups, rate, settings):
    return torch.optim.RMSprop(groups, rate, settings["alpha"], settings["epsilon"], momentum=settings["momentum"],
                               centered=settings["centered"])


def adagrad(groups, rate, settings):
    return torch.optim.Adagrad(groups, rate, initial_accumulator_value=settings["initial"], eps=settings["epsilon"])


class Lion(torch.optim.Optimizer):
    """As its paper has it: PyTorch has none."""

    def __init__(self, groups, rate, settings):
        super().__init__(groups, {"lr": rate, "beta1": settings["beta1"], "beta2": settings["beta2"]})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None):
                mean = self.state[parameter].setdefault("exp_avg", torch.zeros_like(parameter))
                direction = mean.mul(group["beta1"]).add(parameter.grad, alpha=1 - group["beta1"]).sign()
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=group["lr"])
                mean.mul_(group["beta2"]).add_(parameter.grad, alpha=1 - group["beta2"])


class Lamb(torch.optim.Optimizer):
    """As its paper has it, with the identity as phi; norms and biases have the plain rate."""

    def __init__(self, groups, rate, settings):
        super().__init__(groups, {"lr": rate, "trusted": True} |
                         {key: settings[key] for key in ("beta1", "beta2", "epsilon")})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None):
                state = self.state[parameter]
                count = state["step"] = state.get("step", 0) + 1
                means = [state.setdefault(name, torch.zeros_like(parameter)) for name in ("exp_avg", "exp_avg_sq")]
                for mean, value, beta in zip(means, (parameter.grad, parameter.grad ** 2), self.betas(group)):
                    mean.mul_(beta).add_(value, alpha=1 - beta)
                first, second = (mean / (1 - beta ** count) for mean, beta in zip(means, self.betas(group)))
                step = first / (second.sqrt() + group["epsilon"]) + group["weight_decay"] * parameter
                trust = parameter.norm() / step.norm() if group["trusted"] and parameter.norm() > 0 else 1.0
                parameter.sub_(group["lr"] * trust * step)

    @staticmethod
    def betas(group):
        return group["beta1"], group["beta2"]


class Lars(torch.optim.Optimizer):
    """As its paper has it; norms and biases have the plain rate."""

    def __init__(self, groups, rate, settings):
        super().__init__(groups, {"lr": rate, "trusted": True} | {key: settings[key] for key in ("momentum", "trust")})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None):
                decay, norm = group["weight_decay"], parameter.norm()
                buffer = self.state[parameter].setdefault("momentum_buffer", torch.zeros_like(parameter))
                trust = 1
                if group["trusted"] and norm > 0:
                    trust = group["trust"] * norm / (parameter.grad.norm() + decay * norm)
                buffer.mul_(group["momentum"]).add_(group["lr"] * trust * (parameter.grad + decay * parameter))
                parameter.sub_(buffer)


class Muon(torch.optim.Optimizer):
    """As its papers have it; torch.optim.Muon computes in bfloat16. Matrices are those that `is_matrix` marks."""

    def __init__(self, groups, rate, settings):
        super().__init__(groups, {"lr": rate} | {key: settings[key] for key in (
            "beta1", "beta2", "epsilon", "momentum", "nesterov", "steps")})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None):
                state, grad, rate = self.state[parameter], parameter.grad, group["lr"]
                first, second = (state.setdefault(name, torch.zeros_like(parameter)) for name in ("exp_avg", "exp_avg_sq"))
                count = state["step"] = state.get("step", 0) + 1
                parameter.mul_(1 - rate * group["weight_decay"])
                if getattr(parameter, "is_matrix", False):
                    first.lerp_(grad, 1 - group["momentum"])
                    direction = grad.lerp(first, group["momentum"]) if group["nesterov"] else first
                    direction = direction.flatten(1)
                    step = self.orthogonal(direction, group["steps"], group["epsilon"]) * 0.2 * max(direction.shape) ** 0.5
                    parameter.sub_(rate * step.view_as(parameter))
                    continue
                first.lerp_(grad, 1 - group["beta1"])
                second.lerp_(grad ** 2, 1 - group["beta2"])
                root = (second / (1 - group["beta2"] ** count)).sqrt() + group["epsilon"]
                parameter.sub_(rate * first / (1 - group["beta1"] ** count) / root)

    @staticmethod
    def orthogonal(matrix, steps, epsilon):
        x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
        x = x / x.norm().clamp(min=epsilon)
        for _ in range(steps):
            square = x @ x.T
            x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
        return x.T if matrix.shape[0] > matrix.shape[1] else x


class Adafactor(torch.optim.Optimizer):
    """PyTorch's own update, of weights [rows, all the rest]."""

    def __init__(self, groups, rate, settings):
        super().__init__(groups, {"lr": rate} | {key: settings[key] for key in (
            "beta2_decay", "clip_threshold", "epsilon1", "epsilon2")})
        for parameter in (p for group in self.param_groups for p in group["params"]):
            value = self.matrix(parameter.detach())
            kinds = {"row_var": value[:, :1], "col_var": value[:1]} if value.dim() > 1 else {"variance": value}
            self.state[parameter] = {kind: torch.zeros_like(like) for kind, like in kinds.items()}
            self.state[parameter]["step"] = torch.zeros(())

    @staticmethod
    def matrix(values):
        return values.flatten(1) if values.dim() > 1 else values

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in (p for p in group["params"] if p.grad is not None):
                state, value, grad = self.state[parameter], self.matrix(parameter.data), self.matrix(parameter.grad)
                torch.optim._adafactor.adafactor(  # pylint: disable=protected-access
                    [value], [grad], *([state.get(name)] for name in ("row_var", "col_var", "variance", "step")),
                    d=group["clip_threshold"], lr=group["lr"], beta2_decay=group["beta2_decay"],
                    weight_decay=group["weight_decay"], eps1=group["epsilon1"], eps2=group["epsilon2"], maximize=False)


OPTIMIZERS = {"sgd": sgd, "adam": adam, "adamw": adamw, "nadam": nadam, "rmsprop": rmsprop, "lion": Lion,
              "adagrad": adagrad, "lamb": Lamb, "lars": Lars, "muon": Muon, "adafactor": Adafactor}


def states_of(optimizer, settings):
    """What lockstep calls the optimizer's states, by PyTorch's names."""
    momentum = {"momentum_buffer": "momentum"} if settings.get("momentum", 0) > 0 else {}
    if optimizer in ("sgd", "lars"):
        return momentum
    if optimizer == "rmsprop":
        centered = {"grad_avg": "gradient_mean"} if settings["centered"] else {}
        return {"square_avg": "square_mean"} | centered | momentum
    if optimizer == "adagrad":
        return {"sum": "square_sum"}
    if optimizer == "adafactor":
        return {"variance": "second_moment", "row_var": "row_moment", "col_var": "column_moment"}
    return {"exp_avg": "first_moment"} | ({} if optimizer == "lion" else {"exp_avg_sq": "second_moment"})


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


def exponential(optimizer, settings, rate, left, course, warmup):
    period = course.length(settings["every"])
    if settings["staircase"]:
        return lr_scheduler.StepLR(optimizer, period, settings["factor"])
    return lr_scheduler.ExponentialLR(optimizer, settings["factor"] ** (1 / period))


def polynomial(optimizer, settings, rate, left, course, warmup):
    if settings["final"] == 0:
        return lr_scheduler.PolynomialLR(optimizer, left, settings["power"])
    final = settings["final"] / rate  # as Keras's PolynomialDecay
    return lr_scheduler.LambdaLR(optimizer, lambda s: final + (1 - final) * (1 - s / left) ** settings["power"])


def one_cycle(optimizer, settings, rate, left, course, warmup):
    form = {"cosine": "cos", "linear": "linear"}[settings["anneal"]]
    return lr_scheduler.OneCycleLR(optimizer, rate, left, pct_start=settings["rise"], anneal_strategy=form,
                                   cycle_momentum=False, div_factor=settings["start_divisor"],
                                   final_div_factor=settings["final_divisor"])


def cosine_restarts(optimizer, settings, rate, left, course, warmup):
    growth = settings["growth"]
    return lr_scheduler.CosineAnnealingWarmRestarts(optimizer, course.length(settings["first"]), int(growth),
                                                    settings["final"])


def wsd(optimizer, settings, rate, left, course, warmup):
    """As its papers have it: PyTorch has none."""
    form = {"linear": lambda x: 1 - x, "cosine": lambda x: (1 + math.cos(math.pi * x)) / 2,
            "sqrt": lambda x: 1 - math.sqrt(x)}[settings["form"]]
    final, begin = settings["final"] / rate, left * (1 - settings["decay"])

    def share(step):
        return 1 if step <= begin else final + (1 - final) * form((step - begin) / (left - begin))
    return lr_scheduler.LambdaLR(optimizer, share)


class Plateau:
    """ReduceLROnPlateau behind a warm-up, whose evaluations do not count."""

    def __init__(self, optimizer, settings, rate, left, course, warmup):
        self.metric, self.warmup, self.steps = settings["metric"], warmup, 0
        self.rise = lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup) if warmup else None
        self.after = lr_scheduler.ReduceLROnPlateau(
            optimizer, "min" if self.metric == "loss" else "max", settings["factor"], settings["patience"] - 1,
            settings["min_delta"], "abs", settings["cooldown"], settings["min_rate"], eps=0)

    def step(self):
        self.steps += 1
        if self.steps < self.warmup:
            self.rise.step()

    def evaluated(self, metrics):
        if self.steps >= self.warmup:
            self.after.step(metrics[self.metric])


SCHEDULES = {"constant": constant, "linear": linear, "cosine": cosine, "steps": steps, "exponential": exponential,
             "polynomial": polynomial, "one_cycle": one_cycle, "cosine_restarts": cosine_restarts, "wsd": wsd,
             "plateau": Plateau}


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
    if warmup == 0 or schedule == "plateau":
        return after
    for group in optimizer.param_groups:  # a scheduler takes the current rate as the initial one
        group["lr"] = group["initial_lr"] = peak
    rise = lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1) if warmup > 1 else \
        lr_scheduler.ConstantLR(optimizer, 1.0, 1)
    return lr_scheduler.SequentialLR(optimizer, [rise, after], [warmup])


def top(k):
    return lambda rows, labels, loss: (rows.topk(k).indices == labels[:, None]).any(1).double().mean().item()


METRICS = {
    "accuracy": lambda rows, labels, loss: (rows.argmax(-1) == labels).double().mean().item(),
    "top5": top(5),
    "perplexity": lambda rows, labels, loss: math.exp(F.cross_entropy(rows.double(), labels).item()),
}


def over_classes(share):
    """The mean over classes of what is right over a share of what is predicted and what is."""
    def of(rows, labels, loss):
        classes = torch.arange(rows.shape[-1])[:, None]
        said, is_of = rows.argmax(-1) == classes, labels == classes
        counts = [n.double() for n in ((said & is_of).sum(1), said.sum(1), is_of.sum(1))]
        seen = counts[1] + counts[2] > 0
        return torch.nan_to_num(counts[0] / share(*counts))[seen].mean().item()
    return of


METRICS |= {"macro_precision": over_classes(lambda right, said, is_of: said),
            "macro_recall": over_classes(lambda right, said, is_of: is_of),
            "macro_f1": over_classes(lambda right, said, is_of: (said + is_of) / 2),
            "mean_iou": over_classes(lambda right, said, is_of: said + is_of - right)}


def yes_or_no(score):
    """`score` of how often yes was said rightly, said, and right, and of how many elements."""
    def of(values, targets):
        said, right = values > 0, targets > 0.5
        return score(*(float(n) for n in ((said & right).sum(), said.sum(), right.sum(), len(said))))
    return of


ELEMENT_METRICS = {
    "mae": lambda values, targets: (values - targets).abs().double().mean().item(),
    "rmse": lambda values, targets: (values - targets).double().square().mean().sqrt().item(),
    "binary_accuracy": yes_or_no(lambda both, said, right, count: 1 - (said + right - 2 * both) / count),
    "precision": yes_or_no(lambda both, said, right, count: both / said if said else 0.0),
    "recall": yes_or_no(lambda both, said, right, count: both / right if right else 0.0),
    "f1": yes_or_no(lambda both, said, right, count: 2 * both / (said + right) if both else 0.0),
    "iou": yes_or_no(lambda both, said, right, count: both / (said + right - both) if both else 0.0),
    "r2": lambda values, targets: (1 - (values - targets).double().square().sum()
                                   / (targets.double() - targets.double().mean()).square().sum()).item(),
}


def area_under_curve(values, targets):
    """Of all pairs of a positive and a negative, how many are in this order; equal ones count half."""
    positive, negative = values[targets > 0.5][:, None], values[targets <= 0.5]
    return ((positive > negative).double() + (positive == negative).double() / 2).mean().item()


OF_EVALUATIONS = {"auc": area_under_curve}  # steps do not report these


class Peer:
    """The job's run in PyTorch. `narrow` and `distorted`: see network.Network."""

    def __init__(self, job, forms, data, dtype, classes, narrow=None, distorted=None):
        self.job, self.data, self.dtype = job, data, dtype
        self.batch, self.micro_batches, seed = job["batch_size"], job.get("micro_batches", 1), job.get("seed", 1)
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
        peak = rate_settings(self.job, forms)[0]
        groups, left = [], dict(trained)
        self.frozen = []  # (parameters, the step that they are frozen until)
        course = Course(self.per_epoch, self.job["steps"])
        for own in self.own_groups():
            matched = {key: p for key, p in left.items() if any(fnmatch.fnmatchcase(key, m) for m in own["match"])}
            left = {key: p for key, p in left.items() if key not in matched}
            self.frozen.append((list(matched.values()), course.length(own.get("freeze_until", "0 steps"))))
            for decays in (True, False):
                decay = own.get("weight_decay", settings["weight_decay"] if decays else 0.0)
                groups.append({"params": [p for key, p in matched.items() if (key in decaying) == decays],
                               "weight_decay": decay, "lr": peak * own.get("rate", 1),
                               "trusted": decays or "weight_decay" in own})
        groups = [{"params": [p for key, p in left.items() if (key in decaying) == decays],
                   "weight_decay": settings["weight_decay"] if decays else 0.0, "trusted": decays}
                  for decays in (True, False)] + groups
        groups = [group for group in groups if group["params"]]
        self.mark_matrices()
        self.state_names = states_of(name, settings)
        self.trained, self.optimizer = trained, OPTIMIZERS[name](groups, peak, settings)
        self.scheduler = scheduler(self.optimizer, self.job, forms, course)

    def mark_matrices(self):
        """The weights of layers between the first and the last."""
        layers = [layer for layer in self.net.layers if layer.op in ("linear", "conv", "conv_transpose")]
        shared = {layer.settings["tied"] for layer in layers if "tied" in layer.settings}
        for layer in layers[:-1]:
            if "tied" not in layer.settings and layer.name not in shared:
                self.net.parameters[f"{layer.name}.weight"].is_matrix = True

    def own_groups(self):
        """The job's groups of parameters."""
        optimizer = self.job.get("optimizer", "sgd")
        return optimizer.get("groups", []) if isinstance(optimizer, dict) else []

    def samples(self, arrays):
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        return {name: t.to(self.dtype) if t.is_floating_point() else t for name, t in tensors.items()}

    def predictions(self, ids, epoch, step):
        """(prediction, target) of each micro-batch, in order."""
        pieces = self.micro_batches if CONVENTIONS["micro_batch_statistics"] else 1
        size = len(ids) // pieces
        for micro_batch in range(pieces):
            self.net.run.step, self.net.run.first_position = step, micro_batch * size
            sample = self.samples(self.data.read(ids[micro_batch * size:(micro_batch + 1) * size], epoch))
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
        said["gradient_norm"] = self.backward(loss, loss_scale or 1.0, number)
        if skipped:
            self.net.followed = {}
        else:
            self.optimizer.step()
            self.net.end_step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about rates that advance although the first update was skipped
            self.scheduler.step()
        return said

    def backward(self, loss, scale, step):
        self.optimizer.zero_grad()
        (loss * (scale * CONVENTIONS["gradient"])).backward()
        for parameter in (p for parameters, until in self.frozen if step < until for p in parameters):
            parameter.grad = None  # as if it did not require one yet
        gradients = [p.grad for p in self.trained.values() if p.grad is not None]
        for gradient in gradients:
            gradient.div_(scale)
        clip = self.job.get("clip_norm", "never")
        if clip == "never":
            return math.sqrt(sum(g.double().square().sum().item() for g in gradients))
        return torch.nn.utils.clip_grad_norm_(self.trained.values(), clip, CONVENTIONS["clip_by"]).item()

    def metrics(self, rows, labels, loss):
        names = [name for name in self.job.get("metrics", []) if name not in OF_EVALUATIONS]
        if self.loss_name != "cross_entropy":
            return {name: ELEMENT_METRICS[name](rows.flatten(), labels) for name in names}
        counts = labels != self.loss_settings.get("ignored_index", -100)
        return {name: (METRICS.get(name) or top(int(name[3:])))(rows[counts], labels[counts], loss) for name in names}

    @torch.no_grad()
    def evaluate(self, data):
        """Evaluates every sample of another set once, with the running statistics."""
        self.net.training = False
        sample = self.samples(data.read(list(range(data.size)), None))
        prediction = self.net(sample)
        total, count = LOSSES[self.loss_name](prediction, sample[self.target], self.loss_settings)
        loss = total.item() / count
        self.net.training = True
        rows, targets = prediction.flatten(0, -2), sample[self.target].flatten()
        areas = {name: OF_EVALUATIONS[name](rows.flatten(), targets) for name in self.job.get("metrics", [])
                 if name in OF_EVALUATIONS}
        return {"loss": loss} | areas | self.metrics(rows, targets, loss)

    def state(self):
        """Copies of everything that a checkpoint holds, by its names."""
        parameters = {name: p.detach().double().clone() for name, p in self.net.parameters.items()}
        states = {name: s.double().clone() for name, s in self.net.states.items()}

        def of(parameter, kind):  # what PyTorch has not created yet is 0
            state = self.optimizer.state.get(parameter, {}).get(kind, torch.zeros_like(parameter)).double().clone()
            return state.flatten() if kind in ("row_var", "col_var") else state

        def has(parameter, kind):  # Adafactor's are of matrices, or of vectors
            return kind not in ("variance", "row_var", "col_var") or (kind == "variance") == (parameter.dim() == 1)

        optimizer = {f"{name}:{own}": of(parameter, kind) for kind, own in self.state_names.items()
                     for name, parameter in self.net.parameters.items() if has(parameter, kind)}
        return {"parameters": parameters, "statistics": states, "optimizer": optimizer}
