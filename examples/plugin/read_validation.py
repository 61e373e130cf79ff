#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a validation found, read by another program: read_validation.py STUDY_DIRECTORY

Prints for each variable and setting its verdict, and how far each function of one's own is off the
ensemble without loss, on average over members, in the last cycle.
"""
import collections
import csv
import pathlib
import sys


def rows(path):
    with open(path, encoding="ascii") as f:
        yield from csv.DictReader(f)


def main():
    study = pathlib.Path(sys.argv[1])
    for v in rows(study / "verdicts.csv"):
        print(f"{v['variable']:12} {v['setting']:22} rate {float(v['rate']):7.4f}  {v['verdict']:5}"
              f" {v['why']}")
    if not (study / "functions.csv").exists():
        return
    means = collections.defaultdict(list)
    last = 0
    for r in rows(study / "functions.csv"):
        if r["why"]:
            print(f"cycle {r['cycle']}, {r['function']} of {r['setting']}: {r['why']}")
            continue
        last = max(last, int(r["cycle"]))
        means[r["function"], r["setting"], int(r["cycle"])].append(float(r["value"]))
    for (name, setting, cycle), values in means.items():
        if cycle == last and setting != "none":
            without = means.get((name, "none", cycle))
            mean = sum(values) / len(values)
            about = f" (without loss {sum(without) / len(without):.6g})" if without else ""
            print(f"{name} of {setting} in cycle {cycle}: {mean:.6g}{about}")


if __name__ == "__main__":
    main()
