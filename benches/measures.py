#!/usr/bin/env python3
"""Measures in SQL beside the GROUP BY that one would write by hand, and beside DuckDB's.

    python3 benches/measures.py [--rows 10000000] [--runs 5] [--inside 2] [--threads 2] [--only raw|generalized]
                                [--kanon target/release/kanon] [--folder /tmp] [--gib 8] [--slow]

Generates visits (once; FOLDER/visits_ROWS.parquet is taken if it is there) and asks for k_anonymity, k_anonymity with
l_diversity, and k_anonymity_individuals over six quasi-identifiers, as they are (raw) and generalized. What is asked
of `kanon sql`, of the same binary and file:

- in whole processes: each query in a process of its own; wall and CPU time of the process, its start and the opening of
  the file included;
- inside a process: RUNS processes, each of which runs every query once to warm up, then INSIDE times in turns; wall
  time as the shell's \\timing tells it (planning, running, printing one row), CPU time of the process between two
  such lines (/proc, in ticks of 10 ms).

The same GROUP BYs go to DuckDB (Python package `duckdb`; left out where there is none) in this process, after each
process of the second kind. The order of queries turns round from run to run. All answers must agree.
--slow: also, once each, what may take very long and more memory than there is: each measure with
`SET kanon.rewrite_measures = false`, and count(DISTINCT) beside count(*) in one GROUP BY. (A process gets half as
much address space again as --gib says, and fails beyond.)
Prints Markdown: the least and the median of each, and what the measure costs as a multiple of each by-hand query.
Exit code: 0, 1 where two answers differ, 2 where something fails.
"""

import argparse
import itertools
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import duckdb
except ImportError:
    duckdb = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
RAW = ["dob", "zip", "sex", "race", "education", "marital_status"]
OURS = {
    "raw": RAW,
    "generalized": ["generalize_date(dob, 'decade')", "generalize_prefix(zip, 3)", *RAW[2:]],
}
THEIRS = {
    "raw": RAW,
    "generalized": ["date_trunc('decade', dob)", "left(zip, 3) || '*'", *RAW[2:]],
}

BOTH = "count(*) AS c, count(DISTINCT diagnosis) AS d"


def by_hand(columns, file, what, outer):
    return f"SELECT {outer} FROM (SELECT {what} FROM '{file}' GROUP BY {', '.join(columns)})"


def in_two_steps(columns, file):
    """Each value of a class once, then each class: the fastest that we know how to write."""
    keys = ", ".join(f"{column} AS q{at}" for at, column in enumerate(columns))
    names = ", ".join(f"q{at}" for at in range(len(columns)))
    values = f"SELECT {keys}, diagnosis, count(*) AS n FROM '{file}' GROUP BY {', '.join(columns)}, diagnosis"
    return f"SELECT min(c), min(d) FROM (SELECT sum(n) AS c, count(diagnosis) AS d FROM ({values}) GROUP BY {names})"


def questions(of, file):
    """For each question: the measure, and names with what one would write instead; then the same for DuckDB."""
    ours, theirs, file = OURS[of], THEIRS[of], str(file).replace("'", "''")
    quasi = ", ".join(ours)
    size, both, people = "count(*) AS c", BOTH, "count(DISTINCT patient_id) AS c"
    return [
        (
            ("k_anonymity", f"SELECT k_anonymity({quasi}) FROM '{file}'"),
            [("GROUP BY", by_hand(ours, file, size, "min(c)"))],
            [("DuckDB's GROUP BY", by_hand(theirs, file, size, "min(c)"))],
        ),
        (
            (
                "k_anonymity, l_diversity",
                f"SELECT k_anonymity({quasi}), l_diversity(diagnosis, {quasi}) FROM '{file}'",
            ),
            [("two GROUP BYs", in_two_steps(ours, file))],
            [
                ("DuckDB's GROUP BY, count(DISTINCT)", by_hand(theirs, file, both, "min(c), min(d)")),
                ("DuckDB's two GROUP BYs", in_two_steps(theirs, file)),
            ],
        ),
        (
            ("k_anonymity_individuals", f"SELECT k_anonymity_individuals(patient_id, {quasi}) FROM '{file}'"),
            [("GROUP BY, count(DISTINCT)", by_hand(ours, file, people, "min(c)"))],
            [("DuckDB's GROUP BY, count(DISTINCT)", by_hand(theirs, file, people, "min(c)"))],
        ),
    ]


class Kanon:
    def __init__(self, said):
        self.command = [said.kanon, "sql", "--threads", str(said.threads), "--memory-limit", f"{said.gib}G"]
        self.command += ["--output", "csv"]
        self.most = said.gib * 3 // 2 * 2**30

    def bound(self):
        """In the child: where the engine's pool does not hold, the process ends before the machine does."""
        resource.setrlimit(resource.RLIMIT_AS, (self.most, self.most))

    def whole(self, sql):
        """Wall s, CPU s, peak MiB and answer of a process that runs one text."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            begun = time.perf_counter()
            child = subprocess.Popen([*self.command, "-c", sql], stdout=out, stderr=err, preexec_fn=self.bound)
            _, status, used = os.wait4(child.pid, 0)
            wall = time.perf_counter() - begun
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if child.returncode != 0:
                raise RuntimeError(err.read().strip() or f"kanon sql ended with {child.returncode}")
            return wall, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, answer_of(out.read())

    def inside(self, statements):
        """Wall s and CPU s of each statement, all of one process."""
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script, tempfile.TemporaryFile("w+") as out:
            script.write("\\timing\n" + "".join(f"{sql};\n" for sql in statements))
            script.flush()
            child = subprocess.Popen([*self.command, "-f", script.name], stdout=out, stderr=subprocess.PIPE, text=True)
            times, before, others = [], None, []
            for line in child.stderr:
                told = re.fullmatch(r"([0-9.]+) s\n", line)
                if told is None and line != "timing is on\n":
                    others.append(line)
                    continue
                used = cpu_so_far(child.pid)
                if told:
                    times.append((float(told[1]), used - before))
                before = used
            if child.wait() != 0 or len(times) != len(statements):
                raise RuntimeError("".join(others).strip() or "kanon sql told fewer times than statements")
            return times


def cpu_so_far(pid):
    # The last statement's process may be about to end: it is not reaped before child.wait().
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def answer_of(csv):
    """The one row under the header."""
    return tuple(int(cell) for cell in csv.splitlines()[1].split(","))


def ask_duckdb(db, sql):
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    row = db.execute(sql).fetchone()
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, tuple(int(cell) for cell in row)


class Times:
    def __init__(self):
        self.of = {}

    def add(self, key, wall, cpu):
        self.of.setdefault(key, []).append((wall, cpu))

    def figures(self, key):
        """Least and median wall s, least and median CPU s."""
        return [f(times) for times in zip(*self.of[key]) for f in (min, statistics.median)]

    def table(self, title, order):
        print(f"\n### {title}\n")
        print("| query | runs | wall s: least, median | CPU s: least, median | measure / this: wall | CPU |")
        print("|---|---:|---:|---:|---:|---:|")
        for measure, others in order:
            own = self.figures(measure)
            for key in [measure, *(key for key in others if key in self.of)]:
                wall, wall_median, cpu, cpu_median = figures = self.figures(key)
                line = f"| {key[-1]} | {len(self.of[key])} | {wall:.2f}, {wall_median:.2f} | {cpu:.2f}, {cpu_median:.2f} |"
                if key == measure:
                    print(line, "| |")
                    continue
                a, b, c, d = (ours / theirs if theirs else float("nan") for ours, theirs in zip(own, figures))
                print(f"{line} {a:.2f}, {b:.2f} | {c:.2f}, {d:.2f} |")
        sys.stdout.flush()


def turned(queries, run):
    return queries if run % 2 == 0 else queries[::-1]


def compare(of, file, said, kanon):
    asked = questions(of, file)
    answers, peaks, whole, inside = {}, {}, Times(), Times()

    def agree(at, name, answer):
        known = answers.setdefault(at, (name, answer))
        if known[1] != answer:
            print(f"measures: {of}: {known[0]} says {known[1]}, {name} {answer}", file=sys.stderr)
            sys.exit(1)

    ours = [((at, name), sql) for at, (measure, hand, _) in enumerate(asked) for name, sql in [measure, *hand]]
    theirs = [((at, name), sql) for at, (*_, duck) in enumerate(asked) for name, sql in duck]
    db = duckdb.connect(config={"threads": said.threads, "memory_limit": f"{said.gib}GiB"}) if duckdb else None
    for run in range(said.runs):
        for (at, name), sql in turned(ours, run):
            wall, cpu, peak, answer = kanon.whole(sql)
            agree(at, name, answer)
            whole.add((at, name), wall, cpu)
            peaks[at, name] = max(peak, peaks.get((at, name), 0))
        # Neighbours stay neighbours; each question's queries in turns, by themselves.
        for at in range(len(asked)):
            mine = turned([(key, sql) for key, sql in ours if key[0] == at], run)
            again = list(itertools.chain.from_iterable(turned(mine, time) for time in range(said.inside)))
            times = kanon.inside([sql for _, sql in [*mine, *again]])
            for (key, _), (wall, cpu) in zip(again, times[len(mine) :]):
                inside.add(key, wall, cpu)
            for (_, name), sql in [query for query in theirs if query[0][0] == at] if db else []:
                for time_ in range(1 + said.inside if run == 0 else said.inside):
                    wall, cpu, answer = ask_duckdb(db, sql)
                    agree(at, name, answer)
                    if run > 0 or time_ > 0:
                        inside.add((at, name), wall, cpu)
        print(f"measures: {of}: run {run + 1} of {said.runs} done", file=sys.stderr)

    order = [
        ((at, measure[0]), [(at, name) for name, _ in [*hand, *duck]])
        for at, (measure, hand, duck) in enumerate(asked)
    ]
    found = "; ".join(f"{asked[at][0][0]} = {answer}" for at, (_, answer) in sorted(answers.items()))
    whole.table(f"{of}, whole processes", order)
    inside.table(f"{of}, inside a process", order)
    print(f"\nAnswers: {found}")
    print("Peak MiB: " + "; ".join(f"{name} {peaks[at, name]}" for (at, name), _ in ours))
    if said.slow:
        print("\nOnce each, whole processes:\n")
        slow = [
            (at, f"{name} without the rewriting", f"SET kanon.rewrite_measures = false; {sql}")
            for at, ((name, sql), _, _) in enumerate(asked)
        ]
        both = by_hand(OURS[of], str(file).replace("'", "''"), BOTH, "min(c), min(d)")
        for at, name, sql in [*slow, (1, "GROUP BY, count(*) and count(DISTINCT)", both)]:
            try:
                wall, cpu, peak, answer = kanon.whole(sql)
                agree(at, name, answer)
                print(f"- {name}: wall {wall:.2f} s, CPU {cpu:.2f} s, peak {peak} MiB")
            except RuntimeError as why:
                print(f"- {name}: {why}")
            sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--inside", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=list(OURS))
    parser.add_argument("--kanon", default=str(ROOT / "target/release/kanon"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--gib", type=int, default=8, help="memory for each engine")
    parser.add_argument("--slow", action="store_true")
    said = parser.parse_args()
    if min(said.rows, said.runs, said.inside, said.threads, said.gib) < 1:
        parser.error("--rows, --runs, --inside, --threads and --gib are whole numbers above 0")
    file = said.folder / f"visits_{said.rows}.parquet"
    try:
        if not file.exists():
            subprocess.run(
                [said.kanon, "generate", "--rows", str(said.rows), "--seed", "7", "--to", str(file)], check=True
            )
        file.read_bytes()  # so that the first reads no disk
        print(f"{said.rows} rows, {file.stat().st_size / 2**20:.0f} MiB of Parquet, {said.threads} threads, {said.gib} GiB")
        if duckdb is None:
            print("The Python package `duckdb` is not installed: DuckDB is left out.")
        else:
            print(f"DuckDB {duckdb.__version__}, in this process")
        for of in [said.only] if said.only else OURS:
            compare(of, file, said, Kanon(said))
    except (RuntimeError, OSError, subprocess.CalledProcessError) as why:
        print(f"measures: {why}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
