"""The steps of `data.prepare`, as lockstep does them: the same bytes."""
import math

from .errors import UnsupportedError

ONE = 1 << 15  # weights are whole numbers that add up to it


def prepared(image, channels, steps, numpy):
    """Bytes [height, width, channels]; [height, width] if there is one channel."""
    if image.ndim == 2:
        image = image[..., None]
    if image.dtype != numpy.uint8 or image.ndim != 3 or image.shape[2] != channels:
        raise UnsupportedError("image", f"bytes [height, width, {channels}]", f"{image.dtype} {list(image.shape)}",
                               "convert it first")
    for step in steps:
        (name, settings), = step.items()
        if name not in STEPS:
            raise UnsupportedError(f"data.prepare: {name}", " or ".join(STEPS), "a step of somebody's own",
                                   "take it yourself, and give this function a schema without it")
        image = STEPS[name](image, settings["size"], numpy)
    return image


def center_crop(image, size, numpy):
    """The middle of the image; black where the image is smaller."""
    height, width = size[0], size[-1]
    top, left = (_middle(old, now) for old, now in zip(image.shape, (height, width)))
    out = numpy.zeros((height, width, image.shape[2]), numpy.uint8)
    down, right = max(0, -top), max(0, -left)
    part = image[max(0, top):top + height, max(0, left):left + width]
    out[down:down + part.shape[0], right:right + part.shape[1]] = part
    return out


def _middle(old, now):
    return (old - now) // 2 if old > now else -((now - old) // 2)


def resize(image, size, numpy):
    """To [height, width]; with one number that is the new length of the shorter side."""
    if len(size) == 1:
        shorter = min(image.shape[:2])
        size = [(side * size[0] + shorter // 2) // shorter for side in image.shape[:2]]
    if list(image.shape[:2]) == list(size):
        return image
    for axis, length in enumerate(size):
        sums = numpy.tensordot(_weights(image.shape[axis], length, numpy), image.astype(numpy.int64), (1, axis))
        image = numpy.moveaxis(sums + ONE // 2 >> 15, 0, axis).astype(numpy.uint8)
    return image


def _weights(old, new, numpy):
    """[new, old]: triangles as wide as the step between the new pixels."""
    step = old / new
    reach = max(1.0, step)
    weights = numpy.zeros((new, old), numpy.int64)
    for i in range(new):
        centre = (i + 0.5) * step - 0.5
        near = range(max(0, math.floor(centre - reach)), min(old, math.ceil(centre + reach) + 1))
        exact = [max(0.0, reach - abs(k - centre)) for k in near]
        fixed = [math.floor(weight / sum(exact) * ONE + 0.5) for weight in exact]
        fixed[exact.index(max(exact))] += ONE - sum(fixed)
        weights[i, near.start:near.stop] = fixed
    return weights


STEPS = {"resize": resize, "center_crop": center_crop}
