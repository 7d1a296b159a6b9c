"""A tensor that has been read: its name, type, shape, and bytes, for numpy, PyTorch, or neither."""
import array
import dataclasses
import math
import struct
import typing

from .errors import UnsupportedError, optional_module

# By name in a safetensors file: bytes of an element, its code in array and struct, its name in numpy. BF16 has no code.
DTYPES = {"F32": (4, "f", "float32"), "F64": (8, "d", "float64"), "F16": (2, "e", "float16"), "BF16": (2, "", ""),
          "I64": (8, "q", "int64"), "I32": (4, "i", "int32"), "I16": (2, "h", "int16"), "I8": (1, "b", "int8"),
          "U16": (2, "H", "uint16"), "U8": (1, "B", "uint8"), "BOOL": (1, "?", "bool")}


def elements(shape) -> int:
    return math.prod(shape)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """`data` is row-major and little-endian, and belongs to the tensor alone: whoever changes it changes no file."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytearray = dataclasses.field(repr=False)

    def array(self) -> array.array:
        """The flat values. fp16 and bf16 become fp32, which changes no value."""
        if self.dtype == "F16":
            return array.array("f", struct.unpack(f"<{len(self.data) // 2}e", self.data))
        if self.dtype == "BF16":
            return array.array("f", _upcast(self.data))
        code = DTYPES[self.dtype][1]
        return array.array("B" if code == "?" else code, bytes(self.data))

    def memoryview(self) -> memoryview:
        """The values in their shape, without a copy: view[2, 0]. tolist() makes nested lists of it."""
        if self.dtype in ("F16", "BF16"):
            raise UnsupportedError(f"tensor '{self.name}'", "a type that Python has", self.dtype, "take array() or numpy()")
        code: typing.Any = DTYPES[self.dtype][1]
        view = memoryview(self.data)
        return view.cast(code, self.shape) if self.shape and elements(self.shape) else view.cast(code)

    def numpy(self):
        """A numpy array of the tensor's shape, without a copy but of bf16, which becomes fp32."""
        numpy = optional_module("numpy", f"numpy() of tensor '{self.name}'")
        if self.dtype == "BF16":
            return numpy.frombuffer(_upcast(self.data), "<f4").reshape(self.shape)
        return numpy.frombuffer(self.data, numpy.dtype(DTYPES[self.dtype][2]).newbyteorder("<")).reshape(self.shape)

    def torch(self):
        """A torch.Tensor of the tensor's shape and type, on the CPU."""
        torch = optional_module("torch", f"torch() of tensor '{self.name}'")
        names = {"BF16": "bfloat16"} | {name: numpy for name, (_, _, numpy) in DTYPES.items() if numpy}
        kind = getattr(torch, names[self.dtype])
        if not self.data:
            return torch.empty(self.shape, dtype=kind)
        return torch.frombuffer(self.data, dtype=kind).reshape(self.shape)

    def __array__(self, dtype=None, copy=None):
        values = self.numpy()
        return values.astype(dtype) if dtype is not None else values.copy() if copy else values


def _upcast(data) -> bytearray:
    """bf16 as fp32: the upper half of each value."""
    out = bytearray(2 * len(data))
    out[2::4], out[3::4] = data[0::2], data[1::2]
    return out
