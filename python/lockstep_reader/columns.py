"""Columns: a small table, for plots without pandas and for pandas."""
from collections.abc import Iterator, Mapping

from .errors import optional_module


class Columns(Mapping[str, list]):
    """Lists of equal length by name, in order; a value that a row does not have is None.

        plot(curve["step"], curve["loss"])
    """

    def __init__(self, rows: list[dict]):
        names = dict.fromkeys(name for row in rows for name in row)
        self._columns = {name: [row.get(name) for row in rows] for name in names}
        self._length = len(rows)

    def __getitem__(self, name: str) -> list:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"'{name}'; the columns are {', '.join(self._columns) or 'none'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of columns, as for any mapping; rows() are counted by `height`."""
        return len(self._columns)

    @property
    def height(self) -> int:
        return self._length

    def rows(self) -> list[dict]:
        """A dictionary for each row, without what it does not have."""
        return [{name: column[i] for name, column in self._columns.items() if column[i] is not None}
                for i in range(self._length)]

    def last(self) -> dict:
        """The last row; empty if there is none."""
        return self.rows()[-1] if self._length else {}

    def to_numpy(self) -> dict:
        """A numpy array by name. Missing numbers are NaN."""
        numpy = optional_module("numpy", "to_numpy()")
        return {name: numpy.array([float("nan") if value is None else value for value in column]
                                  if _is_numeric(column) else column)
                for name, column in self._columns.items()}

    def to_pandas(self):
        """A pandas.DataFrame."""
        return optional_module("pandas", "to_pandas()").DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self._length} rows: {', '.join(self._columns)})"


def _is_numeric(column) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in column)
