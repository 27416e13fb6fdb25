#!/usr/bin/env python3
"""What do the methods keep of real tables?

    python3 benches/methods.py [TABLE]   KANON: the program ($CARGO_TARGET_DIR/release/kanon); KANON_SHARED: ../shared

Runs `kanon search --compare` on the shipped visits (people counted, 2-diversity, at most 5 % suppressed) and on UCI Adult
as pyCANON ships it (32,561 rows, ten quasi-identifiers, 2-diversity, at most 5 % suppressed, no hierarchies but ranges of
ages), each for k = 5 and 10 by `granularity_mean`, and prints a Markdown table. Adult is compared under
`[output] ends = "cuts"`, too, and under the policy that `kanon init` proposes, with all undecided columns left out. TABLE names one of
the four. The errors are those of random counts, see `src/measure/utility/`.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KANON = os.environ.get("KANON") or pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "kanon"
SHARED = pathlib.Path(os.environ.get("KANON_SHARED", ROOT.parent / "shared"))
QUASI = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
ADULT = """rows_are_individuals = true
suppression_limit = 0.05
others = "drop"
[[require]]
model = "l_diversity"
l = 2
[columns]
age = { role = "quasi", hierarchy = { range = [5, 10, 20] } }
education-num = { role = "quasi", hierarchy = { range = [2] } }
salary-class = { role = "sensitive" }
""" + "".join(f'{name} = {{ role = "quasi" }}\n' for name in QUASI)


def compare(table, policy, folder, k, ends):
    if ends != "values":
        policy = policy.replace("[columns]", f'[output]\nends = "{ends}"\n[columns]')
        policy = f'method = "best"\n{policy}'
    text = policy.replace('objective = "granularity"\n', "").replace("k = 5\n", "")
    (folder / "policy.toml").write_text(f'k = {k}\nobjective = "granularity_mean"\n{text}')
    command = [KANON, "search", table, "--policy", folder / "policy.toml", "--compare", "--format", "json", "--threads", "1"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["methods"]


def proposed(table):
    policy = subprocess.run([KANON, "init", table], check=True, capture_output=True, text=True).stdout
    policy = policy.replace('"?"', '"text"').replace("# rows_are_individuals", "rows_are_individuals")
    return "".join(line for line in policy.splitlines(True) if not line.startswith(("#", "method = ")))


def main():
    adult = SHARED / "data" / "adult_full" / "adult.csv"
    print(
        "| table | k | method | `granularity_mean` | discernibility | average class size | information, of a column"
        " | of two | median error | suppressed rows | search, s |"
    )
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for file in (ROOT / "data").glob("*.csv"):
            (folder / file.name).write_bytes(file.read_bytes())
        tables = [
            ("visits", ROOT / "data" / "visits.parquet", (ROOT / "data" / "visits.toml").read_text(), "values"),
            ("Adult", adult, ADULT, "values"),
            ("Adult, cuts", adult, ADULT, "cuts"),
            ("Adult, init", adult, proposed(adult), "values"),
        ]
        tables = [table for table in tables if table[0] in (sys.argv[1:] or [table[0]])]
        for name, table, policy, ends in tables:
            for k in (5, 10):
                for row in compare(table, policy, folder, k, ends):
                    method = " ".join([row["method"], *row["settings"].values()])
                    found = row.get("found")
                    if not found and row["does_not_apply"]:
                        continue
                    if not found:
                        raise SystemExit(f"{name}, k = {k}: {method} found nothing")
                    measures, utility = found["measures"], found["utility"]
                    mean = lambda figures: 100 * sum(one["information_kept"] for one in figures) / len(figures)
                    print(
                        f"| {name} | {k} | {method} | {found['value']:.4f} | {measures['discernibility']:,} |"
                        f" {measures['average_class_size']:.1f} | {mean(utility['columns']):.0f} % |"
                        f" {mean(utility['pairs']):.0f} % | {100 * utility['queries']['median_relative_error']:.1f} % |"
                        f" {found['suppressed_rows']:,} | {row['seconds']:.2f} |"
                    )


if __name__ == "__main__":
    main()
