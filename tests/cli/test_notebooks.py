"""Notebooks on the command line: found in folders and by name, named by cell and line in every form, fixed byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gradguard.source.ipynb import merged, read_notebook
from tests.cli.running import RAISES, Runner

WRITTEN = r"""{
 "nbformat": 4, "nbformat_minor": 5,
 "metadata" : {"kernelspec": {"language": "python"},   "note": "caf\u00e9 \/ cells: [\"source\"]"},
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["# y.add_(1)\n", "text"]},
  {"cell_type": "code", "execution_count": 1, "outputs": [{"text": ["1.50\n"], "n": 1.50e-0}],
   "source": [
    "%matplotlib inline\n",
    "import torch\n",
    "!pip list | grep torch\n",
    "x = torch.randn(3, requires_grad=True)  # \u00fc"
   ], "metadata": {}},
  {"cell_type": "code", "metadata": {"source": ["y.add_(1)"]}, "outputs": [],
   "source": [
      "\u0079 = x.exp()\n",
      "y.add_(1)\n",
      "%timeit y.sum()"
   ]},
  {"cell_type": "code", "source": "z = x.exp()\nz.mul_(2)\n(y.sum() + z.sum()).backward()", "outputs": [] }
 ]
}

"""
FIXED = WRITTEN.replace('"y.add_(1)\\n",\n', '"y = y.add(1)\\n",\n').replace("nz.mul_(2)", "nz = z.mul(2)")


def put(gradguard: Runner, name: str = "train.ipynb", text: str = WRITTEN) -> None:
    (gradguard.folder / name).parent.mkdir(exist_ok=True, parents=True)
    (gradguard.folder / name).write_bytes(text.encode())


@pytest.mark.parametrize("paths", [(), (".",), ("sub",), ("sub/train.ipynb",)])
def test_they_are_read_in_folders_and_by_name(gradguard: Runner, paths: tuple[str, ...]) -> None:
    put(gradguard, "sub/train.ipynb")
    put(gradguard, "sub/.ipynb_checkpoints/train.ipynb")
    done = gradguard("check", *paths, "--format", "json")
    assert done.code == 1
    assert done.found == [("sub/train.ipynb", "GG101", 2), ("sub/train.ipynb", "GG101", 2)]
    assert [each["cell"] for each in done.json["findings"]] == [3, 4]
    (fix, *_) = done.json["findings"][0]["fixes"]
    assert fix["edits"][0]["line"] == 2


def test_every_form_names_cell_and_line(gradguard: Runner) -> None:
    put(gradguard)

    def shown(form: str) -> str:
        return gradguard("check", "--format", form).out

    lines = shown("text").split("\n")
    assert lines[0].startswith("train.ipynb:cell 3:2:1: error GG101 ")
    assert any(line.endswith("| y.add_(1)") for line in lines)
    row = WRITTEN.split("\n").index('      "y.add_(1)\\n",') + 1
    first, second = shown("github").strip().split("\n")
    assert first.startswith(f"::error file=train.ipynb,line={row},endLine={row},title=GG101")
    assert "::cell 3, line 2: " in first
    assert "::cell 4, line 2: " in second
    (one, _) = json.loads(shown("gitlab"))
    assert one["location"] == {"path": "train.ipynb", "lines": {"begin": row, "end": row}}
    assert "cell 3, line 2: " in one["description"]
    (result, _) = json.loads(shown("sarif"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.ipynb"
    assert place["region"] == {"startLine": row, "endLine": row}
    assert result["message"]["text"].startswith("cell 3, line 2: ")
    assert "fixes" not in result


def test_fixing_rewrites_cells_and_nothing_else(gradguard: Runner) -> None:
    put(gradguard)
    diff = gradguard("check", "--diff").out
    assert '-      "y.add_(1)\\n",' in diff
    assert '+      "y = y.add(1)\\n",' in diff
    done = gradguard("check", "--fix")
    assert (gradguard.folder / "train.ipynb").read_bytes().decode() == FIXED
    assert done.code == 0, done.out


def test_stdin_may_be_a_notebook(gradguard: Runner) -> None:
    words = ("check", "-", "--stdin-filename", "train.ipynb")
    done = gradguard(*words, "--format", "json", stdin=WRITTEN.encode())
    assert [(each["file"], each["cell"], each["line"]) for each in done.json["findings"]] == [
        ("train.ipynb", 3, 2),
        ("train.ipynb", 4, 2),
    ]
    assert gradguard(*words, "--fix", stdin=WRITTEN.encode()).out == FIXED


def test_a_baseline_and_ignore_comments_know_cells(gradguard: Runner) -> None:
    put(gradguard)
    assert gradguard("check", "--write-baseline", "known.json").code == 0
    assert gradguard("check", "--baseline", "known.json").code == 0
    ignored = WRITTEN.replace('"y.add_(1)\\n",\n', '"y.add_(1)  # gradguard: ignore[GG101]\\n",\n')
    put(gradguard, text=ignored.replace("nz.mul_(2)", "nz = z.mul(2)"))
    assert gradguard("check").code == 0


def test_imports_of_a_notebook_are_followed(gradguard: Runner) -> None:
    gradguard.write(helper="def doubled(t):\n    t.mul_(2)\n    return t\n")
    text = WRITTEN.replace("nz.mul_(2)", "nfrom helper import doubled; doubled(z)")
    put(gradguard, text=text)
    assert ("helper.py", "GG101", 2) in gradguard("check", "--format", "json").found


OTHERS: dict[str, Any] = {
    "no JSON": ("import torch\n{", "not a notebook: "),
    "no cells": ('{"torch": 1}', "not a notebook: no list of cells"),
    "source": ('{"cells": [{"cell_type": "code", "source": 1}], "torch": 1}', "cell 1"),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_what_is_no_notebook_is_told_and_costs_itself(gradguard: Runner, name: str) -> None:
    text, word = OTHERS[name]
    put(gradguard, "bad.ipynb", text)
    gradguard.write(train=RAISES)
    done = gradguard("check")
    assert done.code == 1
    assert "bad.ipynb" in done.err
    assert word in done.err
    assert gradguard("check", "bad.ipynb").code == 2


def test_a_notebook_in_another_language_is_left_alone(gradguard: Runner) -> None:
    put(gradguard, text=WRITTEN.replace('"language": "python"', '"language": "R"'))
    done = gradguard("check")
    assert (done.code, done.err) == (0, "")


def test_a_cell_that_cannot_be_parsed_is_named(gradguard: Runner) -> None:
    put(gradguard, text=WRITTEN.replace('"y.add_(1)\\n",\n', '"y.add_(\\n",\n'))
    done = gradguard("check")
    assert done.code == 2
    assert "train.ipynb:cell 3:" in done.err


@pytest.mark.parametrize(
    ("raw", "after", "text"),
    [
        ("%time x\ny = 1", "pass\ny = 2\n", "%time x\ny = 2"),
        ("!ls\ny = 1\n", "pass\nwith z:\n    y = 1\n", "!ls\nwith z:\n    y = 1\n"),
        ("y = 1\n!ls\n", "with z:\n    y = 1\n    pass\n", None),
        ("%%time\ny = 1", "import torch\n#\ny = 1", None),
        ("%%time\ny = 1", "#\nimport torch\ny = 1", "%%time\nimport torch\ny = 1"),
    ],
)
def test_magics_survive(raw: str, after: str, text: str | None) -> None:
    assert merged(raw, after) == text


def test_what_is_rewritten_is_written_as_the_file_is() -> None:
    notebook = read_notebook(WRITTEN)
    assert notebook.rewritten({}) == WRITTEN
    assert notebook.rewritten({index: cell.text for index, cell in enumerate(notebook.cells)}) == WRITTEN
    again = read_notebook(notebook.rewritten({1: "a = 1\nb = 'é'", 2: "c\n"}))
    assert [cell.text for cell in again.cells][1:] == ["a = 1\nb = 'é'", "c\n"]
    assert '"a = 1\\n",\n      "b = \'\\u00e9\'"\n   ]' in again.text
    for indent in (None, 1, "\t"):
        for ascii_only in (True, False):
            text = json.dumps(json.loads(WRITTEN), indent=indent, ensure_ascii=ascii_only)
            own = read_notebook(text)
            assert own.rewritten({index: cell.text for index, cell in enumerate(own.cells)}) == text
