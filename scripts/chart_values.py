"""A chart's values.yaml as data: each value's path, default, comment, and allowed values.

The file uses block style for sections and flow style for values. The comment lines above a key belong to it; a line
`@schema {...}` among them is JSON that is added to the value's JSON Schema."""
import json
import re

import yaml

KEY = re.compile(r"^( *)([A-Za-z]\w*):(.*)$")
MARK = "@schema "


class Value:
    """A key of the file: a value, or a section of them. `path` is a tuple of keys."""

    def __init__(self, path, default, text, rule, section):
        self.path, self.default, self.text, self.rule, self.section = path, default, text, rule, section

    @property
    def name(self):
        return ".".join(self.path)


def read(path):
    """The values of the file in its order, each section before its contents. Raises ValueError at a key without a
    comment."""
    values, comment, parents = [], [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
        elif found := KEY.match(line):
            depth = len(found[1]) // 2
            parents = [*parents[:depth], found[2]]
            rule = [json.loads(word.removeprefix(MARK)) for word in comment if word.startswith(MARK)]
            text = " ".join(word for word in comment if not word.startswith(MARK))
            if not text:
                raise ValueError(f"{path}:{number}: expected a comment above '{found[2]}', found none")
            values.append(Value(tuple(parents), yaml.safe_load(found[3]), text, rule[0] if rule else None, not found[3].strip()))
            comment = []
        elif not line.strip():
            comment = []
    return values
