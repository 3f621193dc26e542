"""`python -m benchmarks.atlas`: released packages with training code, scanned by `gradguard fleet`.

They are those of `corpus.py` and of `atlas.txt`, fetched by pip without their dependencies. The scan lies in
`.cache/bench/atlas`, and what did not change is not run again; its summary is written as `results/atlas.parquet` and onto
the results page. What was read of its errors and warnings stands in `results/read.toml`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import corpus, page
from benchmarks.__main__ import RESULTS
from benchmarks.sections import GRADGUARD, ROOT, SERVER

LIST = Path(__file__).with_name("atlas.txt")
NAME = "atlas.parquet"
SCAN = corpus.CACHE / "atlas" / "scan"


def releases() -> list[tuple[str, str]]:
    """Name and version of each release of the list file."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text("utf-8").splitlines())
    return [(name, version) for line in lines if line for name, _, version in [line.partition("==")]]


def archives() -> list[Path]:
    """All releases, those fetched that are not there yet. Raises subprocess.CalledProcessError when pip cannot."""
    wheels = [*corpus.PINS.items(), *releases()]
    return [
        *(corpus.download(name, version, ".whl") for name, version in wheels),
        *(corpus.download(name, version, ".tar.gz") for name, version in corpus.SCRIPTS.items()),
    ]


def figures(scan: Path, written: Path) -> dict[str, Any]:
    """What a scan came to, for the page; the summary goes into a file."""
    import duckdb

    database = duckdb.connect()
    for table in ("findings", "packages", "unread", "limits"):
        source = f"read_parquet('{scan}/{table}/**/*.parquet', hive_partitioning = true)"
        database.sql(f"create view {table} as from {source}")
    database.sql(
        f"""copy (
            select package, revision, code, severity, certainty, fixable, count(*) as findings
            from findings group by all order by all
        ) to '{written}' (format parquet)"""
    )
    packages = database.sql(
        """select package, revision, sum(files) as files, sum(torch_files) as torch_files, sum(lines) as lines,
            sum(seconds) as seconds, sum(errors) as errors, sum(warnings) as warnings, sum(information) as information,
            sum(limits) as limits, sum(unread) as unread
        from packages group by package, revision order by lines"""
    )
    loud = database.sql(
        """select package || ' ' || revision, path, line, code, severity from findings
        where severity in ('error', 'warning') order by all"""
    )
    unread = database.sql("select why, count(*) as n from unread group by why order by n desc, why")
    return {
        "packages": [dict(zip(packages.columns, row)) for row in packages.fetchall()],
        "loud": [list(row) for row in loud.fetchall()],
        "unread": [list(row) for row in unread.fetchall()],
    }


def main() -> int:
    """Scan, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atlas", description=__doc__)
    parser.add_argument("--jobs", default="2", help="processors (default: 2)")
    parser.add_argument("--scan", type=Path, help="take this scan instead of making one")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results page")
    options = parser.parse_args()
    if options.scan is None:
        words = [*map(str, archives()), "--output", str(SCAN), "--context", "2", "--jobs", options.jobs]
        environment = {**os.environ, "PYTHONPATH": str(SERVER)}
        subprocess.run([*GRADGUARD, "fleet", *words], cwd=ROOT, env=environment, check=True)
    kept = options.results / "results.json"
    every: dict[str, Any] = json.loads(kept.read_text("utf-8"))
    every["atlas"] = figures(options.scan or SCAN, options.results / NAME)
    kept.write_text(json.dumps(every, indent=1) + "\n", "utf-8")
    page.write(every, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
