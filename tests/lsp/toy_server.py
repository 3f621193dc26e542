"""The server with an analyser that is easy to steer, for tests of the protocol.

`boom(x)` is a certain error, `hint(x)` an information, `crash()` a fault of the analyser, `slow(0.2)` takes that
many seconds. `boom(other.f)` also looks into the module `other`.
"""

import ast
import sys
import time
from collections.abc import Iterator

from gradguard.check.api import Report, run
from gradguard.check.catalogue import Catalogue, RuleInfo
from gradguard.check.engine import Answer, Wanted
from gradguard.check.settings import Settings
from gradguard.check.workspace import Workspace
from gradguard.findings import Certainty, Finding, Related, Severity
from gradguard.ide.analysis import Outcome
from gradguard.lsp.server import main
from gradguard.source.text import Source

RULES = Catalogue(
    (
        RuleInfo("GG101", "inplace-on-saved-tensor"),
        RuleInfo("GG301", "item-in-loop"),
        RuleInfo("GG901", "unused-ignore"),
    )
)


def toy(source: Source, settings: Settings, workspace: Workspace, before: Outcome | None = None) -> Outcome:
    def engine(source: Source, settings: Settings, workspace: Workspace, wanted: Wanted) -> Answer:
        return Answer(list(_findings(source, workspace)))

    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "crash":
            raise RuntimeError("asked to crash")
    print("a stray line")
    report: Report = run(source, settings.with_changes(all=True), workspace, engine, lambda: RULES)
    return Outcome(report)


def _findings(source: Source, workspace: Workspace) -> Iterator[Finding]:
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        if name == "slow":
            time.sleep(ast.literal_eval(node.args[0]))
        if name not in ("boom", "hint"):
            continue
        related = []
        text = ast.unparse(node.args[0]) if node.args else ""
        if node.args:
            related.append(Related(source.path, source.span(node.args[0]), "saved here"))
        if "." in text:
            path = workspace.resolve(text.split(".")[0], 0, source.path)
            other = workspace.source(path) if path else None
            for function in other.tree.body if other else ():
                if isinstance(function, ast.FunctionDef) and function.name == text.split(".")[1]:
                    related.append(Related(other.path, other.span(function), f"{function.name} is here"))
        code, rule = ("GG101", "inplace-on-saved-tensor") if name == "boom" else ("GG301", "item-in-loop")
        severity = Severity.ERROR if name == "boom" else Severity.INFORMATION
        yield Finding(
            source.path,
            source.span(node),
            code,
            rule,
            severity,
            Certainty.CERTAIN,
            f"{name} of {text}",
            tuple(related),
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], analyser=toy))
