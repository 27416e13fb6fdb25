"""Runs the queries that `kanon compare --prove` prints in DuckDB, on the releases of made-up lives.

    python3 tests/proofs.py KANON [LIVES] [SEED]

Needs the package duckdb. Each query must give the rows that the answer counts."""

import json
import os
import random
import subprocess
import sys
import tempfile

import duckdb

POLICY = """
k = 3
method = "{method}"
suppression_limit = 1
others = "drop"
accept_homogeneity = ["the ""diagnosis"", or so"]
{l}
[columns]
patient = {{ role = "individual" }}
age = {{ role = "quasi" }}
"zip, 'code'" = {{ role = "quasi"{levels} }}
'the "diagnosis", or so' = {{ role = "sensitive", allow_unique = true }}
bill = {{ role = "insensitive", allow_unique = true }}
"""
HEAD = 'patient,age,"zip, \'code\'","the ""diagnosis"", or so",bill\n'


def row(rng, patient):
    age = rng.choice(["", 20 + rng.randrange(40)])
    bill = rng.choice(["", rng.randrange(1000), rng.randrange(8)])
    return f"p{patient},{age},{rng.choice([1001, 1002, 2001, 2002])},{rng.choice(['flu', 'gout', 'HIV'])},{bill}\n"


def main():
    kanon = os.path.abspath(sys.argv[1])
    lives = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 51)
    ran = {"pairs": 0, "remainders": 0}
    for life in range(lives):
        method = rng.choice(["auto", "mondrian", "clusters", "mdav"])
        with tempfile.TemporaryDirectory() as folder:
            def write(name, text):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)

            def run(*words):
                return subprocess.run([kanon, *words], cwd=folder, capture_output=True, text=True, check=False)

            levels = ', hierarchy = { prefix = [2] }' if method == "auto" else ""
            named = "'the \"diagnosis\", or so'"
            l = f"[[require]]\nmodel = 'l_diversity'\nl = 2\nsensitive = {named}" if rng.randrange(2) else ""
            text = POLICY.format(method=method, levels=levels, l=l).replace('["the ""diagnosis"", or so"]', "['the \"diagnosis\", or so']")
            write("p.toml", text)
            first = [row(rng, patient) for patient in range(rng.randrange(10, 40))]
            second = [one for one in first if rng.randrange(12)]
            second += [row(rng, 100 + patient) for patient in range(rng.randrange(4))]
            released = []
            for name, rows in (("first", first), ("second", second)):
                write(f"{name}.csv", HEAD + "".join(rows))
                done = run("release", f"{name}.csv", "--policy", "p.toml", "--to", name, "--quiet")
                if done.returncode == 0:
                    released.append(name)
                elif done.returncode != 1:
                    sys.exit(f"life {life}: {done.stderr}")
            if len(released) < 2:
                continue
            done = run("compare", "first", "second", "--prove", "--format", "json")
            if done.returncode != 1:
                sys.exit(f"life {life}: exit code {done.returncode}: {done.stderr}")
            found = json.loads(done.stdout)["by_rows"][0]
            os.chdir(folder)
            for proof in found.get("proofs", []):
                rows = duckdb.sql(proof).fetchall()
                if proof.startswith("-- Rows that pair"):
                    ran["pairs"] += 1
                    counted = (sum(one[-2] for one in rows), sum(one[-2] for one in rows if one[-1] == 1))
                    said = (found["fewer_than_k"], found["alone"])
                else:
                    ran["remainders"] += 1
                    counted, said = sum(abs(one[-1]) for one in rows), found["remainder"]
                if counted != said:
                    sys.exit(f"life {life}, {method}: DuckDB counts {counted}, kanon {said}:\n{proof}")
            expected = bool(found["fewer_than_k"]) + bool(found["remainder"])
            if len(found.get("proofs", [])) != expected:
                sys.exit(f"life {life}: {len(found['proofs'])} proofs of {expected}")
            os.chdir("/")
    print(f"{ran['pairs']} proofs by pairs and {ran['remainders']} by subtraction give in DuckDB what kanon counts")
    if not all(ran.values()):
        sys.exit("a kind of proof was never printed")


if __name__ == "__main__":
    main()
