"""Releases random tables under random policies with kanon, and recounts each release without it.

    python3 tests/recount KANON [--policies 300] [--seed 1] [--only N] [--keep FOLDER]

KANON is the program. Each case makes a table, a policy over the methods and models of `kanon list`, and a release. The
recount reads the Parquet files of the release with pyarrow, and checks that:

1. every class of the written columns satisfies every required model, by the definitions in sql/model/;
2. the suppressed individuals stay within the limit, and under one level per column, every suppressed class fails a model;
3. every label covers its value, sensitive and insensitive columns have the values of the input, and centroids are the
   means, medians or most frequent values of their classes;
4. no page, statistic or record has a token of a left-out column or a suppressed row;
5. the order of the rows does not follow the input, and `kanon verify --input` accepts the release;
6. three threads, `--recoding`, and the same rows in other files each give the same bytes (each in a fifth of the cases);
7. a refusal gives a reason and leaves no files behind.

The recount is tested, too. It must report some releases when k + 2 is expected, and it must notice a value that is
changed in memory. The summary also counts how often stricter parameters of the other models are reported.

Not recounted: the objective, so a better recoding may exist; the noise and its epsilon; the risks and losses in the
record; the place of cuts under `ends = "cuts"`; the need for suppression except under one level per column, and there not
with the average risk or a model over some of the columns; the choice of labels by `merge`; and values of the hierarchies
that come with kanon, except the values in values.py. Tables have at most 400 rows. Releases are Parquet files.

Exit code 0: no case failed, and every method and model was released. A method or model of `kanon list` that is not known
here is an error. The output has no cell values. FOLDER, or a temporary one, keeps the files of failed cases, which have
them. Needs Python 3.11 and pyarrow; without pyarrow it prints one line and does nothing.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

try:
    import pyarrow
except ImportError:
    print("pyarrow is not importable: skipped")
    sys.exit(0)

from models import OF_POPULATION, OF_SIZES, OF_VALUES
from policies import KIND_OF, Case
from trial import Trial


def listed_names(kanon):
    """Returns the methods and the models of `kanon list`; exits if one is not known here."""
    ran = subprocess.run([kanon, "list", "--format", "json"], capture_output=True, check=True, timeout=60)
    listed = json.loads(ran.stdout)
    methods = list(dict.fromkeys(["auto", *(each["name"] for each in listed["methods"])]))
    models = [each["name"] for each in listed["models"]]
    known = [*KIND_OF, *OF_SIZES, *OF_VALUES, *OF_POPULATION]
    if unknown := [name for name in methods + models if name not in known]:
        sys.exit(f"FAIL  not known to policies.py or models.py, add it there: {', '.join(unknown)}")
    return methods, models


def problems_of(number, arguments, folder, methods, models, tally):
    """Makes one case in a new folder and runs it; returns its problems."""
    method, model = methods[number % len(methods)], models[(number + number // len(methods)) % len(models)]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        return Trial(arguments.kanon, Case(arguments.seed, number, method, model, folder), number, tally).problems()
    except Exception as error:  # Its text may have a cell. The other cases still run.
        trace = error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        return [f"the recount fails: {type(error).__name__} in {where}"]


def print_summary(tally):
    """Prints the counts of all cases."""
    for title in ("kind", "method", "model", "check", "refused"):
        for name, count in sorted(tally[title].items(), key=lambda each: (-each[1], each[0])):
            print(f"{title:<8}{count:>5}  {name}")
    for model, count in sorted(tally["stricter"].items()):
        print(f"stricter{tally['reported'][model]:>5} of {count} reported  {model}")


def main():
    """Runs all cases; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kanon", metavar="KANON", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--policies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="N")
    parser.add_argument("--keep", metavar="FOLDER")
    arguments = parser.parse_args()

    start, tally, failed = time.monotonic(), defaultdict(Counter), 0
    methods, models = listed_names(arguments.kanon)
    folder = Path(arguments.keep or tempfile.mkdtemp(prefix="recount-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    numbers = range(arguments.policies) if arguments.only is None else [arguments.only]
    for number in numbers:
        case_folder = folder / f"case-{number}"
        if problems := problems_of(number, arguments, case_folder, methods, models, tally):
            failed += 1
            print(f"FAIL  case {number}: {'; '.join(dict.fromkeys(problems))}\n      {case_folder}/policy.toml")
            again = f"python3 {sys.argv[0]} {arguments.kanon} --seed {arguments.seed} --only {number}"
            print(f"      again: {again}", flush=True)
        else:
            shutil.rmtree(case_folder)
    if not any(folder.iterdir()):
        folder.rmdir()
    print_summary(tally)
    print(f"seed {arguments.seed}: {len(numbers)} policies, {tally['kind'].total()} releases, "
          f"{tally['refused'].total()} refused, {failed} failed, {time.monotonic() - start:.0f} s")
    if arguments.only is not None:
        return int(failed > 0)
    missing = [name for name in methods + models if name not in tally["method"] + tally["model"]]
    if missing:
        print(f"FAIL  never released: {', '.join(missing)}")
    if not tally["reported"]["k_anonymity"]:
        print("FAIL  the recount would not notice: k + 2 was never reported")
    return int(failed > 0 or bool(missing) or not tally["reported"]["k_anonymity"])


if __name__ == "__main__":
    sys.exit(main())
