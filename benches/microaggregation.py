#!/usr/bin/env python3
"""What do the methods of microaggregation keep, and how long do they take?

    python3 benches/microaggregation.py [--rows 10000] [--large 1000000] [--kanon target/release/kanon]   needs numpy, pyarrow

Three tables: the six columns of numbers of UCI Adult ($KANON_SHARED/data/adult_full, ../shared by default), ROWS rows of
three columns of normally distributed numbers, and LARGE rows of the same. For each method and k prints SSE / SST, the sum
of squares around the means of the classes, as a share of that around the mean of the table, each column scaled to a
variance of 1; and the wall time of `kanon search` by two threads, profile included. The baseline is MDAV as the paper says
it (Domingo-Ferrer & Torra 2005), over rows, in numpy, in the same run; on the large table it would take days.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy
import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("KANON_SHARED", ROOT.parent / "shared"))
NUMBERS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
METHODS = ["mdav", "ona", "mona"]


def adult():
    with open(SHARED / "data" / "adult_full" / "adult.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: numpy.array([int(row[name]) for row in rows]) for name in NUMBERS}


def normal(rows):
    draw = numpy.random.default_rng(7)
    return {name: draw.standard_normal(rows) for name in "abc"}


def mdav(columns, k):
    """The sum of squares of MDAV, as a share of that of the table."""
    points = numpy.column_stack([(values - values.mean()) / values.std() for values in columns.values()])
    left, squares = points, 0.0

    def farthest(point):
        return left[((left - point) ** 2).sum(axis=1).argmax()]

    def gather(point):
        nonlocal left, squares
        near = numpy.argsort(((left - point) ** 2).sum(axis=1), kind="stable")
        cluster = left[near[:k]]
        squares += ((cluster - cluster.mean(axis=0)) ** 2).sum()
        left = numpy.delete(left, near[:k], axis=0)

    while len(left) >= 2 * k:
        pair = len(left) >= 3 * k
        first = farthest(left.mean(axis=0))
        gather(first)
        if pair:
            gather(farthest(first))
    squares += ((left - left.mean(axis=0)) ** 2).sum()
    return squares / points.size


def by_kanon(kanon, folder, columns, k, method):
    """The same of a release by kanon, and the seconds of its search."""
    quasi = "".join(f'{name} = {{ role = "quasi" }}\n' for name in columns)
    policy = f'k = {k}\nmethod = "{method}"\nobjective = "granularity_mean"\nrows_are_individuals = true\n[columns]\n{quasi}'
    (folder / "policy.toml").write_text(policy)
    command = [kanon, "search", folder / "in.parquet", "--policy", folder / "policy.toml", "--threads", "2"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - begin
    command = [kanon, "release", *command[2:5], "--to", folder / "out", "--overwrite"]
    subprocess.run(command, check=True, capture_output=True)
    utility = json.loads((folder / "out.private.json").read_text())["utility"]
    return sum(column["squared_error"] for column in utility["columns"]) / len(columns), seconds


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--large", type=int, default=1_000_000)
    release = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "kanon"
    arguments.add_argument("--kanon", type=pathlib.Path, default=release)
    given = arguments.parse_args()
    print("| table | k | method | SSE / SST | search, s |\n|---|---:|---|---:|---:|")
    tables = [("Adult", adult(), [3, 5, 10], True), (f"normal, {given.rows:,} rows", normal(given.rows), [3, 5, 10], True)]
    tables.append((f"normal, {given.large:,} rows", normal(given.large), [5], False))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, columns, sizes, is_small in tables:
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / "in.parquet")
            for k in sizes:
                if is_small:
                    begin = time.perf_counter()
                    share = mdav(columns, k)
                    print(f"| {name} | {k} | MDAV in numpy | {share:.3%} | {time.perf_counter() - begin:.1f} |", flush=True)
                for method in METHODS:
                    share, seconds = by_kanon(given.kanon, folder, columns, k, method)
                    print(f"| {name} | {k} | `{method}` | {share:.3%} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
