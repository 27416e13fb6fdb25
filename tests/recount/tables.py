"""Random tables: their columns, their cells and their files."""

import csv
import datetime
import io
import math
import random
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

from columns import Column
from hierarchies import AWKWARD, WORDS, draw_file, draw_rule
from models import OF_POPULATION, OF_VALUES
from values import KNOWN, as_float32


class Dice(random.Random):
    """A source of random numbers."""

    def chance(self, share):
        """Returns True in this share of the calls."""
        return self.random() < share

    def token(self, letter):
        """Returns a text that occurs nowhere else by chance."""
        return letter + "".join(self.choices("abcdefghjkmnpqrstuvwxyz23456789", k=11))


class Table:
    """A random table that suits a kind of method and a model."""

    def __init__(self, r, kind, method, model, folder):
        self.r, self.kind, self.method, self.model, self.folder = r, kind, method, model, folder
        self.columns = []
        self.rows = max(4, round(r.choice([5, 12, 25, 50, 80, 120, 200, 300, 400]) * r.uniform(0.7, 1)))
        if kind in ("groups", "noise") or model in ("delta_disclosure", "delta_presence"):
            self.rows = max(self.rows, 40)
        self.is_csv = r.random() < 0.2 and model not in ("t_closeness_ordered", "personalized_k_anonymity")
        self.make_individuals()
        self.make_quasi()
        if kind != "noise":
            self.make_sensitive()
            self.make_insensitive()

    def add(self, name, role, kind, arrow_type, cells):
        """Adds a column and returns it."""
        self.columns.append(Column(name, role, kind, arrow_type, cells))
        return self.columns[-1]

    def of_role(self, *roles):
        """Returns the columns that have one of these roles."""
        return [column for column in self.columns if column.role in roles]

    def make_individuals(self):
        """Adds a token for each row, the individuals and columns that no release may show."""
        r, rows = self.r, self.rows
        self.tokens = [r.token("R") for _ in range(rows)]
        role = {"groups": "quasi", "noise": "identifier"}.get(self.kind, "insensitive")
        row = self.add("row", role, "text", pa.string(), self.tokens)
        if role == "insensitive":
            row.line["allow_unique"] = True
        self.individuals, self.has_individuals = list(range(rows)), r.chance(0.4)
        if self.has_individuals:
            if self.kind not in ("groups", "noise"):  # These take one row of each individual.
                count = max(3, round(rows * r.uniform(0.4, 1)))
                self.individuals = [None if r.chance(0.04) else r.randrange(count) for _ in range(rows)]
            names = [r.token("P") for _ in range(rows + 3)] if r.chance(0.5) else range(13, 10**9, 7919)
            kind, arrow_type = ("text", pa.string()) if isinstance(names, list) else ("number", pa.int64())
            cells = [None if individual is None else names[individual] for individual in self.individuals]
            self.add("pid", "individual", kind, arrow_type, cells)
        self.add("ssn", "identifier", "text", pa.string(), [r.token("S") for _ in range(rows)])
        for name, role in (("notes", "text"), ("unnamed", "others")):
            if r.chance(0.4):
                self.add(name, role, "text", pa.string(), [r.choice([None, r.token("T")]) for _ in range(rows)])

    def spread(self, values):
        """Returns random cells: few or many of the values, evenly or not, some of them missing."""
        r = self.r
        values = r.sample(values, min(len(values), r.choice([2, 3, 4, 6, 10, 20, 60])))
        return self.weighted(values, [1, 1, 1, 5], [0, 0, 0.05, 0.3])

    def weighted(self, values, weights, shares):
        """Returns random cells; each value has one of the weights, and one of the shares of the cells is missing."""
        r = self.r
        weights, missing = [r.choice(weights) for _ in values], r.choice(shares)
        return [None if r.chance(missing) else r.choices(values, weights)[0] for _ in range(self.rows)]

    def make_quasi(self):
        """Adds one to four quasi-identifiers of random kinds."""
        makers = {"int": self.ints, "decimal": self.decimals, "float": self.floats, "day": self.days,
                  "moment": self.moments, "bool": self.bools, "text": self.texts, "known": self.known_texts}
        names = ["int", "day", "text", "text", "known"] if self.is_csv else ["int", "text", "text", *makers]
        names = ["int", "decimal", "float"] if self.kind == "noise" else names
        can_follow = not self.is_csv and self.kind != "groups" and self.model not in OF_POPULATION
        for at in range(1 if self.kind == "noise" and self.r.chance(0.6) else self.r.randint(1, 4)):
            maker = self.r.choice(names)
            column, rules = makers[maker](f"q{at}")
            if maker == "day" and can_follow and self.r.chance(0.4):
                self.make_relative(column)
            draw_rule(self, column, self.r.choice(rules))

    def ints(self, name):
        """Adds integers of any width."""
        types = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
        arrow_type = self.r.choice(types)
        ranges = [(18, 70), (0, 100), (0, 12)] + [(-90, 180)] * pa.types.is_signed_integer(arrow_type)
        start, size = self.r.choice(ranges)
        column = self.add(name, "quasi", "number", arrow_type, self.spread(range(start, start + size)))
        column.known = "life_stage"
        return column, [None, "range", "range", "floor", "bands", "file", "prefix"] + ["known"] * (start >= 0)

    def decimals(self, name):
        """Adds decimal numbers of two places."""
        arrow_type = self.r.choice([pa.decimal128(9, 2), pa.decimal128(30, 2), pa.decimal256(50, 2)])
        cells = self.spread([Decimal(number) / 100 for number in range(-2000, 9000, 37)])
        return self.add(name, "quasi", "number", arrow_type, cells), [None, "range", "range", "floor", "bands"]

    def floats(self, name):
        """Adds floats, sometimes with NaN and infinities."""
        r, arrow_type = self.r, self.r.choice([pa.float32(), pa.float64()])
        values = [round(r.uniform(-20, 90), r.choice([0, 1, 3])) for _ in range(40)]
        values += [0.0, math.nan, math.inf, -math.inf, 1e18] if r.chance(0.3) else []
        values = list(dict.fromkeys(as_float32(value) if arrow_type == pa.float32() else value for value in values))
        column = self.add(name, "quasi", "number", arrow_type, self.spread(values))
        return column, [None, "range", "range", "floor", "bands"]

    def days(self, name):
        """Adds days within weeks, years or decades."""
        r = self.r
        start = datetime.date(r.choice([1899, 1960, 1995]), r.randint(1, 12), 1)
        steps = range(0, r.choice([20, 400, 15000]), r.choice([1, 7, 31]))
        cells = self.spread([start + datetime.timedelta(step) for step in steps])
        column = self.add(name, "quasi", "day", pa.date32(), cells)
        column.known = "weekday"
        return column, [None, "date", "date", "period", "period", "known"]

    def make_relative(self, column):
        """Adds days that are released as their distances from the days of another column."""
        r, first = self.r, column.cells
        gaps = [r.choice([0, 1, 2, 5, 9, 30, -3]) for _ in first]
        cells = [None if day is None or r.chance(0.05) else day + datetime.timedelta(gap) for day, gap in zip(first, gaps)]
        distances = [None if later is None else (later - day).days for later, day in zip(cells, first)]
        later = self.add(column.name + "d", "quasi", "number", pa.int64(), distances)
        later.cells, later.cell_type, later.line["relative_to"] = cells, pa.date32(), column.name
        draw_rule(self, later, r.choice(["range", "floor"]))

    def moments(self, name):
        """Adds moments with or without a time zone."""
        r, zone, moments = self.r, self.r.choice([None, "UTC", "Europe/Rome"]), []
        start = datetime.datetime(r.choice([1965, 2021]), 3, 1, tzinfo=zone and ZoneInfo(zone))
        arrow_type = pa.timestamp(r.choice(["ms", "us", "ns"]), zone)
        for _ in range(40):
            minutes = r.randrange(r.choice([3000, 3_000_000]))
            moments.append(start + datetime.timedelta(minutes=minutes, milliseconds=r.randrange(3)))
        column = self.add(name, "quasi", "moment", arrow_type, self.spread(moments))
        column.known = r.choice(["weekday", "hour"])
        return column, [None, "date", "period", "known"]

    def bools(self, name):
        """Adds truth values."""
        return self.add(name, "quasi", "bool", pa.bool_(), self.spread([True, False])), [None]

    def texts(self, name, words=None):
        """Adds texts: these words, or places, zip codes and texts that look like labels."""
        types = [pa.string(), pa.large_string(), pa.string_view()]
        types += [pa.dictionary(index, pa.string()) for index in (pa.int8(), pa.int32())]
        zips = [f"{number:05}" for number in self.r.sample(range(1000, 1400), 40)]
        words = words or self.r.choice([AWKWARD, WORDS, WORDS + AWKWARD, zips])
        cells = [cell or None if self.is_csv else cell for cell in self.spread(words)]
        column = self.add(name, "quasi", "text", self.r.choice(types), cells)
        return column, [None, "prefix", "prefix", "file", "file", "merge", "merge"]

    def known_texts(self, name):
        """Adds texts of a hierarchy that comes with kanon."""
        known = self.r.choice(list(KNOWN))
        column, _ = self.texts(name, list(KNOWN[known]))
        column.known = known
        return column, ["known"]

    def make_sensitive(self):
        """Adds up to two sensitive columns."""
        r = self.r
        least = 1 if self.model in OF_VALUES else 0
        for at in range(1 if self.kind == "groups" else r.choice([least, 1, 1, 2])):
            count = r.choice([5, 9] if self.kind == "groups" else [2, 3, 4, 6])
            days = [datetime.date(2020, 1, 1 + number) for number in range(count)]
            texts = ("text", [pa.string(), pa.dictionary(pa.int8(), pa.string())], r.sample(WORDS + AWKWARD[:8], count))
            others = [("number", [pa.int16(), pa.int64()], r.sample(range(-50, 99), count)), ("day", [pa.date32()], days)]
            choices = [texts] * (0 if self.model == "t_closeness_ordered" else 3) + others * (not self.is_csv)
            kind, types, values = r.choice(choices)
            cells = self.weighted(values, [1, 2, 2, 3], [0, 0, 0.05])
            column = self.add(f"s{at}", "sensitive", kind, r.choice(types), cells)
            column.line["allow_unique"] = True
            if kind != "day" and (self.model == "t_closeness_hierarchical" or r.chance(0.4)):
                draw_file(self, column)

    def make_insensitive(self):
        """Adds the individuals' own choices of k, where the model needs them, and sometimes another column."""
        r = self.r
        if self.model == "personalized_k_anonymity":
            wanted = [r.choice([None, 0, 1, 2, 3, 4]) for _ in range(self.rows)]
            self.add("wanted", "preference", "number", pa.int32(), wanted)
        if r.chance(0.4) and self.kind != "groups":
            others = [("number", pa.float64(), [0.0, 1.5, math.nan]), ("number", pa.uint8(), [1, 2, 3]),
                      ("bool", pa.bool_(), [True, False])]
            texts = ("text", pa.large_string(), ["x", "y*", "{z}"])
            kind, arrow_type, values = r.choice([texts] + others * (not self.is_csv))
            cells = [r.choice([None, *values]) for _ in range(self.rows)]
            self.add("extra", "insensitive", kind, arrow_type, cells).line["allow_unique"] = True

    def write_inputs(self):
        """Writes the rows to the folders `input` and `other`, in another order and in other files."""
        order = list(range(self.rows))
        for name in ("input", "other"):
            (self.folder / name).mkdir()
            places = (self.r.randrange(1, self.rows) for _ in range(self.r.choice([0, 1, 2])))
            cuts = sorted({0, self.rows, *places})
            for at, (start, end) in enumerate(zip(cuts, cuts[1:])):
                cells = {column.name: [column.cells[row] for row in order[start:end]] for column in self.columns}
                self.write(self.folder / name / str(at), cells)
            self.r.shuffle(order)

    def write(self, path, cells):
        """Writes cells in the format of the table; returns the name of the file."""
        r, path = self.r, path.with_suffix(".csv" if self.is_csv else ".parquet")
        if self.is_csv:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n", quoting=r.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
            rows = zip(*cells.values())
            writer.writerows([list(cells), *(["" if cell is None else cell for cell in row] for row in rows)])
            path.write_text(text.getvalue())
        else:
            types = {column.name: column.cell_type for column in self.columns}
            content = pa.table({name: pa.array(column, types[name]) for name, column in cells.items()})
            pq.write_table(content, path, row_group_size=r.choice([3, 17, 1000]), use_dictionary=r.chance(0.7))
        return path.name
