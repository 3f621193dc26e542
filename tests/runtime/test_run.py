"""`gradguard run`, its reports, and `gradguard.monitor()`."""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ElementTree

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.running import PROCESS, RUN, Ran

STALE = """import sys
import torch

print("arguments", sys.argv)
x = torch.rand(3, requires_grad=True)
y = x.exp()
y.add_(1)
y.sum().backward()
"""

LEAK = """import torch

w = torch.rand(4, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
device = "cuda" if torch.cuda.is_available() else "cpu"
history = []
for step in range(12):
    loss = (w * torch.rand(4, device=device)).exp().sum()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    history.append(loss)
    print(loss.item() > 0)
"""


def run(*argv: str, **files: str) -> Ran:
    named = {name.replace("_py", ".py"): text for name, text in files.items()}
    ran = shared_pool().call(RUN, timeout=120, argv=list(argv), files=named)
    assert not isinstance(ran, Died), ran
    return ran


def test_text_names_writer_saver_and_backward():
    ran = run("train.py", "--epochs", "3", train_py=STALE)
    assert ran.code == 1
    assert ran.stdout == "arguments ['train.py', '--epochs', '3']\n"
    report = ran.stderr
    assert "train.py:7:1: error GG101 inplace-on-saved-tensor:" in report
    assert "  7 | y.add_(1)\n    | ^^^^^^^^^" in report
    assert "- `exp` saved the tensor here\n" in report
    assert "- this backward still needs it\n" in report
    assert "RuntimeError: one of the variables needed for gradient computation" in report
    assert "gradguard/runtime" not in report


def test_json_has_the_shape_of_check():
    ran = run("--format", "json", "--output", "report.json", "train.py", train_py=STALE)
    data = json.loads(ran.files["report.json"])
    assert set(data) == {"version", "torch", "findings", "limits", "errors"}
    (finding,) = data["findings"]
    assert finding["certainty"] == "observed"
    assert (finding["file"], finding["line"], finding["column"], finding["end_column"]) == (
        "train.py",
        7,
        1,
        10,
    )
    assert {r["line"] for r in finding["related"]} == {6, 8}
    assert set(finding) == {
        "file", "code", "name", "severity", "certainty", "line", "column", "end_line", "end_column", "message",
        "related", "notes", "fixes",
    }  # fmt: skip


def test_last_run_is_written_with_hashes_and_timeline():
    ran = run("loop.py", loop_py=LEAK)
    data = json.loads(ran.files[".gradguard/last-run.json"])
    assert data["schema"] == 1
    assert data["command"] == ["loop.py"]
    assert data["files"] == {"loop.py": hashlib.sha256(LEAK.encode()).hexdigest()}
    steps = next(s for s in data["series"] if s["what"] == "optimizer step")
    assert (steps["line"], steps["passes"], len(steps["nodes"])) == (11, 12, 12)
    assert steps["saved_bytes"][-1] > steps["saved_bytes"][0] > 0
    assert {(f["line"], f["code"]) for f in data["findings"]} == {(10, "GG206"), (12, "GG202"), (13, "GG301")}
    reads = {r["line"]: r for r in data["host_reads"]}
    assert (reads[13]["count"], reads[13]["steps"]) == (12, 12)
    assert data["costs"]["operators"] > 12


def test_what_is_kept_of_a_run_hides_from_git():
    assert run("loop.py", loop_py=LEAK).files[".gradguard/.gitignore"] == "*\n"
    kept = run("loop.py", loop_py=LEAK, **{".gradguard/.gitignore": "mine\n"})
    assert kept.files[".gradguard/.gitignore"] == "mine\n"


@pytest.mark.parametrize(
    ("linked", "target"), [(".gradguard", "victim"), (".gradguard/last-run.json", "../victim/last-run.json")]
)
def test_the_last_run_is_written_through_no_link(linked, target):
    link = f"import os\nos.path.dirname({linked!r}) and os.mkdir('.gradguard')\nos.symlink({target!r}, {linked!r})\n"
    victim = {"victim/last-run.json": "precious", "victim/a.txt": "precious"}
    ran = run("train.py", train_py=link + STALE, **victim)
    assert ran.code == 1
    assert "GG101" in ran.stderr
    assert "gradguard run: cannot keep the last run: " in ran.stderr
    assert f"{linked}: a link, which is not followed\n" in ran.stderr
    assert {name: text for name, text in ran.files.items() if name.startswith("victim/")} == victim


def test_the_report_is_written_where_the_run_was_started():
    move = "import os\nos.mkdir('elsewhere')\nos.chdir('elsewhere')\n"
    ran = run("--output", "report.txt", "train.py", train_py=move + STALE)
    assert {name for name in ran.files if name.endswith(".txt")} == {"report.txt"}


def test_language_server_reads_the_last_run(tmp_path):
    from gradguard.lsp.disk_calls import DiskCalls
    from gradguard.lsp.observed import Observed, read_runs

    ran = run("loop.py", loop_py=LEAK)
    (tmp_path / ".gradguard").mkdir()
    (tmp_path / ".gradguard" / "last-run.json").write_text(ran.files[".gradguard/last-run.json"])
    observed = Observed()
    assert observed.take(read_runs([str(tmp_path)], DiskCalls()))
    path = str(tmp_path / "loop.py")
    assert {f.code for f in observed.findings(path, LEAK)} == {"GG206", "GG202", "GG301"}
    assert not list(observed.findings(path, LEAK + "\n"))


def test_html_has_a_picture_of_saved_bytes():
    ran = run("--format", "html", "--output", "report.html", "loop.py", loop_py=LEAK)
    page = ran.files["report.html"]
    assert "GG202" in page
    assert "http" not in page.replace("http-equiv", "")
    start = page.index("<svg")
    picture = ElementTree.fromstring(page[start : page.index("</svg>") + 6].replace("role=img", "role='img'"))
    points = picture.find("polygon").get("points").split()
    assert len(points) > 10


def test_a_caught_error_is_reported():
    code = STALE.replace(
        "y.sum().backward()", "try:\n    y.sum().backward()\nexcept RuntimeError:\n    print('caught')"
    )
    ran = run("train.py", train_py=code)
    assert ran.stdout.endswith("caught\n")
    assert "GG101" in ran.stderr
    assert "torch: one of the variables needed" in ran.stderr


def test_interrupt_still_writes_the_report():
    code = STALE.replace("y.sum()", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\ny.sum()")
    ran = run("train.py", train_py=code)
    assert ran.code == 130
    assert "KeyboardInterrupt" in ran.stderr
    assert "The run was interrupted" in ran.stderr
    assert ".gradguard/last-run.json" in ran.files


@pytest.mark.parametrize(
    ("ending", "code"), [("sys.exit(0)", 0), ("sys.exit(3)", 3), ("raise KeyError(1)", 1), ("", 0)]
)
def test_exit_code_of_a_program_with_nothing_to_report(ending, code):
    ran = run("train.py", train_py=f"import sys\nimport torch\ntorch.rand(3) + 1\n{ending}\n")
    assert ran.code == code
    assert "nothing found" in ran.stderr


def test_module_with_arguments():
    ran = run("-m", "pkg.train", "7", **{"pkg/__init__.py": "", "pkg/train.py": STALE})
    assert ran.code == 1
    assert "pkg/train.py:7:1: error GG101" in ran.stderr
    assert "'7'" in ran.stdout


KINDS = {
    "folder": (
        ["app", "7"],
        {"app/__main__.py": "from core import go\n" + STALE, "app/core.py": "def go(): ...\n"},
        8,
    ),
    "code": (["-c", STALE, "7"], {}, 7),
    "standard input": (["-", "7"], {}, 7),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_python_runs_too(kind):
    argv, files, line = KINDS[kind]
    ran = shared_pool().call(PROCESS, timeout=120, argv=argv, files=files, given=STALE)
    assert not isinstance(ran, Died), ran
    assert ran.stdout == f"arguments {[argv[0], '7']}\n", ran.stderr
    (finding,) = json.loads(ran.files[".gradguard/last-run.json"])["findings"]
    assert (finding["line"], finding["code"]) == (line, "GG101")
    assert "| y.add_(1)" in ran.stderr
    assert ran.code == 1


def test_imports_beside_the_script():
    ran = run(
        "app/train.py",
        **{
            "app/train.py": "import helper\nhelper.go()\n",
            "app/helper.py": "def go():\n    print(__name__)\n",
        },
    )
    assert ran.stdout == "helper\n"
    assert ran.code == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "name a script"),
        (["empty"], "empty has no __main__.py"),
        (["-c"], "-c needs code"),
        (["-c", "def f(:"], "-c is not valid Python"),
        (["missing.py"], "cannot read missing.py: No such file"),
        (["broken.py"], "broken.py is not valid Python"),
        (["--format", "yaml", "train.py"], "invalid choice"),
        (["--output", "nowhere/r.txt", "train.py"], "no such folder"),
        (["-m"], "-m needs a module"),
    ],
)
def test_what_cannot_be_started(argv, message):
    ran = run(*argv, train_py="print('ran')\n", broken_py="def f(:\n", **{"empty/a.txt": ""})
    assert ran.code == 2
    assert message in ran.stderr
    assert ran.stdout == ""
    assert ".gradguard/last-run.json" not in ran.files


def test_main_is_the_script():
    code = (
        "import pickle, sys\nclass A:\n    pass\nif __name__ == '__main__':\n"
        "    print(type(pickle.loads(pickle.dumps(A()))) is A, sys.modules['__main__'].A is A, __file__.endswith('a.py'))\n"
    )
    assert run("a.py", a_py=code).stdout == "True True True\n"


MONITOR = """import torch
import gradguard
x = torch.rand(3, requires_grad=True)
with gradguard.monitor() as m:
    y = x.exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError:
        pass
print([(f.span.line, f.code) for f in m.findings], m.worst().value)
y = x.exp()
y.add_(1)
try:
    with gradguard.monitor() as outer:
        with gradguard.monitor():
            pass
except RuntimeError as error:
    print(error)
with gradguard.monitor() as m:
    (x * 2).sum().backward()
print(m.findings, m.worst(), "nothing found" in str(m))
print(torch.autograd._engine_run_backward.__module__, "numpy" in torch.Tensor.__dict__)
try:
    with gradguard.monitor() as m:
        x.add_(1)
except RuntimeError:
    print([(f.span.line, f.code) for f in m.findings])
"""


def test_context_manager():
    from tests.oracle import judge

    verdict = judge(MONITOR, timeout=60)
    assert verdict.outcome == "ok", verdict
    assert verdict.stdout.splitlines() == [
        "[(6, 'GG101')] error",
        "the gradguard monitor is already on",
        "() None True",
        "torch.autograd.graph False",
        "[(26, 'GG102')]",
    ]


PLUGIN = """import pytest
import torch

def stale():
    x = torch.rand(3, requires_grad=True)
    y = x.sin()
    y.data.add_(1)
    z = y.exp()
    w = z * 1
    z.data.add_(1)
    w.sum().backward()

def test_fails(gradguard_monitor):
    stale()

@pytest.mark.gradguard(level="error")
def test_level(gradguard_monitor):
    stale()

def test_clean(gradguard_monitor):
    torch.rand(3, requires_grad=True).sin().sum().backward()

def test_not_watched():
    stale()

def test_own_failure(gradguard_monitor):
    x = torch.rand(3, requires_grad=True)
    x.add_(1)

@pytest.mark.gradguard(level="loud")
def test_bad_level(gradguard_monitor):
    pass
"""


def test_pytest_fixture():
    code, output = shared_pool().call(
        "tests.runtime.running:run_pytest", timeout=120, files={"test_it.py": PLUGIN}
    )
    assert code == 1
    assert "FAILED test_it.py::test_fails" in output
    assert "test_it.py:10:5: warning GG105" in output
    assert "FAILED test_it.py::test_own_failure" in output
    assert "GG102" in output
    assert "ERROR test_it.py::test_bad_level" in output
    assert "level 'loud' is none of" in output
    assert "2 failed, 3 passed, 1 error" in output


def test_monitors_of_many_processes_of_tests_are_one_run():
    own = "import gradguard\nfrom test_it import stale\ndef test_own():\n    with gradguard.monitor():\n        stale()\n"
    files = {"test_it.py": PLUGIN, "test_own.py": own}
    for options in (["-n", "2"], []):
        _, output = shared_pool().call(
            "tests.runtime.running:run_pytest", timeout=120, files=files, options=options
        )
        assert output.count("gradguard: 1 error, 1 warning by 5 monitors, kept in .gradguard") == 1, output
        data = json.loads(output.partition("LAST RUN")[2])
        assert [(f["file"], f["line"], f["code"]) for f in data["findings"]] == [
            ("test_it.py", 10, "GG105"),
            ("test_it.py", 28, "GG102"),
        ]
        assert {each["process"] for each in data["ranks"]} == {
            "test_own.py::test_own",
            *(f"test_it.py::test_{name}" for name in ("fails", "level", "clean", "own_failure")),
        }


NOTEBOOK = '''import linecache
import gradguard

class Shell:
    """What IPython's shell does of it."""
    def __init__(self):
        self.magics, self.names, self.count = {}, {}, 0
    def register_magic_function(self, function, kind, name):
        self.magics[kind, name] = function
    def run_cell(self, text):
        class Ended:
            error_before_exec = error_in_exec = None
        self.count += 1
        name = f"<ipython-input-{self.count}>"
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        try:
            exec(compile(text, name, "exec"), self.names)
        except Exception as error:
            print(type(error).__name__)
            Ended.error_in_exec = error
        return Ended

shell = Shell()
gradguard.load_ipython_extension(shell)
cell, report = shell.magics["cell", "gradguard"], shell.magics["line", "gradguard_report"]
report("")
shell.run_cell("import torch")
cell("", """x = torch.rand(3, requires_grad=True)
y = x.exp()
y.add_(1)
y.sum().backward()
""")
shell.run_cell("print('there', y.shape)")
report("")
report("report.html")
cell("--dark", "")
cell("--light", "(x * 2).sum().backward()")
'''


def test_magics_of_notebooks():
    ran = shared_pool().call(
        PROCESS, timeout=120, argv=["shell.py"], files={"shell.py": NOTEBOOK}, watched=False
    )
    assert not isinstance(ran, Died), ran
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["gradguard: no cell was watched yet; begin one with %%gradguard", "RuntimeError"], (
        ran.stderr
    )
    assert ran.stdout.count("error GG101 inplace-on-saved-tensor: ") == 2
    assert ran.stdout.count("  3 | y.add_(1)\n    | ^^^^^^^^^\n") == 2
    assert "there torch.Size([3])" in lines
    assert "GG101" in ran.files["report.html"]
    assert (
        lines[-2]
        == "note: Light mode: most passes were not watched, so sites and counts come from a sample of passes. "
        "Graphs that nothing uses and needless `retain_graph=True` were not looked for."
    )
    assert lines[-1].startswith("nothing found; watched")
    assert (
        "gradguard: one of: %%gradguard, %%gradguard --light, %gradguard_report, %gradguard_report FILE.html"
        in lines
    )


def test_importing_gradguard_and_the_plugin_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, gradguard, gradguard.runtime.pytest_plugin; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
