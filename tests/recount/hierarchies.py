"""Random hierarchies of columns, with the other keys of a column's line in the policy."""

import csv
import datetime
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from models import OF_POPULATION
from values import KNOWN, PERIODS, known_labels

AWKWARD = ["*", "{x}", "a;b", "\\", "[20,30)", "<=3", "p,q", "a or missing", "other", "", "Zu\u0308rich", "{a; b}",
           "a..b", '"q"', "NULL", ">=5", "\\*", "x*", " lead", "a\nb"]
WORDS = ["Oslo", "Rome", "Bonn", "Lima", "Kyiv", "Quito", "Accra", "Dakar", "Minsk", "Sofia", "Tunis", "Hanoi"]


def draw_rule(table, column, rule):
    """Gives a quasi-identifier a hierarchy by a rule, or bounds for noise, and draws the other keys of its line."""
    r, kind = table.r, table.kind
    if kind == "noise":
        low = Decimal(r.choice([0, 10] if "uint" in str(column.type) else [-30, 0, 10]))
        column.clip = (low, low + r.choice([20, 50, 100]))
        column.line["clip"] = list(column.clip)
        return
    if rule == "merge" and (kind in ("centroids", "groups") or table.model in OF_POPULATION):
        rule = "file"
    if table.is_csv and rule not in ("range", "floor", "bands", "date", "period"):
        # Without a rule that needs numbers or dates, the cells of a CSV file are texts.
        rule = rule if column.kind == "text" else None
        column.kind, column.cells = "text", [None if cell is None else str(cell) for cell in column.cells]
        column.values = column.cells
    column.rule = rule
    if rule == "file":
        draw_file(table, column)
    elif rule:
        draw_steps(r, column)
    draw_keys(table, column)


def draw_steps(r, column):
    """Draws the steps of a rule and writes the hierarchy into the column's line."""
    rule, shown, keys = column.rule, None, {}
    if rule in ("range", "floor"):
        fraction = [[Decimal("2.5"), 10]] if rule == "range" or not pa.types.is_integer(column.type) else []
        steps = r.choice([[5, 10, 20], [10, 50], [25], [3, 30], [7, 14, 28, 56], *fraction])
        column.steps, column.origin = list(map(Decimal, steps)), Decimal(r.choice([0, 0, 0, 1, 5, -2]))
        keys = {"origin": column.origin} if column.origin else {}
    elif rule == "bands":
        points = list(map(Decimal, sorted(r.sample(range(-10, 95), 4))))
        column.steps = [points, points[1:2]]
    elif rule in ("date", "period"):
        column.steps = ["week"] if r.chance(0.2) else sorted(r.sample(PERIODS, r.randint(1, 4)), key=PERIODS.index)
    elif rule == "prefix":
        column.steps = sorted(r.sample([1, 2, 3, 4], r.randint(1, 3)), reverse=True)
        column.side, column.width = r.choice(["left", "left", "right"]), r.choice([None, None, 6])
        keys = {"side": column.side} | ({"width": column.width} if column.width else {})
    elif rule == "known":
        example = 1 if column.kind == "number" else next(iter(KNOWN.get(column.known, [datetime.datetime(2020, 1, 1)])))
        column.steps, shown = known_labels(column.known, example), column.known
    elif rule == "merge":
        column.steps = [None] * r.randint(1, 3)
        order = sorted({*column.present()})
        r.shuffle(order)
        shown = {"levels": len(column.steps)} | r.choice([{}, {"by": "counts"}, {"order": order}])
        shown |= r.choice([{}, {}, {"label": "the rest"}])
    column.line["hierarchy"] = {rule: shown or column.steps} | keys


def draw_keys(table, column):
    """Draws bounds, a weight and the levels that the policy allows."""
    r, line, top = table.r, column.line, column.top
    can_clip = column.kind == "number" and column.rule in (None, "range", "floor", "bands") and table.kind != "groups"
    if can_clip and r.chance(0.25):
        low, high = map(Decimal, sorted(r.sample(range(60), 2)))
        column.clip = r.choice([(low, high), (None, high), (low, None)])
        line["clip"] = {end: bound for end, bound in zip(("from", "to"), column.clip) if bound is not None}
    if r.chance(0.2):
        line["weight"] = r.choice([0.5, 2, 3.25])
    if r.chance(0.12) and top > 1 and table.kind == "levels":
        line["min_level"] = 1
    if r.chance(0.1) and (table.kind == "levels" or table.method in ("local", "subtree", "best")):
        line["max_level"] = max(line.get("min_level", 0), top - 1)


def draw_file(table, column):
    """Writes a hierarchy file: each value, two labels of it and the top."""
    r, column.rule, column.steps = table.r, "file", [1, 2]
    values = sorted({str(value) for value in column.present()})
    fine, coarse = ([f"{word}~" for word in r.sample(WORDS + AWKWARD[:12], 4)] for _ in range(2))
    parts = {value: at if at < 2 else r.randrange(4) for at, value in enumerate(values)}  # Two labels at least.
    column.tree = {value: [fine[part], coarse[part % 2] + "~"] for value, part in parts.items()}
    lines = [[value, *labels, "*"] for value, labels in column.tree.items()]
    name, header = f"{column.name}.{r.choice(['csv', 'csv', 'parquet'])}", [column.name, "fine", "coarse", "all"]
    if name.endswith("parquet"):
        cells = zip(*lines) if lines else [[]] * 4
        content = pa.table({title: pa.array(list(part), pa.string()) for title, part in zip(header, cells)})
        pq.write_table(content, table.folder / name)
    else:
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, delimiter=r.choice(",;")).writerows([header, *lines])
        (table.folder / name).write_text(text.getvalue())
    column.line["hierarchy"] = {"file": name}
