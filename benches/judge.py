#!/usr/bin/env python3
"""Judges a release with another engine: counts its classes with DuckDB and looks for what must not be there.

    python3 benches/judge.py OUT --policy POLICY [--k K] [--input INPUT] [--contains]

OUT is the release (OUT/*.parquet). Checked:

1. every column of OUT has a role that may be written, every quasi-identifier is there, nothing else is;
2. no class (rows equal on all quasi-identifiers, NULL = NULL) has fewer than K rows;
3. with --input: no value of an identifier column of INPUT, nor of its individual column unless it is
   a number, occurs in a text column of OUT (with --contains also not inside a longer text).

Rows are counted: who a row belongs to is not in OUT. K is the policy's k if --k is left out.
Exit code: 0 all holds, 1 something does not, 2 wrong usage or unreadable files.
Needs Python 3.11 and the package `duckdb`.
No cell value is printed.
"""

import argparse
import sys
import tomllib
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


def listing(columns):
    return ", ".join(columns) if columns else "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--policy", required=True)
    parser.add_argument("--k", type=int)
    parser.add_argument("--input")
    parser.add_argument("--contains", action="store_true")
    said = parser.parse_args()

    try:
        policy = tomllib.loads(Path(said.policy).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        usage(f"cannot read the policy: {error}")
    roles = {c: row.get("role") for c, row in policy.get("columns", {}).items()}
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
        judge_leaks(verdict, db, release, columns, input_table(said.input, policy), roles, said.contains)
    print(f"{verdict.failed} checks failed" if verdict.failed else "all checks hold")
    return 1 if verdict.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except duckdb.Error as error:
        # Its text may quote a cell.
        usage(f"DuckDB could not read the files ({type(error).__name__})")
