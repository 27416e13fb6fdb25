"""A column of the input, with the hierarchy that the policy gives it."""

import re
from decimal import Decimal

from values import as_printed, first_day, known_labels, period_name, round_down, sort_key


class Column:
    """A column: `cells` are in the input file, the hierarchy applies to `values`, and `line` is for the policy.

    `kind` is number, day, moment, bool or text. `rule` names the hierarchy, and `steps` has one entry for each level
    between 0, which keeps the values, and the top, which suppresses them. `tree` has the labels of a file or of `merge`,
    and `known` is the name of a hierarchy that comes with kanon.
    """

    def __init__(self, name, role, kind, arrow_type, cells):
        self.name, self.role, self.kind, self.type, self.line = name, role, kind, arrow_type, {"role": role}
        self.cells, self.cell_type = cells, arrow_type
        self.values = [as_printed(cell, arrow_type) for cell in cells] if role == "quasi" else cells
        self.rule, self.steps, self.origin, self.clip = None, [], Decimal(0), (None, None)
        self.known, self.tree, self.side, self.width = None, {}, "left", None

    @property
    def top(self):
        """Returns the level that suppresses the column."""
        return len(self.steps) + 1

    @property
    def has_intervals(self):
        """Returns whether the regions of the column are intervals."""
        return self.kind in ("number", "day", "moment") and self.rule != "file"

    def present(self, rows=None):
        """Returns the values of all rows, or of these, without the missing ones."""
        values = self.values if rows is None else [self.values[row] for row in rows]
        return [value for value in values if value is not None]

    def labels(self, value):
        """Returns the text of a value at level 0, and where the rule makes texts, at the levels below the top."""
        text = ("true" if value else "false") if self.kind == "bool" else str(value)
        if self.rule == "merge":
            return self.tree[text]
        if self.rule == "prefix":
            return [text] + [self.prefix(text, count) for count in self.steps]
        if self.rule == "period":
            return [text] + [period_name(value, period) for period in self.steps]
        if self.rule == "file":
            return [text] + self.tree[text]
        return [text] + (known_labels(self.known, value) if self.rule == "known" else [])

    def prefix(self, text, count):
        """Returns the first or last characters of a text, with marks for the others; accents belong to their letter."""
        characters = re.findall(r".[\u0300-\u036f]*", text, re.DOTALL)
        kept = characters[:count] if self.side == "left" else characters[-count:]
        marks = "*" * (self.width - len(kept) if self.width else 1)
        return "".join(kept) + marks if self.side == "left" else marks + "".join(kept)

    def clipped(self, value):
        """Returns the sort key of a number after `clip`."""
        number, (low, high) = sort_key("number", value), self.clip
        if number[0] == 2:
            return number
        number = number if low is None else max(number, (0, low))
        return number if high is None else min(number, (0, high))

    def step_start(self, value, level):
        """Returns the number at which the step of a clipped value begins."""
        return round_down(self.clipped(value)[1], self.steps[level - 1], self.origin)

    def code(self, value, level):
        """Returns a code for the label of a value at a level; two values have one code exactly if they have one label."""
        if level == self.top or value is None:
            return "everything" if level == self.top else None
        if self.kind == "number" and self.rule not in ("file", "known", "prefix"):
            number, (low, high) = self.clipped(value), self.clip
            if self.rule in ("range", "bands") and low is not None and sort_key("number", value) < (0, low):
                return "below"
            if level == 0 or number[0] or number == (0, high):
                return number
            if self.rule == "bands":
                return sum(point <= number[1] for point in self.steps[level - 1])
            start = self.step_start(value, level)
            return ("from", start) if self.rule == "range" else (0, start if low is None else max(start, low))
        if self.rule == "date" and level:
            return first_day(value, self.steps[level - 1])
        return self.labels(value)[level] if level or self.rule == "merge" else sort_key(self.kind, value)
