"""Which settings have no case with a value other than the default."""
import network

# These only affect initial values: the cases use their own weights.
FIRST_VALUES = {"init", "std", "zero_init"}
# Numbers of outputs, which the cases derive from the data.
OF_THE_DATA = {("model", "mlp", "classes"), ("model", "lenet", "classes"), ("model", "resnet", "classes"),
               ("model", "vit", "classes"), ("model", "mobilenet", "classes"), ("model", "bert", "classes")}


def used(case, forms):
    """(kind, name, settings) of everything that a job chooses."""
    job, model = case.job, case.job["model"]
    for layer in network.layers_of(model, forms, 5):
        yield "ops", *forms.chosen("ops", layer)[:2]
    if not (isinstance(model, dict) and "layers" in model):
        yield "model", *forms.chosen("model", model)[:2]
    yield "loss", *forms.chosen("loss", job.get("loss", "cross_entropy"))[:2]
    yield "optimizer", *forms.chosen("optimizer", job.get("optimizer", "sgd"))[:2]
    rate = job["learning_rate"]
    if isinstance(rate, dict) and "schedule" in rate:
        yield "schedule", *forms.chosen("schedule", rate["schedule"])[:2]


def settings_without_a_case(cases, forms):
    left = {(kind, name, setting) for kind, table in forms.kinds.items() for name, form in table.items()
            for setting in form.attributes if setting not in FIRST_VALUES} - OF_THE_DATA
    for case in cases:
        for kind, name, settings in used(case, forms):
            defaults = forms.kinds[kind][name].defaults
            left -= {(kind, name, key) for key, value in settings.items() if value != defaults.get(key)}
    return [" ".join(entry) for entry in sorted(left)]
