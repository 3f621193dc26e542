"""The help of the command line in Korean, by the English text."""

from __future__ import annotations

HELP: dict[str, str] = {
    "options": "옵션",
    "positional arguments": "인자",
    "show this help message and exit": "이 도움말을 보여 주고 끝냅니다",
    "show program's version number and exit": "버전을 보여 주고 끝냅니다",
    "Finds autograd mistakes in PyTorch code: what will raise, corrupt gradients, keep memory or stall.": (
        "PyTorch 코드에서 autograd 실수를 찾습니다: 오류가 날 것, 기울기가 틀릴 것, 메모리를 붙잡을 것, 장치를 기다릴 것."
    ),
    "check files and folders": "파일과 폴더를 검사합니다",
    "Check Python files and folders (default: the current folder).": "Python 파일과 폴더를 검사합니다(기본값: 현재 폴더).",
    "explain a rule or a torch operation": "규칙이나 torch 연산을 설명합니다",
    "a code, the name of a rule, or an operation: torch.sigmoid": "코드, 규칙 이름, 또는 연산: torch.sigmoid",
    "the torch release whose behaviour is explained": "설명할 torch 버전",
    "colours": "색",
    "the language of the report for people": "사람이 읽는 보고서의 언어",
    "search what each torch operation saves and writes": "torch 연산마다 무엇을 저장하고 쓰는지 찾습니다",
    "part of a name, or a pattern such as Tensor.*_": "이름의 일부, 또는 Tensor.*_ 같은 패턴",
    "how to write it (default: text)": "출력 형식(기본값: text)",
    "the torch release whose table is searched": "찾아볼 표의 torch 버전",
    "run a function with and without its in-place writes, and compare": "함수를 인플레이스 연산을 쓰거나 쓰지 않고 실행해 비교합니다",
    "Run a function (or a whole script) with and without its in-place writes in real torch: "
    "same forward, backward without error, right gradients, memory saved. This runs the file's code.": (
        "함수나 스크립트 전체를 실제 torch에서 인플레이스 연산을 쓰거나 쓰지 않고 실행합니다: forward가 같은지, backward에 오류가 없는지, "
        "기울기가 맞는지, 메모리를 얼마나 아끼는지. 파일의 코드를 실행합니다."
    ),
    "train.py, train.py::block, train.py::Net.forward, train.py::make.inner": (
        "train.py, train.py::block, train.py::Net.forward, train.py::make.inner"
    ),
    """\
what a function is called with:
  a comment above it, with the names of the file and of torch; `self` is the object of a method:

    # gradguard: inputs x=randn(4, 3, requires_grad=True), n=2
    # gradguard: inputs self=Net(6), x=randn(2, 6)

  What it leaves out comes from annotations, from shapes in the docstring (`x: (B, 3)`) and from defaults, and is
  said. What then is missing is asked for, with a comment to paste. A script gets the arguments after `--`.

exit codes:
  0  values and gradients were compared, and are the same
  1  they are not the same, the backward raises, torch refuses a write, or an argument is overwritten
  2  nothing could be compared (stderr says what would be needed), or the request is wrong
""": """\
함수를 무엇으로 부르는가:
  함수 위의 주석으로 부르며, 파일과 torch의 이름을 쓸 수 있습니다. `self`는 메서드의 객체입니다:

    # gradguard: inputs x=randn(4, 3, requires_grad=True), n=2
    # gradguard: inputs self=Net(6), x=randn(2, 6)

  주석에 없는 것은 어노테이션, docstring의 모양(`x: (B, 3)`), 기본값에서 가져오고 그것을 알려 줍니다. 그래도 모자라는 것은
  붙여 넣을 주석과 함께 묻습니다. 스크립트는 `--` 뒤의 인자를 받습니다.

종료 코드:
  0  값과 기울기를 비교했고 같음
  1  다르거나, backward가 오류를 내거나, torch가 쓰기를 거부하거나, 인자를 덮어씀
  2  비교할 수 있는 것이 없거나(무엇이 필요한지는 stderr에) 요청이 잘못됨
""",
    "compare with the same function of another file": "다른 파일의 같은 함수와 비교합니다",
    "stop after this long (default: 120)": "이만큼 지나면 멈춥니다(기본값: 120)",
    "run a script under the monitor": "스크립트를 모니터로 실행합니다",
    "start the language server": "언어 서버를 시작합니다",
    "check many packages and repositories, on Ray Data": "많은 패키지와 저장소를 Ray Data에서 검사합니다",
    "serve assistants that write code, over the Model Context Protocol": "코드를 쓰는 어시스턴트에 Model Context Protocol로 답합니다",
    'a file, a folder, or "-" for stdin': '파일, 폴더, 또는 표준 입력을 뜻하는 "-"',
    "the name of the text on stdin": "표준 입력으로 들어온 코드의 파일 이름",
    "what is reported": "무엇을 보고하는가",
    "only these rules: codes, prefixes, names, ALL": "이 규칙만: 코드, 코드의 앞부분, 이름, ALL",
    "not these rules": "이 규칙은 빼고",
    "also what is only possible": "가능성만 있는 것도",
    "the torch release whose behaviour is assumed": "동작의 기준이 되는 torch 버전",
    "only files changed since this git commit or branch": "이 git 커밋이나 브랜치 뒤에 바뀐 파일만",
    "read no further files for what they show of those asked for, which they import": (
        "검사할 파일을 import하는 다른 파일은 읽지 않습니다"
    ),
    "leave out the findings that stand in this file": "이 파일에 있는 발견은 뺍니다",
    "write all findings of now into this file": "지금 발견한 것을 모두 이 파일에 적습니다",
    "leave out excluded files even when they are named outright": "이름을 직접 적었더라도 제외된 파일은 뺍니다",
    "how it is reported": "어떻게 보고하는가",
    "how to write the report (default: text)": "보고서 형식(기본값: text)",
    "write the report into this file": "보고서를 이 파일에 적습니다",
    "count findings by rule": "규칙별로 셉니다",
    "exit with 0 even with findings": "발견이 있어도 종료 코드는 0",
    "exit with 2 if anything was not read, or not analysed because of an internal error": (
        "읽지 못했거나 내부 오류로 분석하지 못한 것이 있으면 종료 코드는 2"
    ),
    "tell where the analysis stopped early, and why": "분석이 일찍 멈춘 곳과 이유를 알려 줍니다",
    "fixes": "수정",
    "apply safe fixes": "안전한 수정을 적용합니다",
    "with --fix or --diff: also fixes that may change numbers": "--fix나 --diff와 함께: 값이 달라질 수 있는 수정도",
    "show what --fix would change, and change nothing": "--fix가 바꿀 것을 보여 주기만 합니다",
    "how it is run": "어떻게 실행하는가",
    "also look up modules in this folder, wherever it lies (may be repeated)": (
        "어디에 있든 이 폴더에서도 모듈을 찾습니다(여러 번 쓸 수 있음)"
    ),
    "processes (default: as many as processors)": "프로세스 수(기본값: 프로세서 수)",
    "neither use nor keep results of earlier runs": "이전 실행의 결과를 쓰지도 남기지도 않습니다",
    "where results are kept (default: $GRADGUARD_CACHE_DIR, else the user's cache folder)": (
        "결과를 두는 곳(기본값: $GRADGUARD_CACHE_DIR, 없으면 사용자의 캐시 폴더)"
    ),
    "exit codes:\n"
    "  0  no finding of warning or above\n"
    "  1  findings of warning or above\n"
    "  2  something could not be checked, or the request is wrong (the reason is on stderr);\n"
    "     with --strict also where anything was not read, or lost to an internal error\n": (
        "종료 코드:\n"
        "  0  경고 이상의 발견이 없음\n"
        "  1  경고 이상의 발견이 있음\n"
        "  2  검사하지 못한 것이 있거나 요청이 잘못됨(이유는 stderr에);\n"
        "     --strict에서는 읽지 못했거나 내부 오류로 분석하지 못한 것이 있어도\n"
    ),
}
