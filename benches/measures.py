#!/usr/bin/env python3
"""Compares measures in SQL with the GROUP BY written by hand: in kanon sql, DuckDB and Polars.

    python3 benches/measures.py [--rows 10000000] [--runs 5] [--inside 2] [--whole 1] [--threads 2]
                                [--table visits|claims] [--only raw,few,...] [--questions k,kl,...]
                                [--peers DuckDB,DataFusion,Polars]
                                [--kanon target/release/kanon] [--folder /tmp] [--gib 8]
                                [--slow] [--show-sql]

Two tables: the visits of `kanon generate` and the claims of check_table.py; each is generated once,
and FOLDER/visits_ROWS.parquet or FOLDER/claims_ROWS.parquet is used if it exists. The keys of a table
are its quasi-identifiers: raw, generalized and, for the claims, generalized into few classes. The
questions:

    k            k_anonymity
    kl           k_anonymity and l_diversity; kl_wide: of a column of 5,000 values instead of 50
    people       k_anonymity_individuals
    models       k and eight class models of one sensitive column; models_wide as kl_wide

Plain DataFusion is a GROUP BY in `kanon sql`; it generalizes by DataFusion's functions and, in queries
of their own, by kanon's. Every query runs in processes of its own, and the processes of all engines
take turns, in an order that is reversed from run to run:

    inside       RUNS processes run the query once to warm up and then INSIDE times. Wall time is that
                 of the query; CPU time is that of all threads of the process meanwhile (that of kanon
                 in ticks of 10 ms).
    whole        WHOLE processes run the query once. Their times include the start of the process
                 (of Python and its packages, for DuckDB and Polars) and the loading of a hierarchy.

All answers must agree to 1e-9. Prints Markdown: the least and the median times of each query, the
greatest peak of resident memory of both kinds of process, and a table of ratios, in which the measure
is compared with the query of each engine whose least wall time is shortest.
--slow: also runs each measure once with `SET kanon.rewrite_measures = false`, which may take very long
and more memory than there is. The address space of a process is limited to 2 GiB and 1.5 times --gib
(Polars and DuckDB: twice --gib); a query that fails is reported and not run again.
Exit code: 0, 1 if two answers differ, 2 if a measure or the script itself fails.
"""

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ beside the scripts

import check_questions  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TICK = os.sysconf("SC_CLK_TCK")
TOLERANCE = 1e-9
PEERS = ["DuckDB", "DataFusion", "Polars"]


class QueryFailed(Exception):
    pass


# ---------------------------------------------------------------- the processes of each engine


def run_process(command, limit, given="", env=None, read_errors=None):
    """Runs a process to its end; returns its output, wall s, CPU s and peak MiB."""

    def limit_memory():
        # Where the engine does not keep to its memory limit, the process ends before the machine does.
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as gives:
        gives.write(given)
        gives.seek(0)
        begun = time.perf_counter()
        child = subprocess.Popen(
            command, stdin=gives, stdout=out, stderr=subprocess.PIPE, text=True, env=env, preexec_fn=limit_memory
        )
        errors = []
        for line in child.stderr:
            if read_errors is None or not read_errors(child.pid, line):
                errors.append(line)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
        if child.returncode != 0:
            told = [line.strip() for line in errors if re.search("kanon:|error|panic|memory", line, re.IGNORECASE)]
            raise QueryFailed((told or [f"ended with {child.returncode}"])[0][:200])
        out.seek(0)
        return out.read(), wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def cpu_so_far(pid):
    # The process may be about to end, but it is not reaped before wait4().
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def read_csv_row(line):
    return [None if cell == "" else float(cell) for cell in line.split(",")]


class Kanon:
    """`kanon sql`: measures, and the GROUP BYs of plain DataFusion."""

    def __init__(self, args, _):
        self.command = [args.kanon, "sql", "--threads", str(args.threads), "--memory-limit", f"{args.gib}G"]
        self.command += ["--output", "csv"]
        self.limit = (args.gib * 3 // 2 + 2) * 2**30

    def run(self, statements, query, times):
        """Returns wall s, CPU s and answer of each time, and those of the whole process with its peak MiB."""
        timed, before = [], None

        def read_time(pid, line):
            nonlocal before
            told = re.fullmatch(r"([0-9.]+) s\n", line)
            if told is None and line != "timing is on\n":
                return False
            used = cpu_so_far(pid)
            if told:
                timed.append((float(told[1]), used - before))
            before = used
            return True

        lines = [*(f"{statement};" for statement in statements), "\\timing", *[f"{query.text};"] * times]
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write("\n".join(lines) + "\n")
            script.flush()
            output, *whole = run_process([*self.command, "-f", script.name], self.limit, read_errors=read_time)
        # Each answer is a header and a row.
        answers = [read_csv_row(line) for line in output.splitlines()[-2 * times :][1::2]]
        if not len(timed) == len(answers) == times:
            raise QueryFailed(f"kanon sql ran {times} queries and told {len(timed)} times")
        return [(*both, answer) for both, answer in zip(timed, answers)], tuple(whole)


class PythonEngine:
    """DuckDB or Polars, in another process of this script."""

    def __init__(self, engine, args, job):
        self.job = {**job, "engine": engine, "threads": args.threads, "gib": args.gib}
        self.limit = (args.gib * 2 + 2) * 2**30
        self.env = {**os.environ, "POLARS_MAX_THREADS": str(args.threads)}

    def run(self, statements, query, times):
        job = {**self.job, "statements": statements, "text": query.text, "times": times}
        command = [sys.executable, str(HERE / "measures.py"), "--worker"]
        output, *whole = run_process(command, self.limit, json.dumps(job), self.env)
        return [tuple(line) for line in json.loads(output)], tuple(whole)


def work():
    """Runs the job on standard input; prints wall s, CPU s and answer of each time."""
    job = json.load(sys.stdin)
    with contextlib.ExitStack() as stack:
        if job["engine"] == "DuckDB":
            import duckdb

            spilled = stack.enter_context(tempfile.TemporaryDirectory(dir=job["folder"]))
            settings = {"threads": job["threads"], "memory_limit": f"{job['gib']}GiB", "temp_directory": spilled}
            db = stack.enter_context(duckdb.connect(config=settings))
            for statement in ["SET enable_progress_bar = false", *job["statements"]]:
                db.execute(statement)

            def ask():
                return db.execute(job["text"]).fetchone()
        else:
            import polars

            table = check_questions.TABLES[job["table"]]
            query = check_questions.polars_query(
                polars, table, table.keys[job["keys"]], job["question"], job["file"], job["hierarchy"], job["text"]
            )

            def ask():
                return query.collect(engine="streaming").row(0)

        print(json.dumps([time_once(ask) for _ in range(job["times"])]))


def time_once(ask):
    def cpu():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    before, begun = cpu(), time.perf_counter()
    row = ask()
    wall = time.perf_counter() - begun
    return wall, cpu() - before, [None if cell is None else float(cell) for cell in row]


# ---------------------------------------------------------------- one cell: a table, keys, a question


def agree(one, other):
    def alike(a, b):
        if a is None or b is None:
            return a is b
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

    return len(one) == len(other) and all(map(alike, one, other))


class Cell:
    """The figures of all queries for one question."""

    def __init__(self, of, keys, question, files, args):
        table = check_questions.TABLES[of]
        self.name = (of, keys, check_questions.TITLES[question])
        queries = check_questions.queries(table, table.keys[keys], question, files[of])
        self.queries = [query for query in queries if query.peer in ["measure", *args.peers]]
        self.answer, self.failures = None, {}
        # For each query: wall and CPU s of all times, and the peaks of both kinds of process.
        self.inside, self.whole, self.peaks = {}, {}, {}
        job = {"table": of, "keys": keys, "question": question, "file": str(files[of])}
        job |= {"hierarchy": str(files["hierarchy"]), "folder": str(args.folder)}
        self.engines = {
            "kanon": Kanon(args, job),
            "DuckDB": PythonEngine("DuckDB", args, job),
            "Polars": PythonEngine("Polars", args, job),
        }
        self.statements = {
            engine: check_questions.setup(engine, table, files["hierarchy"]) for engine in ["kanon", "DuckDB"]
        }

    def check(self, query, answer):
        if self.answer is None:
            self.answer = (query.name, answer)
        if not agree(self.answer[1], answer):
            of = ", ".join(self.name)
            print(f"measures: {of}: {self.answer[0]}: {self.answer[1]}, {query.name}: {answer}", file=sys.stderr)
            print(f"{query.name}:\n{query.text}\nmeasure:\n{self.queries[0].text}", file=sys.stderr)
            sys.exit(1)

    def run(self, run, args):
        """Runs every query once for the figures of a whole process, and then inside a process."""
        kinds = [("whole", 1)] if run < args.whole else []
        kinds += [("inside", 1 + args.inside)] if run < args.runs else []
        for kind, times in kinds:
            for query in self.queries if run % 2 == 0 else self.queries[::-1]:
                if query in self.failures:
                    continue
                try:
                    timed, (wall, cpu, peak) = self.engines[query.engine].run(
                        self.statements.get(query.engine, []), query, times
                    )
                except QueryFailed as why:
                    self.failures[query] = str(why)
                    continue
                for *_, answer in timed:
                    self.check(query, answer)
                # The first time inside a process warms up.
                figures = [(wall, cpu)] if kind == "whole" else [both[:2] for both in timed[1:]]
                getattr(self, kind).setdefault(query, []).extend(figures)
                at = (query, kind)
                self.peaks[at] = max(peak, self.peaks.get(at, 0))

    def times(self, query, kind="inside"):
        """Returns the least and median wall s and the least and median CPU s, or None."""
        timed = getattr(self, kind).get(query)
        return timed and [of(times) for times in zip(*timed) for of in (min, statistics.median)]

    def fastest(self, peer):
        found = [query for query in self.queries if query.peer == peer and self.times(query)]
        return min(found, key=lambda query: self.times(query)[0], default=None)

    def print_table(self, show_sql):
        print(f"\n### {', '.join(self.name)}\n")
        print("| query | wall s | CPU s | whole: wall s | CPU s | peak MiB: inside, whole ", end="")
        print("| measure / this: wall | CPU |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        own = self.times(self.queries[0])
        for query in self.queries:
            if query in self.failures:
                print(f"| {query.name} | failed: {self.failures[query]} | | | | | | |")
                continue
            cells = [query.name]
            for kind in ["inside", "whole"]:
                figures = self.times(query, kind)
                cells += pairs(figures, 2) if figures else ["", ""]
            peaks = [self.peaks.get((query, kind)) for kind in ["inside", "whole"]]
            cells.append(", ".join("–" if peak is None else f"{peak:,.0f}" for peak in peaks))
            is_compared = own and query is not self.queries[0]
            cells += ratios(own, self.times(query)) if is_compared else ["", ""]
            print("| " + " | ".join(cells) + " |")
        print(f"\nAnswer: {', '.join(map(str, self.answer[1])) if self.answer else 'none'}")
        for query in self.queries if show_sql else []:
            print(f"\n{query.name}:\n\n```sql\n{query.text.strip()}\n```")
        sys.stdout.flush()

    def summary(self):
        own, cells = self.times(self.queries[0]), list(self.name)
        for peer in PEERS:
            other = self.fastest(peer)
            asked = any(query.peer == peer for query in self.queries)
            missing = ["failed" if asked else "–"] * 2
            cells += ratios(own, self.times(other)) if own and other else missing
        for peer in ["DataFusion", "DuckDB"]:
            other = self.fastest(peer)
            peaks = [self.peaks.get((query, "whole")) for query in [self.queries[0], other]]
            cells.append(f"{peaks[0] / peaks[1]:.2f}" if all(peaks) else "–")
        return "| " + " | ".join(cells) + " |"


def pairs(figures, digits):
    """Renders the least and the median of wall and of CPU time."""
    return [f"{figures[at]:.{digits}f}, {figures[at + 1]:.{digits}f}" for at in (0, 2)]


def ratios(own, others):
    return pairs([a / b if b else math.nan for a, b in zip(own, others)], 2)


def run_without_rewriting(cell):
    measure = cell.queries[0]
    statements = [*cell.statements["kanon"], "SET kanon.rewrite_measures = false"]
    try:
        [(wall, cpu, answer)], (*_, peak) = cell.engines["kanon"].run(statements, measure, 1)
        cell.check(measure, answer)
        print(f"\nWithout the rewriting, once: wall {wall:.2f} s, CPU {cpu:.2f} s, peak {peak:,.0f} MiB")
    except QueryFailed as why:
        print(f"\nWithout the rewriting: {why}")


# ---------------------------------------------------------------- the command


def prepare(args, tables):
    """Generates the tables that do not exist yet; returns the files by name."""
    claims = args.folder / f"claims_{args.rows}.parquet"
    files = {"visits": args.folder / f"visits_{args.rows}.parquet", "claims": claims}
    files["hierarchy"] = claims.with_name(f"{claims.stem}_occupations.csv")
    size = ["--rows", str(args.rows), "--seed", "7", "--to"]
    for of in tables:
        needed = [files[of], *([files["hierarchy"]] if of == "claims" else [])]
        if not all(file.exists() for file in needed):
            script = [sys.executable, str(HERE / "check_table.py")]
            command = [args.kanon, "generate"] if of == "visits" else script
            subprocess.run([*command, *size, str(files[of])], check=True)
        with open(files[of], "rb") as file:  # so that the first query reads no disk
            while file.read(2**24):
                pass
        print(f"- {of}: {args.rows:,} rows, {files[of].stat().st_size / 2**20:.0f} MiB of Parquet")
    return files


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known_keys = list(dict.fromkeys(keys for table in check_questions.TABLES.values() for keys in table.keys))

    def names(known):
        def parse(given):
            unknown = [name for name in given.split(",") if name not in known]
            if unknown:
                raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found {','.join(unknown)}")
            return given.split(",")

        return parse

    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--inside", type=int, default=2)
    parser.add_argument("--whole", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--table", choices=list(check_questions.TABLES))
    parser.add_argument("--only", type=names(known_keys), default=known_keys, help="keys, separated by commas")
    parser.add_argument("--questions", type=names(list(check_questions.TITLES)), help="separated by commas")
    parser.add_argument("--peers", type=names(PEERS), default=PEERS, help="separated by commas")
    parser.add_argument("--kanon", default=str(HERE.parent / "target/release/kanon"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--gib", type=int, default=8, help="memory for each engine")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--show-sql", action="store_true")
    args = parser.parse_args()
    if min(args.rows, args.runs, args.inside, args.whole, args.threads, args.gib) < 1:
        parser.error("--rows, --runs, --inside, --whole, --threads and --gib are whole numbers above 0")
    return args


def main():
    if sys.argv[1:] == ["--worker"]:
        return work()
    args = parse_arguments()
    tables = [args.table] if args.table else list(check_questions.TABLES)
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ["duckdb", "polars"])
    try:
        files = prepare(args, tables)
        print(f"- {args.threads} threads and {args.gib} GiB for each engine; {packages}")
        cells = [
            Cell(of, keys, question, files, args)
            for of in tables
            for keys in check_questions.TABLES[of].keys
            if keys in args.only
            for question in check_questions.questions_of(check_questions.TABLES[of])
            if args.questions is None or question in args.questions
        ]
        for cell in cells:
            for run in range(max(args.runs, args.whole)):
                cell.run(run, args)
            cell.print_table(args.show_sql)
            if args.slow:
                run_without_rewriting(cell)
    except (OSError, subprocess.CalledProcessError) as why:
        print(f"measures: {why}", file=sys.stderr)
        sys.exit(2)
    print("\n### Ratios: measure / the fastest query of each engine; least, median\n")
    print("| table | keys | question | DuckDB: wall | CPU | DataFusion: wall | CPU | Polars: wall | CPU ", end="")
    print("| peak / DataFusion's | / DuckDB's |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for cell in cells:
        print(cell.summary())
    if any(cell.queries[0] in cell.failures for cell in cells):
        sys.exit(2)


if __name__ == "__main__":
    main()
