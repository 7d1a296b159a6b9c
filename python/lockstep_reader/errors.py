"""Errors: each says the place, what was expected there, what was found, and what to try."""


class ReaderError(Exception):
    """What all functions of this package raise where a file is not what it should be, or a request cannot be met.

    `place`, `expected`, `found` and `remedy` are the parts of the message, without its punctuation.
    """

    def __init__(self, place, expected, found, remedy):
        super().__init__(f"{place}: expected {expected}, found {found}; {remedy}")
        self.place, self.expected, self.found, self.remedy = str(place), expected, found, remedy


class MissingError(ReaderError):
    """Something is not there: a file, a tensor, an evaluation."""


class DamagedError(ReaderError):
    """A file is there, and is not what was written."""


class UnsupportedError(ReaderError):
    """A file is sound, and this version cannot read it, or a library that it takes is not installed."""


class FitError(ReaderError):
    """Tensors and a module do not fit; `fit` says which do and which do not."""

    def __init__(self, place, expected, found, remedy, fit):
        super().__init__(place, expected, found, remedy)
        self.fit = fit


def optional_module(name, what):
    """Imports a library that only `what` takes. Raises UnsupportedError if it is not installed."""
    try:
        return __import__(name)
    except ImportError as error:
        raise UnsupportedError(what, f"the Python package '{name}'", "none",
                               f"install it, or use what works without {name}") from error
