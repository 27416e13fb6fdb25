"""The run of one case: kanon releases it, the recount checks it, and kanon makes it again in another way."""

import re
import subprocess

from checks import recount
from models import STRICTER
from mutations import notices_changes, reports_stricter
from release import Release

REPEATS = ["three threads", "--recoding", "other files", "explain", "verify"]


class Trial:
    """A case that is released and recounted; `tally` counts the results of all cases by title."""

    def __init__(self, kanon, case, number, tally):
        self.kanon, self.case, self.number, self.tally = kanon, case, number, tally

    def call(self, *arguments):
        """Runs kanon in the folder of the case."""
        return subprocess.run([self.kanon, *arguments], cwd=self.case.folder, capture_output=True, text=True,
                              errors="replace", timeout=300)

    def release(self, name, source="input", policy=("--policy", "policy.toml"), threads="1"):
        """Releases the input of the case to a folder of its own."""
        to = ["--to", f"released/{name}", "--private", f"{name}.json"]
        return self.call("release", source, *policy, *to, "--threads", threads)

    def problems(self):
        """Releases and recounts the case; returns its problems."""
        case, tally = self.case, self.tally
        (case.folder / "released").mkdir()
        before = {*case.folder.rglob("*")}
        ran = self.release("out")
        problems = ["kanon panics or reports an internal error"] if re.search("panicked|internal error", ran.stderr) else []
        if ran.returncode in (1, 2):
            reason = reason_of(ran.stderr)
            tally["refused"][f"exit {ran.returncode}: {reason}"] += 1
            problems += [] if reason else ["a refusal gives no reason"]
            return problems + ["a refusal leaves files behind"] * ({*case.folder.rglob("*")} != before)
        if ran.returncode:
            return problems + [f"exit code {ran.returncode}"]
        release = Release(case, case.folder / "released/out")
        recount(release)
        tally["kind"][case.kind] += 1
        tally["method"][case.method] += 1
        tally["model"].update({require["model"] for require in case.requires})
        tally["check"]["releases with suppressed rows"] += bool(release.suppressed)
        problems += release.problems
        return problems or self.repeat() + self.test_recount(release)

    def test_recount(self, release):
        """Recounts stricter models and changed values; returns the problems."""
        if self.number % 3 == 0 and self.case.kind in ("levels", "regions", "centroids"):
            for require in self.case.requires:
                if (model := require["model"]) in STRICTER:
                    self.tally["stricter"][model] += 1
                    self.tally["reported"][model] += reports_stricter(release, require)
        noticed = notices_changes(release) if self.case.kind != "noise" else []
        self.tally["check"]["values changed in memory"] += len(noticed)
        return ["the recount does not notice a changed value"] * (False in noticed)

    def repeat(self):
        """Verifies the release, and in most cases makes it again; returns the problems."""
        case, how = self.case, REPEATS[self.number % len(REPEATS)]
        ran = self.call("verify", "released/out", "--input", "input", "--policy", "policy.toml", "--private", "out.json")
        problems = ["kanon verify --input refuses the release"] if ran.returncode else []
        if how == "explain":
            return problems + ["kanon explain fails"] * bool(self.call("explain", "released/out").returncode)
        has_recoding = case.kind in ("levels", "regions") and not case.population
        if how == "verify" or case.kind in ("groups", "noise") or how == "--recoding" and not has_recoding:
            return problems  # Groups and noise have a new key each time. Only levels and regions have a recoding.
        self.tally["check"][f"made again with {how}"] += 1
        change = {"three threads": {"threads": "3"}, "other files": {"source": "other"},
                  "--recoding": {"policy": ("--recoding", "out.json")}}
        ran = self.release("again", **change[how])
        if ran.returncode:
            return problems + [f"exit code {ran.returncode} with {how}"]
        first, second = ({path.name: path.read_bytes() for path in (case.folder / "released" / name).iterdir()}
                         for name in ("out", "again"))
        return problems + [f"the release has other bytes with {how}"] * (first != second)


def reason_of(errors):
    """Returns the first words of a refusal, without names and numbers."""
    line = next((line for line in reversed(errors.splitlines()) if line.startswith("kanon: ")), "")
    line = line.removeprefix("kanon: ").removeprefix("policy policy.toml: ")
    line = re.sub(r"(columns|require)(\.\w+|\[\d+\])", r"\1", line)
    line = re.sub(r"`[^`]*`|\"[^\"]*\"|\(.*?\)|\d[\d,.]*", "_", line)
    return re.sub(r"(satisf(y|ies)) .*", r"\1 the models", re.sub(r"\b[a-z]+_[a-z_]+\b", "_", line))[:80]
