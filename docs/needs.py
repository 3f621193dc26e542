"""The page that says which tensors backward needs of common operations, in four groups, made from the table."""

from __future__ import annotations

from docs import cells
from gradguard.ops import listing, table
from gradguard.ops.model import Form
from gradguard.ops.table import Table

OPERATIONS = [
    "torch.add",
    "torch.sub",
    "torch.mul",
    "torch.div",
    "torch.pow",
    "torch.neg",
    "torch.abs",
    "torch.sign",
    "torch.square",
    "torch.sqrt",
    "torch.rsqrt",
    "torch.reciprocal",
    "torch.exp",
    "torch.expm1",
    "torch.log",
    "torch.log1p",
    "torch.log2",
    "torch.sin",
    "torch.cos",
    "torch.tan",
    "torch.asin",
    "torch.atan",
    "torch.sinh",
    "torch.cosh",
    "torch.tanh",
    "torch.erf",
    "torch.sigmoid",
    "torch.floor",
    "torch.round",
    "torch.clamp",
    "torch.maximum",
    "torch.minimum",
    "torch.where",
    "torch.matmul",
    "torch.mm",
    "torch.bmm",
    "torch.addmm",
    "torch.baddbmm",
    "torch.outer",
    "torch.sum",
    "torch.mean",
    "torch.prod",
    "torch.std",
    "torch.var",
    "torch.norm",
    "torch.logsumexp",
    "torch.cumsum",
    "torch.cumprod",
    "torch.max",
    "torch.amax",
    "torch.sort",
    "torch.topk",
    "torch.cat",
    "torch.stack",
    "torch.gather",
    "torch.index_select",
    "torch.masked_fill",
    "torch.flip",
    "torch.roll",
    "torch.cdist",
    "torch.lerp",
    "torch.atan2",
    "torch.nn.functional.relu",
    "torch.nn.functional.leaky_relu",
    "torch.nn.functional.elu",
    "torch.nn.functional.gelu",
    "torch.nn.functional.silu",
    "torch.nn.functional.mish",
    "torch.nn.functional.softplus",
    "torch.nn.functional.hardtanh",
    "torch.nn.functional.hardswish",
    "torch.nn.functional.logsigmoid",
    "torch.nn.functional.softmax",
    "torch.nn.functional.log_softmax",
    "torch.nn.functional.glu",
    "torch.nn.functional.linear",
    "torch.nn.functional.conv2d",
    "torch.nn.functional.layer_norm",
    "torch.nn.functional.batch_norm",
    "torch.nn.functional.group_norm",
    "torch.nn.functional.max_pool2d",
    "torch.nn.functional.avg_pool2d",
    "torch.nn.functional.embedding",
    "torch.nn.functional.normalize",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.mse_loss",
    "torch.nn.functional.l1_loss",
    "torch.nn.functional.smooth_l1_loss",
    "torch.nn.functional.cross_entropy",
    "torch.nn.functional.nll_loss",
    "torch.nn.functional.binary_cross_entropy_with_logits",
    "torch.nn.functional.kl_div",
]
"""Those that people ask about; of those that the table does not have nothing is said."""

GROUPS = ("output", "input", "both", "neither")

QUESTIONS = {
    "en": (
        "Does the operation that made this tensor need its **output** for backward?",
        "Does an operation that has read this tensor need its **input** for backward?",
        "Is a write allowed here at all: no leaf, no view of several, no memory that overlaps?",
    ),
    "ko": (
        "이 텐서를 만든 연산이 backward에 **출력**을 필요로 합니까?",
        "이 텐서를 이미 읽은 연산이 backward에 **입력**을 필요로 합니까?",
        "여기에 덮어쓰는 것이 허용됩니까? 리프도, 여럿으로 나눈 뷰도, 겹치는 메모리도 아니어야 합니다.",
    ),
}
"""The one set of questions about a write in place."""

WORDS = {
    "en": {
        "title": "Which tensor does backward need?",
        "about": "For {count} common operations of torch {version}: what their backward needs of their own inputs and outputs.",
        "intro": "Before you write a tensor in place, three questions decide whether backward minds:",
        "then": "The groups answer the first two. *Output*: do not write the result. *Input*: do not write what was given to it. "
        "What is needed under a condition only is in the group where it is needed; the last column says when. "
        "Operations of the group *neither* keep nothing that you can reach, or numbers of their own.",
        "output": "It needs its output: do not write the result",
        "input": "It needs an input: do not write what it was given",
        "both": "It needs both",
        "neither": "It needs neither",
        "operation": "operation",
        "needs": "what backward needs",
        "more": "Every operation: [the table](ops.md). Why a write fails: [in-place, safely](guides/inplace.md).",
    },
    "ko": {
        "title": "backward에 어떤 텐서가 필요한가?",
        "about": "torch {version}의 흔한 연산 {count}개: 역전파에 자기 입력과 출력 가운데 무엇이 필요한지.",
        "intro": "텐서를 인플레이스(in-place)로 덮어쓰기 전에, 세 가지 질문이 backward가 문제 삼을지를 정합니다.",
        "then": "아래의 묶음은 앞의 두 질문에 답합니다. *출력*: 결과를 덮어쓰지 마십시오. *입력*: 준 것을 덮어쓰지 마십시오. 조건이 맞을 때만 필요한 것은 필요한 쪽에 "
        "있고, 마지막 열이 그 조건입니다. *둘 다 아님*의 연산은 손이 닿는 것을 저장하지 않거나 자기만의 값을 저장합니다.",
        "output": "출력이 필요합니다: 결과를 덮어쓰지 마십시오",
        "input": "입력이 필요합니다: 준 것을 덮어쓰지 마십시오",
        "both": "둘 다 필요합니다",
        "neither": "둘 다 필요하지 않습니다",
        "operation": "연산",
        "needs": "backward에 필요한 것",
        "more": "모든 연산: [연산 표](ops.md). 덮어쓰기가 실패하는 이유: [안전한 인플레이스 연산](guides/inplace.md).",
    },
}


def group(form: Form) -> str:
    """Which of the four groups a form of an operation is in."""
    output = any(saved.role in form.results for saved in form.saves)
    inputs = any(saved.role not in form.results for saved in form.saves)
    return "both" if output and inputs else "output" if output else "input" if inputs else "neither"


def grouped(rows: Table) -> dict[str, list[str]]:
    """Names of operations by group, in the order above. Those that record nothing are in none."""
    found: dict[str, list[str]] = {name: [] for name in GROUPS}
    for name in OPERATIONS:
        row = rows.op(name)
        recorded = [form for form in row.forms if form.nodes] if row else []
        if recorded:
            kinds = {group(form) for form in recorded}
            one = (
                next(iter(kinds))
                if len(kinds) == 1
                else "both"
                if len(kinds - {"neither"}) > 1
                else max(kinds - {"neither"})
            )
            found[one].append(name)
    return found


def page(language: str) -> str:
    """The page in a language."""
    rows, words = table.load(), WORDS[language]
    groups = grouped(rows)
    count = sum(map(len, groups.values()))
    about = words["about"].format(count=count, version=rows.version)
    lines = [
        "---",
        f"description: '{about}'",
        "---",
        "",
        f"# {words['title']}",
        "",
        about,
        "",
        words["intro"],
        "",
    ]
    lines += [f"{number}. {question}" for number, question in enumerate(QUESTIONS[language], 1)]
    lines += ["", words["then"], ""]
    for name in GROUPS:
        lines += [f"## {words[name]}", "", f"| {words['operation']} | {words['needs']} |", "|---|---|"]
        for each in groups[name]:
            (told,) = (line for line in listing.render_ops(rows, each) if line.name == each)
            saves = told.saves if language == "en" else cells.korean(told.saves)
            lines.append(
                f"| `{each.removeprefix('torch.').replace('nn.functional.', 'F.')}` | {saves.replace('|', chr(92) + '|')} |"
            )
        lines.append("")
    return "\n".join([*lines, words["more"], ""])
