"""The coverage of labels: checks whether a written cell covers a value, by the tables of docs/methods.md."""

import datetime
import re
from contextlib import suppress
from decimal import Decimal

from values import as_printed, first_day, sort_key

ERRORS = (ArithmeticError, ValueError)  # A text that is no number, day or moment raises one of these.


def is_label(column, written, value, level):
    """Returns whether a written cell is the label of a value at a level."""
    if level == column.top:
        return written is None or written == "*"
    if value is None or written is None:
        return value is None and written is None
    is_text = isinstance(written, str)
    with suppress(*ERRORS):
        if is_text and column.rule in ("range", "bands"):
            return covers(column, written, value) and is_of_level(column, written, value, level)
        if is_text and (level or column.kind in ("text", "bool")):
            return written == column.labels(value)[level]
        if column.rule == "date" and level:
            is_midnight = not isinstance(written, datetime.datetime) or written.time() == datetime.time()
            return is_midnight and first_day(written, "day") == column.code(value, level)
        number = read(column, written) if is_text else sort_key(column.kind, as_printed(written, column.type))
        return number == column.code(value, level)
    return False


def is_of_level(column, written, value, level):
    """Returns whether an interval of `range` or `bands` is no wider than at its level."""
    ends = re.fullmatch(r"\[(.+),(.+)\)", written)
    if not ends or not level:
        return True
    low, high = map(Decimal, ends.groups())
    step = column.steps[level - 1]
    if column.rule == "bands":
        return {low, high} <= {*step, *column.clip}
    start = column.step_start(value, level)
    return low >= start and high <= start + step


def read(column, text):
    """Returns the sort key of a number, day or moment in a label."""
    parse = {"number": Decimal, "day": datetime.date.fromisoformat, "moment": datetime.datetime.fromisoformat}
    return sort_key(column.kind, parse[column.kind](text))


def is_inside(column, value, low, high, closed=(True, True)):
    """Returns whether a value lies between two sort keys; an open end is None."""
    number = sort_key(column.kind, value)
    is_above = low is None or number > low or closed[0] and number == low
    return is_above and (high is None or number < high or closed[1] and number == high)


def covers(column, text, value):
    """Returns whether the text of a region covers a value."""
    if text is None or text == "*":
        return text == "*" or value is None
    labels = [] if value is None else column.labels(value)
    if text.startswith("\\"):  # The mark of a text that looks like another form. It may itself end in " or missing".
        return text[1:] in labels or text.endswith(" or missing") and (value is None or text[1:-11] in labels)
    if text in labels:
        return True
    if text.endswith(" or missing"):
        return value is None or covers(column, text.removesuffix(" or missing"), value)
    if value is None:
        return False
    if text.startswith("{") and text.endswith("}"):
        return any(is_equal(column, member, value, labels) for member in members(text))
    return is_equal(column, text, value, labels) or is_in_interval(column, text, value)


def members(text):
    """Returns the texts of a set such as {a; b}, in which \\ stands before special characters."""
    parts = re.split(r"(?<!\\)((?:\\\\)*); ", text[1:-1])  # Every second part is the run of \\ before a separator.
    texts = [part + slashes for part, slashes in zip(parts[::2], [*parts[1::2], ""])]
    return [re.sub(r"\\(.)", r"\1", each, flags=re.DOTALL) for each in texts]


def is_equal(column, text, value, labels):
    """Returns whether a text is a label of a value, or a number, day or moment that equals it."""
    with suppress(*ERRORS):
        return text in labels or column.kind not in ("text", "bool") and read(column, text) == sort_key(column.kind, value)
    return False


def is_in_interval(column, text, value):
    """Returns whether a text such as [20,30) or <=30 is an interval around a value."""
    if column.kind in ("text", "bool"):
        return False
    with suppress(*ERRORS):
        if match := re.fullmatch(r"([\[(])(.+),(.+)([\])])", text):
            low, high = read(column, match[2]), read(column, match[3])
            return is_inside(column, value, low, high, (match[1] == "[", match[4] == "]"))
        if match := re.fullmatch(r"([<>])(=?)(.+)", text):
            end, closed = read(column, match[3]), (match[2] == "=",) * 2
            return is_inside(column, value, *((end, None) if match[1] == ">" else (None, end)), closed)
    return False
