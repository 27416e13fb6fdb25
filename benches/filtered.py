#!/usr/bin/env python3
"""k-anonymity below WHERE and beside other aggregates, against DuckDB's query by hand.

Both engines read the same Parquet file with two threads, in turns; the answers must agree. A number is
the wall time of the whole `kanon sql` process, divided by that of DuckDB's query in a process that runs
already: the least of the runs over the least, and median over median.

    python3 benches/filtered.py --kanon target/release/kanon --rows 10000000

Needs Python 3.10 and duckdb.
"""

import argparse
import csv
import io
import pathlib
import statistics
import subprocess
import tempfile
import time

import duckdb

MEASURE = (
    "k_anonymity(generalize_date(dob, 'decade'), generalize_prefix(zip, 3), sex, race, education, marital_status)"
)
KEYS = "year(dob) // 10, left(zip, 3) || '*', sex, race, education, marital_status"


def queries(file):
    """Returns what is asked: a title, the measure, and the query by hand."""

    def by_hand(condition="", also="", of_groups=""):
        groups = f"SELECT count(*) AS size{of_groups} FROM '{file}' {condition} GROUP BY {KEYS}"
        return f"SELECT min(size){also} FROM ({groups})"

    def measured(condition="", also=""):
        return f"SELECT {MEASURE}{also} FROM '{file}' {condition}"

    return [
        ("k alone", measured(), by_hand()),
        ("k, 99.9 % of the rows", measured("WHERE cost > 10"), by_hand("WHERE cost > 10")),
        ("k, half of the rows", measured("WHERE sex = 'F'"), by_hand("WHERE sex = 'F'")),
        ("k, one day of three years", measured("WHERE visit_date = DATE '2022-03-01'"), by_hand("WHERE visit_date = DATE '2022-03-01'")),
        (
            "k and a maximum",
            measured(also=", max(length_of_stay)"),
            by_hand(also=", max(stay)", of_groups=", max(length_of_stay) AS stay"),
        ),
        (
            "k and a mean",
            measured(also=", round(avg(length_of_stay), 6)"),
            by_hand(
                also=", round(sum(stays) / sum(known), 6)",
                of_groups=", sum(length_of_stay) AS stays, count(length_of_stay) AS known",
            ),
        ),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kanon", default="target/release/kanon")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    file = pathlib.Path(tempfile.gettempdir()) / f"visits_{args.rows}.parquet"
    if not file.exists():
        subprocess.run([args.kanon, "generate", "--rows", str(args.rows), "--seed", "7", "--to", str(file)], check=True)
    engine = duckdb.connect()
    engine.execute("PRAGMA threads = 2")
    print("| question | wall / DuckDB's |\n|---|---:|")
    for title, measured, by_hand in queries(file):
        command = [args.kanon, "sql", "--threads", "2", "--output", "csv", "-c", measured]
        ours, theirs = [], []
        for _ in range(args.runs):
            start = time.perf_counter()
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            expected = engine.execute(by_hand).fetchone()
            theirs.append(time.perf_counter() - start)
        found = list(csv.reader(io.StringIO(found)))[1]
        if [float(cell) for cell in found] != [float(cell) for cell in expected]:
            raise SystemExit(f"{title}: {found} is not {expected}")
        least, median = min(ours) / min(theirs), statistics.median(ours) / statistics.median(theirs)
        print(f"| {title} | {least:.2f}, {median:.2f} |", flush=True)


if __name__ == "__main__":
    main()
