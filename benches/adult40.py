#!/usr/bin/env python3
"""Adult 40 times over, 5 % of the cells redrawn: a whole release beside one load and GROUP BY of the same file.

    python3 benches/adult40.py [FOLDER]        needs pyarrow and the shared data (KANON_SHARED or ../shared)

Runs target/release/kanon in turns with its own `check` (which loads the file and groups it once) and prints the
least CPU and wall seconds of five runs each, for CSV and Parquet.
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("KANON_SHARED", ROOT.parent / "shared"))
KANON = ROOT / "target/release/kanon"
RUNS = 5


def table():
    read = pc.read_csv(SHARED / "data/adult/adult.csv", parse_options=pc.ParseOptions(delimiter=";"))
    rng = np.random.default_rng(7)
    columns = {}
    for name in read.column_names:
        values = np.array([str(v) for v in read[name].to_pylist()])
        many = np.tile(values, 40)
        redrawn = rng.random(len(many)) < 0.05
        many[redrawn] = rng.choice(np.unique(values), redrawn.sum())
        columns[name] = pa.array(many, pa.string())
    return pa.table(columns)


def policy(names):
    files = SHARED / "data/adult"
    columns = "".join(
        f'{name} = {{ role = "quasi", hierarchy = {{ file = "{files}/adult_hierarchy_{name}.csv" }} }}\n'
        for name in sorted(names)
    )
    return (
        'k = 5\nsuppression_limit = 0.05\nobjective = "granularity"\nrows_are_individuals = true\n'
        f'[columns]\n{columns}[input]\ndelimiter = ";"\n'
    )


def cpu_of(command):
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - begun


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        folder = pathlib.Path(folder)
        rows = table()
        pq.write_table(rows, folder / "adult.parquet")
        pc.write_csv(rows, folder / "adult.csv", pc.WriteOptions(delimiter=";", quoting_style="none"))
        (folder / "policy.toml").write_text(policy(rows.column_names))
        print("| | load and group: CPU s, wall s | release: CPU s, wall s | CPU ratio |\n|---|---:|---:|---:|")
        for name in ["adult.csv", "adult.parquet"]:
            said = [str(folder / name), "--policy", str(folder / "policy.toml")]
            grouped, released = [], []
            for _ in range(RUNS):
                shutil.rmtree(folder / "out", ignore_errors=True)
                grouped.append(cpu_of([KANON, "check", *said]))
                released.append(cpu_of([KANON, "release", *said, "--to", str(folder / "out")]))
            (a, a_wall), (b, b_wall) = min(grouped), min(released)
            print(f"| {name} | {a:.2f}, {a_wall:.2f} | {b:.2f}, {b_wall:.2f} | {b / a:.1f} |")


if __name__ == "__main__":
    main()
