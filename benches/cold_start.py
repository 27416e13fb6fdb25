#!/usr/bin/env python3
"""Measures how long short commands take from the start of their process to its end.

    python3 benches/cold_start.py [--kanon target/release/kanon] [--runs 20]

Each line does what the one above it does and something more, so that the difference is the time of
that phase. The baseline is DuckDB in Python, whose process asks the same of the same file; the time
of Python without DuckDB is shown as well. All commands take turns. Prints Markdown: least and median
wall time in ms. Exit code: 0, 2 if a command fails.
"""

import argparse
import importlib.metadata
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
QUASI = "sex, race, zip"
SIZES = f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{{file}}' GROUP BY {QUASI})"


def commands(kanon, small, large):
    def python(code):
        return [sys.executable, "-c", code]

    def duckdb(query):
        return python(f"import duckdb; duckdb.sql({query!r}).fetchall()")

    def check(file, *words):
        return [kanon, "check", str(file), *words]

    columns = ["--quasi", QUASI.replace(" ", ""), "--k", "2"]
    policy = ["--policy", str(HERE.parent / "data/visits.toml")]
    measure = f"SELECT k_anonymity({QUASI}) FROM '{small}'"
    return {
        "kanon: the process (`--version`)": [kanon, "--version"],
        "and a session with all functions (`SELECT 1`)": [kanon, "sql", "-c", "SELECT 1"],
        "and a measure of 1,000 rows of Parquet": [kanon, "sql", "-c", measure],
        "`kanon check --k` of 1,000 rows": check(small, *columns),
        "`kanon check --policy` of 1,000 rows": check(small, *policy),
        "`kanon check --k` of 100,000 rows": check(large, *columns),
        "`kanon check --policy` of 100,000 rows": check(large, *policy),
        "Python": python("pass"),
        "and DuckDB (`SELECT 1`)": duckdb("SELECT 1"),
        "and a GROUP BY of 1,000 rows": duckdb(SIZES.format(file=small)),
        "and a GROUP BY of 100,000 rows": duckdb(SIZES.format(file=large)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanon", default=str(HERE.parent / "target/release/kanon"))
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = pathlib.Path(folder) / "small.parquet"
        made = [args.kanon, "generate", "--rows", "1000", "--seed", "7", "--to", str(small)]
        subprocess.run(made, check=True, capture_output=True)
        asked = commands(args.kanon, small, HERE.parent / "data/visits.parquet")
        times = {name: [] for name in asked}
        for _ in range(args.runs + 1):
            for name, command in asked.items():
                begun = time.perf_counter()
                ended = subprocess.run(command, capture_output=True)
                times[name].append((time.perf_counter() - begun) * 1e3)
                # A check that does not hold is an answer.
                if ended.returncode not in [0, 1]:
                    print(f"cold_start: {' '.join(command)}: {ended.stderr.decode()[:200]}", file=sys.stderr)
                    sys.exit(2)
    print(f"DuckDB {importlib.metadata.version('duckdb')}; the first of {args.runs + 1} runs is left out\n")
    print("| command | least ms | median ms |\n|---|---:|---:|")
    for name, all_times in times.items():
        print(f"| {name} | {min(all_times[1:]):.1f} | {statistics.median(all_times[1:]):.1f} |")


if __name__ == "__main__":
    main()
