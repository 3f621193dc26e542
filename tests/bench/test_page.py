"""The results page is what the figures make of it, whatever sections there are."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import found, page
from benchmarks.__main__ import RESULTS

HEAD = {"when": "2026-12-01", "machine": "a machine"}


def written(folder: Path, **figures: object) -> str:
    page.write({**HEAD, **figures}, folder)
    return (folder / "RESULTS.md").read_text("utf-8")


def test_the_page_shows_the_figures_that_are_kept(tmp_path: Path) -> None:
    figures = json.loads((RESULTS / "results.json").read_text("utf-8"))
    found.save(found.load(RESULTS), tmp_path)
    page.write(figures, tmp_path)
    assert (tmp_path / "RESULTS.md").read_text("utf-8") == (RESULTS / "RESULTS.md").read_text("utf-8")


def test_a_check_is_told_as_a_multiple_of_the_parser(tmp_path: Path) -> None:
    def row(library: str, cpu: float, finished: bool = True) -> dict[str, object]:
        return {
            "library": library, "files": 2, "lines": 1000, "finished": finished, "cpu": cpu, "memory": 80.0, "parsing": 0.5,
        }  # fmt: skip

    text = written(tmp_path, parser=[row("one 1.0", 5.0), row("two 2.0", 10.0)])
    assert "| one 1.0 | 2 | 1,000 | 5.0 | 0.50 | 10.0× | 80 |" in text
    assert "| together | 4 | 2,000 | 15.0 | 1.00 | 15.0× | 80 |" in text
    stopped = written(tmp_path, parser=[row("one 1.0", 5.0, False), row("two 2.0", 10.0)])
    assert "| one 1.0 | 2 | 1,000 | > 5 | 0.50 | > 10.0× | 80 |" in stopped
    assert "| > 15.0 | 1.00 | > 15.0× |" in stopped


def test_keystrokes_that_were_not_measured_are_told(tmp_path: Path) -> None:
    assert "Not measured" in written(tmp_path, keystrokes={"rows": []})


def test_a_program_over_its_bounds_is_told(tmp_path: Path) -> None:
    def row(met: bool, finished: bool = True) -> dict[str, object]:
        return {
            "program": "grows", "lines": 3000, "cpu": 4.0, "quick": 1.5, "memory": 99.0, "cut": met, "met": met, "finished": finished,
        }  # fmt: skip

    text = written(tmp_path, bounds={"parse_line": 16.0, "rows": [row(True), row(False), row(False, False)]})
    assert [line for line in text.splitlines() if line.startswith("| grows")] == [
        "| grows | 3,000 | 4.00 | 1.50 | 99 | said |  |",
        "| grows | 3,000 | 4.00 | 1.50 | 99 |  | missed |",
        "| grows | 3,000 | > 4.00 | > 1.50 | 99 |  | missed |",
    ]
