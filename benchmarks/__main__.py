"""`python -m benchmarks`: measure and write the results page."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import bounds, corpus, found, page, peers, sections

RESULTS = Path(__file__).parent / "results"
SECTIONS = (
    "start-up",
    "keystrokes",
    "latency",
    "parser",
    "bounds",
    "scaling",
    "neighbours",
    "libraries",
    "browser",
)

AGAINST_PARSER = ("torchvision", "timm")
"""Libraries whose check is compared with `ast.parse`."""


def main() -> int:
    """Measure what was asked for; figures of other sections and libraries stay as the last run left them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="this section (may be repeated)")
    parser.add_argument(
        "--library", choices=sorted(corpus.PINS), action="append", help="this library in `libraries`"
    )
    parser.add_argument(
        "--peers-on", choices=sorted(corpus.PINS), action="append", help="this library in `neighbours`"
    )
    parser.add_argument(
        "--peer", choices=sorted(peers.BY_NAME), action="append", help="this neighbour only (may be repeated)"
    )
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (default: all)"
    )
    parser.add_argument(
        "--limit", type=float, default=90, help="seconds until a neighbour is stopped (default: 90)"
    )
    parser.add_argument("--keys", type=int, default=200, help="keystrokes for each file (default: 200)")
    parser.add_argument("--spots", type=int, default=4, help="spots in each training script (default: 4)")
    parser.add_argument(
        "--minutes", type=float, default=14, help="stop what runs then, and say so (default: 14)"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="end with 1 if `libraries` loses a finding that is true or shows an error or warning that is not known to be",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results page")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)

    kept = options.results / "results.json"
    figures: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    end = time.monotonic() + options.minutes * 60

    def left() -> float:
        return max(5.0, end - time.monotonic())

    worse = 0
    figures["when"] = time.strftime("%Y-%m-%d")
    figures["machine"] = f"{os.cpu_count()} CPUs ({platform.machine()}), Python {platform.python_version()}"
    for section in options.only or SECTIONS:
        print(section, flush=True)
        match section:
            case "start-up":
                figures["start_up"] = sections.start_up()
            case "keystrokes":
                figures["keystrokes"] = sections.keystrokes(options.spots, lambda: end - time.monotonic())
            case "bounds":
                figures["bounds"] = bounds.measure(lambda: end - time.monotonic())
            case "parser":
                against = [corpus.library(name) for name in AGAINST_PARSER]
                figures["parser"] = sections.parser(against, left)
            case "latency":
                figures["latency"] = sections.latency(options.keys, left())
            case "scaling":
                figures["scaling"] = sections.scaling(corpus.library("torchvision"), options.jobs, left)
            case "browser":
                figures["browser"] = sections.browser()
            case "libraries":
                chosen = [corpus.library(name) for name in options.library or corpus.PINS]
                checked = sections.libraries(chosen, options.jobs, left)
                measured = {row["library"] for row in checked.rows}
                others = figures.get("libraries", []) if options.library else []
                figures["libraries"] = [
                    *(row for row in others if row["library"] not in measured),
                    *checked.rows,
                ]
                before = found.load(options.results)
                changes = found.compared(before, checked.findings, checked.files)
                found.save(found.merged(before, checked.findings, checked.files), options.results)
                print("\n".join(f"  {change}" for change in changes) or "  the same findings", flush=True)
                worse += sum(change.worse for change in changes)
            case "neighbours":
                names = options.peers_on or ["torchvision"]
                chosen = [corpus.library(name) for name in names]
                tools = [peers.BY_NAME[name] for name in options.peer or peers.BY_NAME]
                measured_now = sections.neighbours(chosen, tools, options.jobs, options.limit, left)
                there = {row["library"] for row in measured_now}
                earlier = figures.get("neighbours", []) if options.peers_on else []
                figures["neighbours"] = [
                    *(row for row in earlier if row["library"] not in there),
                    *measured_now,
                ]
        kept.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
        page.write(figures, options.results)
    print(f"wrote {options.results / 'RESULTS.md'}")
    if worse:
        print(f"{worse} findings in libraries are worse than before")
    return 1 if worse and options.compare else 0


if __name__ == "__main__":
    sys.exit(main())
