#!/usr/bin/env python3
"""What do clusters gain for means with noise, and which order of the rows keeps more?

    python3 benches/dp_centroids.py [--epsilon 1] [--rows 1000000] [--kanon target/release/kanon]   needs numpy, pyarrow

Tables: two and three columns of numbers of UCI Adult ($KANON_SHARED/data/adult_full, ../shared by default), one alone, and ROWS rows
of two correlated numbers. For each k and order prints the expected squared error of a value, noise included, as a share of
the variance of its column (the mean over the columns), which `kanon search` computes; 1 is what the mean of the whole table would do.
k = 2 is the baseline: nearly the same noise without microaggregation. Last the time of a release with its verification, for the k with
the least error.
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
# Bounds that anyone would choose who has not seen the data.
BOUNDS = {"age": (15, 100), "hours-per-week": (0, 100), "education-num": (1, 16), "a": (-4, 4), "b": (-4, 4)}


def adult(names):
    with open(SHARED / "data" / "adult_full" / "adult.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: numpy.array([int(row[name]) for row in rows]) for name in names}


def normal(rows):
    draw = numpy.random.default_rng(7)
    a = draw.standard_normal(rows)
    return {"a": a, "b": 0.8 * a + 0.6 * draw.standard_normal(rows)}


def policy(columns, k, method):
    lines = [f"k = {k}", f"method = {method}", "rows_are_individuals = true", "[columns]"]
    bounds = ((name, *BOUNDS[name]) for name in columns)
    lines += [f'{name} = {{ role = "quasi", clip = [{low}, {high}] }}' for name, low, high in bounds]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kanon", default=str(ROOT / "target" / "release" / "kanon"))
    given = parser.parse_args()
    tables = [
        ("Adult, age", adult(["age"])),
        ("Adult, age and hours", adult(["age", "hours-per-week"])),
        ("Adult, age, hours and education", adult(["age", "hours-per-week", "education-num"])),
        (f"{given.rows:,} rows of two numbers", normal(given.rows)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def kanon(*arguments):
            run = [given.kanon, *arguments, "--threads", "2", "--quiet"]
            return subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True).stdout

        for name, columns in tables:
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / "in.parquet")
            rows = len(next(iter(columns.values())))
            print(f"\n{name}: {rows:,} rows, epsilon {given.epsilon:g}")
            print(f"{'k':>8} {'hilbert':>12} {'distance':>12}")
            errors = {}
            for k in [2, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000]:
                if k * 2 > rows:
                    break
                for order in ["hilbert", "distance"]:
                    method = f'{{ dp_centroids = {{ epsilon = {given.epsilon}, order = "{order}" }} }}'
                    (folder / "policy.toml").write_text(policy(columns, k, method))
                    found = json.loads(kanon("search", "in.parquet", "--policy", "policy.toml", "--format", "json"))
                    errors[k, order] = found["best"][0]["measures"]["squared_error_with_noise"]
                print(f"{k:>8,} {errors[k, 'hilbert']:>12.4g} {errors[k, 'distance']:>12.4g}")
            best = min((error, k) for (k, order), error in errors.items() if order == "hilbert")[1]
            (folder / "policy.toml").write_text(policy(columns, best, f"{{ dp_centroids = {{ epsilon = {given.epsilon} }} }}"))
            start = time.monotonic()
            kanon("release", "in.parquet", "--policy", "policy.toml", "--to", "out", "--overwrite")
            print(f"release with k = {best:,}, verified: {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
