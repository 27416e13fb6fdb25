#!/usr/bin/env python3
"""Judges a release with another engine: counts its classes with DuckDB and looks for what must not be there.

    python3 benches/judge.py OUT --policy POLICY [--k K] [--input INPUT] [--individual COLUMN] [--contains]

OUT is the release (OUT/*.parquet). Checked:

1. every column of OUT has a role that may be written, every quasi-identifier is there, nothing else is;
2. no class (rows equal on all quasi-identifiers, NULL = NULL) has fewer than K rows;
3. with --input: no value of an identifier column of INPUT, nor of its individual column unless it is
   a number, occurs in a text column of OUT (with --contains also not inside a longer text);
4. with --input and an individual column (the policy's, or --individual): the input's quasi-identifiers are
   recoded by the levels of OUT/_kanon.json, one distinct value at a time in Python; every class of OUT has
   as many rows in the input as in OUT, and there no fewer than K different individuals; where the policy
   requires l_diversity of a column, also l different values of it, none of which more than
   individuals - l + 1 of the class have (NULL is no value, and a NULL individual is nobody).

Without an individual column rows are counted: who a row belongs to is not in OUT. K is the policy's k if --k
is left out. INPUT is Parquet or CSV.
Exit code: 0 all holds, 1 something does not, 2 wrong usage or unreadable files.
Needs Python 3.11 and the package `duckdb`.
No cell value is printed.
"""

import argparse
import csv
import datetime
import json
import sys
import tomllib
from decimal import Decimal, localcontext
from pathlib import Path

import duckdb

NEVER_WRITTEN = {"identifier", "individual", "text"}
WRITTEN = {"quasi", "sensitive", "insensitive"}
# The column that a policy with suppressed_rows = "blank" adds; it counts as a quasi-identifier.
BLANK_MARK = "suppressed"


def usage(message):
    print(f"judge: {message}", file=sys.stderr)
    sys.exit(2)


def name(column):
    return '"' + column.replace('"', '""') + '"'


def text(value):
    return "'" + str(value).replace("'", "''") + "'"


def ask(db, sql):
    return db.execute(sql).fetchall()


def read_parquet(paths):
    return f"read_parquet([{', '.join(text(p) for p in paths)}], hive_partitioning = false)"


def required_k(policy):
    """The largest k that the policy asks for on all quasi-identifiers, or None."""
    asked = [policy["k"]] if "k" in policy else []
    for require in policy.get("require", []):
        if require.get("model") == "k_anonymity" and "quasi" not in require:
            asked.append(require["k"])
    return max(asked, default=None)


def input_table(path, policy):
    """A FROM item for the input: Parquet or CSV; a file, a folder or a glob."""
    path = Path(path)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*.parquet")) or sorted(path.rglob("*.csv"))
    elif path.exists():
        files = [path]
    else:
        files = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
    if not files:
        usage("no input file found")
    if files[0].suffix == ".parquet":
        return read_parquet(files)
    options = policy.get("input", {})
    more = f", delim = {text(options['delimiter'])}" if "delimiter" in options else ""
    more += f", nullstr = [{', '.join(map(text, options['nulls']))}]" if options.get("nulls") else ""
    header = str(options.get("header", True)).lower()
    listed = ", ".join(text(f) for f in files)
    return f"read_csv([{listed}], all_varchar = true, header = {header}{more})"


def schema(db, table):
    """Column names and types, in order."""
    return {row[0]: row[1] for row in ask(db, f"DESCRIBE SELECT * FROM {table}")}


class Verdict:
    def __init__(self):
        self.failed = 0

    def say(self, holds, what):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}")
        self.failed += not holds


def judge_columns(verdict, columns, roles):
    forbidden = [c for c in columns if roles.get(c) in NEVER_WRITTEN]
    unknown = [c for c in columns if roles.get(c) not in WRITTEN | NEVER_WRITTEN and c != BLANK_MARK]
    missing = [c for c, role in roles.items() if role == "quasi" and c not in columns]
    verdict.say(not forbidden, f"identifier, individual and text columns in the release: {listing(forbidden)}")
    verdict.say(not unknown, f"columns that the policy does not know: {listing(unknown)}")
    verdict.say(not missing, f"quasi-identifiers that the release lacks: {listing(missing)}")


def judge_classes(verdict, db, release, quasi, k):
    keys = ", ".join(name(c) for c in quasi)
    rows, classes, least, most, small, small_rows = ask(
        db,
        f"""SELECT coalesce(sum(size), 0), count(*), min(size), max(size),
                   count(*) FILTER (size < {k}), coalesce(sum(size) FILTER (size < {k}), 0)
            FROM (SELECT count(*) AS size FROM {release} GROUP BY {keys})""",
    )[0]
    print(f"      {rows} rows in {classes} classes over {', '.join(quasi)}; smallest {least}, largest {most}")
    verdict.say(rows > 0, "the release has rows")
    verdict.say(small == 0, f"classes with fewer than {k} rows: {small} ({small_rows} rows)")


def keep_distinct(db, kept, column, table):
    """A table `kept` with the distinct values of a column as text, without NULL and the empty text."""
    value = f"{name(column)}::VARCHAR"
    ask(
        db,
        f"""CREATE OR REPLACE TEMP TABLE {kept} AS
            SELECT DISTINCT {value} AS v FROM {table} WHERE {value} <> ''""",
    )


def judge_leaks(verdict, db, release, columns, table, roles, contains):
    """Looks for the input's identifying values in every text column of the release."""
    given = schema(db, table)
    secret = [c for c, role in roles.items() if role in ("identifier", "individual")]
    absent = [c for c in secret if c not in given]
    if absent:
        usage(f"the input lacks columns of the policy: {listing(absent)}")
    texts = [c for c, kind in columns.items() if kind == "VARCHAR" or kind.startswith("ENUM")]
    if not secret:
        print("      the policy has no identifier column: nothing to look for")
    for column in secret:
        keep_distinct(db, "secret", column, table)
        if roles[column] == "individual":
            # A number that stands for a person may equal any other number; a text may not.
            ask(db, "DELETE FROM secret WHERE try_cast(v AS DOUBLE) IS NOT NULL")
        for seen in texts:
            keep_distinct(db, "seen", seen, release)
            match = "contains(seen.v, secret.v)" if contains else "seen.v = secret.v"
            found = ask(db, f"SELECT count(DISTINCT secret.v) FROM secret JOIN seen ON {match}")[0][0]
            verdict.say(found == 0, f"values of {column} that occur in {seen}: {found}")


def number(value):
    """A number as one text for all its forms: 10, 10.0 and 1e1 are the same."""
    exact = Decimal(str(value))
    return format(exact.normalize() + 0, "f") if exact.is_finite() else str(exact).lower()


def moment(value):
    """A date or timestamp, from a text too."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time())


def first_day(value, period):
    """The first day of the week, month, ... that holds a date, as text."""
    day = moment(value).date()
    year, month = day.year, day.month
    starts = {
        "day": lambda: day,
        "week": lambda: day - datetime.timedelta(days=day.weekday()),
        "month": lambda: day.replace(day=1),
        "quarter": lambda: datetime.date(year, (month - 1) // 3 * 3 + 1, 1),
        "year": lambda: datetime.date(year, 1, 1),
        "decade": lambda: datetime.date(year // 10 * 10, 1, 1),
        "century": lambda: datetime.date(year // 100 * 100, 1, 1),
    }
    return starts[period]().isoformat()


def floored(value, step):
    """The multiple of a step at or below a number."""
    exact, step = Decimal(str(value)), Decimal(step)
    if not exact.is_finite():
        return number(exact)
    with localcontext() as context:
        context.prec = 400
        rest = exact % step
        return number(exact - (rest + step if rest < 0 else rest))


def file_labels(path, column, level):
    """What a hierarchy file makes of each value at a level."""
    content = Path(path).read_text(encoding="utf-8-sig")
    for delimiter in ";,":
        rows = [row for row in csv.reader(content.splitlines(keepends=True), delimiter=delimiter) if row]
        if len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows):
            break
    if rows[0][0] == column:
        rows = rows[1:]
    return {row[0]: row[level] for row in rows}


def plain(value, kind):
    """A value as one text for all its forms."""
    if kind == "number":
        return number(value)
    if kind == "date":
        return moment(value).isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def kind_of(said, given):
    """How the values of a column compare: as the numbers, dates or texts that its type or its hierarchy tells."""
    if given == "TIMESTAMP WITH TIME ZONE":
        usage("timestamps with a time zone are not judged")
    if given.startswith(("DATE", "TIMESTAMP")) or "date" in said.get("hierarchy", {}):
        return "date"
    numeric = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINY", "USMALL", "UINT", "UBIG", "DECIMAL")
    if given.startswith((*numeric, "FLOAT", "DOUBLE")) or {"range", "floor"} & said.get("hierarchy", {}).keys():
        return "number"
    return "text"


def recodings(column, said, by, kind, policy_path):
    """Two functions of one value: what the input's becomes, and the same text for a released label."""
    what, _, how = by.partition(":")
    if what == "suppress":
        return (lambda _: "*"), (lambda _: "*")
    if what == "as_is":
        same = lambda value: plain(value, kind)
        return same, same
    if what == "date":
        return (lambda value: first_day(value, how)), (lambda label: moment(label).date().isoformat())
    if what == "prefix":
        return (lambda value: str(value)[: int(how)] + "*"), str
    if what == "floor":
        return (lambda value: floored(value, how)), number
    if what == "range":
        lower = lambda label: number(label[1:].split(",")[0] if label.startswith("[") else label)
        return (lambda value: floored(value, how)), lower
    if what == "hierarchy":
        labels = file_labels(Path(policy_path).parent / said["hierarchy"]["file"], column, int(how))
        return (lambda value: labels[plain(value, kind)]), str
    usage(f"the level {by} of {column} is not known here")


def recoded(db, table, values, recode, named, top):
    """A table `named` of the distinct `values` of a table and what each becomes; NULL stays NULL below the top."""
    distinct = [value for (value,) in ask(db, f"SELECT DISTINCT {values} FROM {table}")]
    ask(db, f"CREATE OR REPLACE TEMP TABLE {named} AS SELECT {values} AS v, '' AS label FROM {table} LIMIT 0")
    labels = [None if value is None and not top else recode(value) for value in distinct]
    db.execute(f"INSERT INTO {named} SELECT unnest(?), unnest(?)", [distinct, labels])


def levels(record):
    """Each quasi-identifier with the text of its level: `range:10 origin:5 clip:0,90`."""
    for level in record["recoding"]["levels"]:
        by = level["by"]
        argument = ",".join(by.get("argument", []))
        parts = [by["generalizer"] + (f":{argument}" if argument else "")]
        parts += [f"{key}:{setting}" for key, setting in by.get("options", {}).items()]
        if "clip" in by:
            parts = [part for part in parts if part != "clip"] + [f"clip:{','.join(end or '' for end in by['clip'])}"]
        yield level["column"], " ".join(parts)


def judge_people(verdict, db, release, table, policy, policy_path, record, individual, k):
    """Counts the individuals of every released class in the input."""
    given, written, said = schema(db, table), schema(db, release), policy["columns"]
    if individual not in given:
        usage(f"the input has no column {individual}")
    keys, of_input, of_release = [], [], []
    joins_input, joins_release = "", ""
    columns = {column["name"]: column for table in record["tables"] for column in table["columns"]}
    for at, (title, by) in enumerate(levels(record)):
        column = columns[title]
        value, kind = f"i.{name(title)}", kind_of(said[title], given[title])
        if "days_since" in column:
            value, kind = f"date_diff('day', i.{name(column['days_since'])}::DATE, {value}::DATE)", "number"
        elif given[title] in ("FLOAT", "DOUBLE"):
            value = f"{value}::VARCHAR"
        label = f"r.{name(title)}" + ("::VARCHAR" if written[title] in ("FLOAT", "DOUBLE") else "")
        recode, read = recodings(title, said[title], by, kind, policy_path)
        recoded(db, f"{table} AS i", value, recode, f"input_{at}", by == "suppress")
        recoded(db, f"{release} AS r", label, read, f"release_{at}", by == "suppress")
        joins_input += f" JOIN input_{at} ON {value} IS NOT DISTINCT FROM input_{at}.v"
        joins_release += f" JOIN release_{at} ON {label} IS NOT DISTINCT FROM release_{at}.v"
        keys.append(f"q{at}")
        of_input.append(f"input_{at}.label AS q{at}")
        of_release.append(f"release_{at}.label AS q{at}")
    models = [r for r in policy.get("require", []) if r.get("model") == "l_diversity"]
    sensitive = [c for c, row in said.items() if row.get("role") == "sensitive"]
    looked_at = [(r["l"], r.get("sensitive", sensitive[0] if sensitive else None)) for r in models]
    values = "".join(f", i.{name(c)} AS s{at}" for at, (_, c) in enumerate(looked_at))
    ask(
        db,
        f"""CREATE TEMP TABLE people AS
            SELECT {', '.join(of_input)}, i.{name(individual)} AS who{values} FROM {table} AS i{joins_input}""",
    )
    ask(
        db,
        f"""CREATE TEMP TABLE kept AS SELECT {', '.join(keys)}, count(*) AS size
            FROM (SELECT {', '.join(of_release)} FROM {release} AS r{joins_release}) GROUP BY ALL""",
    )
    same = " AND ".join(f"p.{key} IS NOT DISTINCT FROM c.{key}" for key in keys)
    classes, lost, other, least, small = ask(
        db,
        f"""SELECT count(*), count(*) FILTER (found = 0), count(*) FILTER (found <> size), min(people),
                   count(*) FILTER (people < {k})
            FROM (SELECT c.size, count(p.there) AS found, count(DISTINCT p.who) AS people
                  FROM kept AS c LEFT JOIN (SELECT *, true AS there FROM people) AS p ON {same}
                  GROUP BY c.size, {', '.join(f'c.{key}' for key in keys)})""",
    )[0]
    total = ask(db, f"SELECT count(*) FROM {release}")[0][0]
    known = ask(db, "SELECT coalesce(sum(size), 0) FROM kept")[0][0]
    shown = ", ".join(f"{title} {by}" for title, by in levels(record))
    print(f"      individuals by {individual} in the input recoded to {shown}")
    print(f"      {known} of {total} rows in {classes} classes; fewest individuals of a class: {least}")
    verdict.say(known == total, f"released rows that are no label: {total - known}")
    verdict.say(lost == 0, f"released classes that the input does not have: {lost}")
    verdict.say(other == 0, f"released classes with other rows than the input has: {other}")
    verdict.say(small == 0, f"classes with fewer than {k} individuals: {small}")
    for at, (l, column) in enumerate(looked_at):
        ask(
            db,
            f"""CREATE OR REPLACE TEMP TABLE shares AS
                SELECT p.* EXCLUDE (who), count(DISTINCT who) AS persons
                FROM (SELECT {', '.join(keys)}, who, s{at} AS value FROM people WHERE s{at} IS NOT NULL) AS p
                GROUP BY ALL""",
        )
        few, shared = ask(
            db,
            f"""SELECT count(*) FILTER (coalesce(n, 0) < {l}), count(*) FILTER (most > people - {l} + 1)
                FROM (SELECT {', '.join(f'c.{key}' for key in keys)}, count(DISTINCT p.who) AS people
                      FROM kept AS c JOIN people AS p ON {same} GROUP BY ALL) AS c
                LEFT JOIN (SELECT {', '.join(keys)}, count(*) AS n, max(persons) AS most FROM shares GROUP BY ALL) AS p
                ON {same}""",
        )[0]
        verdict.say(few == 0, f"classes with fewer than {l} values of {column}: {few}")
        verdict.say(shared == 0, f"classes with a value of {column} that more than individuals - {l} + 1 have: {shared}")


def listing(columns):
    return ", ".join(columns) if columns else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--policy", required=True)
    parser.add_argument("--k", type=int)
    parser.add_argument("--input")
    parser.add_argument("--individual", metavar="COLUMN")
    parser.add_argument("--contains", action="store_true")
    said = parser.parse_args()

    try:
        policy = tomllib.loads(Path(said.policy).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        usage(f"cannot read the policy: {error}")
    roles = {c: row.get("role") for c, row in policy.get("columns", {}).items()}
    individual = said.individual or next((c for c, role in roles.items() if role == "individual"), None)
    if said.individual and not said.input:
        usage("--individual needs --input: who a row belongs to is not in the release")
    k = said.k or required_k(policy)
    if k is None:
        usage("the policy names no k: say --k")
    parts = sorted(Path(said.out).glob("*.parquet"))
    if not parts:
        usage("no Parquet file in the release")

    db = duckdb.connect()
    release = read_parquet(parts)
    columns = schema(db, release)
    verdict = Verdict()
    judge_columns(verdict, columns, roles)
    if "quasi" not in roles.values():
        usage("the policy has no quasi-identifier")
    quasi = [c for c in columns if roles.get(c) == "quasi" or (c == BLANK_MARK and c not in roles)]
    if quasi:
        judge_classes(verdict, db, release, quasi, k)
    if said.input:
        table = input_table(said.input, policy)
        judge_leaks(verdict, db, release, columns, table, roles, said.contains)
        if individual:
            try:
                record = json.loads((Path(said.out) / "_kanon.json").read_text())
            except (OSError, ValueError) as error:
                usage(f"cannot read the record of the release ({type(error).__name__})")
            judge_people(verdict, db, release, table, policy, said.policy, record, individual, k)
    elif individual:
        print(f"      individuals are not counted: that needs --input, who a row belongs to is not in the release")
    print(f"{verdict.failed} checks failed" if verdict.failed else "all checks hold")
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except duckdb.Error as error:
        # Its text may quote a cell.
        usage(f"DuckDB could not read the files ({type(error).__name__})")
