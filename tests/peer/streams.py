"""lockstep's random numbers, implemented a second time: which samples a step uses, and what dropout drops.

Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), keyed by hashes of what the
numbers are for (include/lockstep/random.hpp, src/data/sampler.hpp, src/ops/dropout/dropout_mask.hpp).
"""
import numpy

MASK = (1 << 64) - 1
LOW = numpy.uint64(0xFFFFFFFF)


def hash_name(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def mix(a, b):
    """Combines two 64-bit words into one by SplitMix64's finalizer."""
    x = (a + 0x9E3779B97F4A7C15 * (b + 1)) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def philox(key, counter):
    """Four arrays of 32-bit words (held in uint64) for a counter of four such arrays."""
    c = [numpy.asarray(word, numpy.uint64) for word in counter]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> numpy.uint64(32) ^ c[1] ^ numpy.uint64(keys[0]), p1 & LOW,
             p0 >> numpy.uint64(32) ^ c[3] ^ numpy.uint64(keys[1]), p0 & LOW]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def permutation(size, key):
    """The order of `size` samples: a six-round Feistel network over the next power of four, with cycle walking."""
    half = ((size - 1).bit_length() + 1) // 2
    mask = (1 << half) - 1

    def trip(value):
        left, right = value >> half, value & mask
        for step in range(6):
            words = philox(key, (right & 0xFFFFFFFF, right >> 32, step, 0))
            left, right = right, left ^ ((int(words[0]) | int(words[1]) << 32) & mask)
        return left << half | right

    order = []
    for place in range(size):
        value = trip(place)
        while value >= size:
            value = trip(value)
        order.append(value)
    return order


def batch_ids(seed, samples, batch, step):
    """The samples of a step (counted from 0), in the order in which they are cut into micro-batches."""
    steps = samples // batch
    order = permutation(samples, mix(mix(seed, hash_name("sampler")), step // steps))
    first = step % steps * batch
    return order[first:first + batch]


def window_offset(seed, epoch, context):
    """How many tokens later the windows of an epoch begin."""
    variant = max(1, mix(mix(seed, hash_name("variant")), epoch))
    return mix(variant, hash_name("window offset")) % context


def dropout_mask(seed, layer, step, rate, first, shape):
    """True for elements that are kept; `first` is the position in the batch of the first of these samples."""
    elements = numpy.arange(int(numpy.prod(shape[1:])), dtype=numpy.uint64)
    positions = numpy.arange(first, first + shape[0], dtype=numpy.uint64)[:, None]
    block = numpy.uint64(16) * (elements // numpy.uint64(64)) + elements % numpy.uint64(16)
    zeros = numpy.zeros((shape[0], len(elements)), numpy.uint64)
    words = philox(mix(mix(seed, hash_name(layer)), step), (zeros + block, zeros, zeros + positions, zeros))
    lane = (zeros + elements // numpy.uint64(16) % numpy.uint64(4)).astype(int)
    chosen = numpy.choose(lane, words)
    return (chosen >= int(rate * 4294967296.0)).reshape(shape)
