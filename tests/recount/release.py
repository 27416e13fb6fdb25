"""A written release: its tables, its records, and the row of the input for each released row."""

import json
from collections import defaultdict

import pyarrow as pa
import pyarrow.parquet as pq

from values import comparable


class Release:
    """The content of a release, with the problems that the checks find in it.

    `rows` has the number of the input row for each released row. `suppressed` has the rows that are missing.
    `classes` has lists of rows by their labels, and `population` has sets of individuals by the same labels.
    """

    def __init__(self, case, folder):
        self.case, self.folder, self.problems = case, folder, []
        self.record, self.private = json.loads((folder / "_kanon.json").read_text()), json.loads(case.private.read_text())
        (self.cells, self.types), *others = [self.read(table) for table in self.record["tables"]]
        self.second = others[0][0] if others else None
        self.quasi = case.of_role("quasi")
        places = {token: row for row, token in enumerate(case.tokens)}
        self.rows = [places.get(token) for token in self.cells.get("row", [])]
        self.suppressed = sorted({*range(case.rows)} - {*self.rows}) if case.kind != "noise" else []
        self.classes, self.population = {}, {}

    def read(self, table):
        """Returns the cells and the types of a released table by column."""
        folder = self.folder / table.get("folder", ".")
        content = pa.concat_tables([pq.read_table(folder / file["name"]) for file in table["files"]])
        self.expect(content.num_rows == table["rows"], "the record has a wrong number of rows")
        cells = {}
        for name, column in zip(content.column_names, content.columns):
            if self.case.kind == "centroids" and pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())  # A mean may be finer than microseconds.
            cells[name] = column.to_pylist()
        return cells, dict(zip(content.column_names, content.schema.types))

    def expect(self, holds, problem):
        """Adds a problem unless a condition holds."""
        if not holds:
            self.problems.append(problem)

    def expect_all(self, checks, problem):
        """Adds a problem with the number of checks that fail, if any fails."""
        wrong = sum(not check for check in checks)
        self.expect(not wrong, f"{problem}: {wrong}")

    def interval_columns(self, column):
        """Returns the names of the three columns that hold a column's intervals, or nothing."""
        names = [f"{column.name}_{end}" for end in ("from", "to", "missing")]
        return names if self.case.output.get("intervals") and column.role == "quasi" and names[0] in self.cells else []

    def names_of(self, column):
        """Returns the names of the released columns of a column."""
        return self.interval_columns(column) or [column.name]

    def shown(self, columns, at):
        """Returns the labels of a released row in some columns."""
        return tuple(comparable(self.cells[name][at]) for column in columns for name in self.names_of(column))

    def cells_and_values(self, column):
        """Yields each cell of a released column with the value of its row."""
        return zip(self.cells[column.name], (column.values[row] for row in self.rows))

    def cells_by_class(self, column):
        """Yields the cell of a column and the rows for each class."""
        cell_of = dict(zip(self.rows, self.cells[column.name]))
        return ((cell_of[rows[0]], rows) for rows in self.classes.values())

    def group_by(self, columns):
        """Returns lists of rows by their labels in some columns."""
        classes = defaultdict(list)
        for at, row in enumerate(self.rows):
            classes[self.shown(columns, at)].append(row)
        return dict(classes)

    def restricted(self, require):
        """Returns the classes of the quasi-identifiers for which a model is required."""
        if "quasi" not in require:
            return self.classes
        return self.group_by([column for column in self.quasi if column.name in require["quasi"]])
