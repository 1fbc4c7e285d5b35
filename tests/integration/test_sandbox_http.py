"""SandboxFusion's and Piston's endpoints as their clients find them: real servers and programs."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sandbox_service
from assay.kit.tokens import hash_token
from assay.sandbox.jail import detect
from sandbox_http_support import Answer, get, post, sandbox

SLOTS = 2


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    flags = ("--languages", "python,c,pytest", "--slots", str(SLOTS))
    with sandbox(*flags) as address:
        yield address


def run_code(server: str, code: str, language: str = "python", **fields: Any) -> Answer:
    return post(server, "/run_code", {"code": code, "language": language, **fields})


def submit(server: str, completion: str, config: dict[str, Any]) -> Answer:
    body = {"dataset": "mine", "id": 7, "completion": completion, "config": config}
    return post(server, "/submit", body)


def fenced(code: str) -> str:
    return f"Here:\n```python\n{code}\n```\n"


def test_ping(server: str) -> None:
    assert get(server, "/v1/ping") == Answer(200, "pong")


def test_a_program_with_stdin_and_files(server: str) -> None:
    code = (
        "import pathlib\n"
        "pathlib.Path('out.bin').write_bytes(bytes([0, 255]))\n"
        "print(input() + pathlib.Path('d/a.txt').read_text())\n"
    )
    files = {"d/a.txt": base64.b64encode(b"file").decode()}
    found = run_code(server, code, stdin="in", files=files, fetch_files=["out.bin", "missing"])
    assert found.status == 200
    assert found.body["status"] == "Success"
    assert found.body["run_result"]["stdout"] == "infile\n"
    assert found.body["files"] == {"out.bin": base64.b64encode(bytes([0, 255])).decode()}


def test_mnt_is_the_programs_own_folder(server: str) -> None:
    if detect().level != "namespaces":
        pytest.skip("without namespaces a program sees the machine's own /mnt, and cannot write it")
    files = {"/mnt/data/a.txt": base64.b64encode(b"file").decode()}
    code = (
        "text = open('/mnt/data/a.txt').read() + open('data/a.txt').read()\n"
        "open('/mnt/b', 'w').write(text)"
    )
    found = run_code(server, code, files=files, fetch_files=["/mnt/b"])
    assert found.body["status"] == "Success"
    assert base64.b64decode(found.body["files"]["/mnt/b"]) == b"filefile"


@pytest.mark.parametrize(
    ("code", "fields", "status", "return_code"),
    [
        ("raise ValueError('no')", {}, "Finished", 1),
        ("import os; os.kill(os.getpid(), 11)", {}, "Finished", -11),
        ("import time; time.sleep(60)", {"run_timeout": 0.2}, "TimeLimitExceeded", None),
        ("x = bytearray(300 << 20)", {"memory_limit_MB": 64}, "Finished", None),
    ],
)
def test_programs_that_fail(
    server: str, code: str, fields: dict[str, Any], status: str, return_code: int | None
) -> None:
    found = run_code(server, code, **fields)
    assert (found.status, found.body["status"]) == (200, "Failed")
    assert found.body["run_result"]["status"] == status
    if return_code is not None or status != "Finished":
        assert found.body["run_result"]["return_code"] == return_code
    else:  # whether the interpreter or the kernel sees the end of memory first
        assert found.body["run_result"]["return_code"] in (1, -9)


def test_programs_that_do_not_compile(server: str) -> None:
    wrong = run_code(server, "int main() { return x; }", "c").body
    assert (wrong["status"], wrong["run_result"]) == ("Failed", None)
    assert wrong["compile_result"]["return_code"] == 1
    assert "error" in wrong["compile_result"]["stderr"]
    right = run_code(server, "int main() { return 0; }", "c").body
    assert (right["status"], right["compile_result"]["return_code"]) == ("Success", 0)
    doubled = "".join(f"#define D{n + 1} D{n} D{n}\n" for n in range(24))  # seconds of any machine
    endless = f"#define D0 ;\n{doubled}int main() {{ D24 return 0; }}"
    late = run_code(server, endless, "c", compile_timeout=0.001).body
    assert late["status"] == "Failed"
    assert late["compile_result"]["status"] == "TimeLimitExceeded"
    assert late["run_result"] is None


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"language": "lean"}, "not served"),
        ({"language": "rust"}, "UNKNOWN_LANGUAGE"),  # ours, but not this sandbox's
        ({"run_timeout": 1e6}, "INVALID_LIMIT"),
        ({"files": {".assay/x": ""}}, "INVALID_PROGRAM"),
    ],
)
def test_what_the_caller_must_change(server: str, fields: dict[str, Any], word: str) -> None:
    found = post(server, "/run_code", {"code": "1", "language": "python", **fields})
    assert found.status == 422
    assert word in json.dumps(found.body["detail"])
    assert found.body.get("status", "SandboxError") == "SandboxError"


def test_many_programs_at_once_each_get_their_own_answer(server: str) -> None:
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(lambda n: run_code(server, f"print({n})"), range(48)))
    assert [each.body["run_result"]["stdout"] for each in found] == [f"{n}\n" for n in range(48)]


def test_a_caller_that_goes_away_takes_its_program_along(server: str) -> None:
    body = json.dumps({"code": "while True: pass", "language": "python", "run_timeout": 250})
    connections = [http.client.HTTPConnection(server) for _ in range(SLOTS)]
    for connection in connections:
        connection.request("POST", "/run_code", body)
    busy = post(server, "/run_code?wait_s=0.2", {"code": "1", "language": "python",
                "run_timeout": 0.1, "compile_timeout": 0.1})  # fmt: skip
    assert busy.status == 504  # verl tries again on this one
    assert busy.body["status"] == "SandboxError"
    assert busy.body["run_result"] is None
    for connection in connections:
        connection.close()
    assert run_code(server, "print(1)").body["status"] == "Success"


def test_a_deadline_of_the_callers_own(server: str) -> None:
    job = {"code": "1", "language": "python"}
    assert post(server, "/run_code", job, x_timeout_s="30").status == 200
    assert post(server, "/run_code?wait_s=-1", job).status == 422
    assert post(server, "/run_code", job, x_timeout_s="never").status == 400


def oj(cases: list[tuple[str, str]], **extra: Any) -> dict[str, Any]:
    tests = [{"input": {"stdin": a}, "output": {"stdout": b}} for a, b in cases]
    return {"dataset_type": "CommonOJDataset", "language": "python", "extra": extra,
            "provided_data": {"id": 7, "content": "", "labels": {}, "test": tests}}  # fmt: skip


def test_submissions_are_held_against_cases(server: str) -> None:
    cases = [(str(n), f"{2 * n}\n") for n in range(8)]
    right = submit(server, fenced("print(2 * int(input()))"), oj(cases)).body
    assert right["accepted"] is True
    assert [test["passed"] for test in right["tests"]] == [True] * 8
    assert (right["id"], right["extracted_type"]) == (7, "fenced")
    half = fenced("n = int(input())\nprint(2 * n if n < 3 else 0)")
    first = submit(server, half, oj(cases)).body
    assert first["accepted"] is False
    assert [test["passed"] for test in first["tests"]] == [True] * 3 + [False]
    whole = submit(server, half, oj(cases, run_all_cases=True)).body
    assert [test["passed"] for test in whole["tests"]] == [True] * 3 + [False] * 5
    assert whole["tests"][4]["exec_info"]["run_result"]["stdout"] == "0\n"
    empty = submit(server, "I give up.", oj(cases)).body
    assert (empty["accepted"], empty["extracted_type"]) == (False, "empty")


def test_a_program_that_floods_its_outputs_is_wrong_and_no_fault(server: str) -> None:
    flood = "import sys\nfor f in (sys.stdout, sys.stderr): f.write('1' * 3_000_000)"
    cases = [(str(n), "1\n") for n in range(40)]
    found = submit(server, fenced(flood), oj(cases, run_all_cases=True))
    assert found.status == 200
    assert [test["passed"] for test in found.body["tests"]] == [False] * 40


MBPP = {"dataset_type": "MBPPDataset",
        "provided_data": {"test_list": ["assert f(1) == 2", "assert f(2) == 3"]}}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "accepted"),
    [
        ("def f(x):\n    return x + 1", True),
        ("def f(x):\n    return 2", False),
        ("import sys\ndef f(x):\n    return 2\nsys.exit(0)", False),
        ("import os\ndef f(x):\n    os._exit(0)", False),
        ("class A(int):\n    __eq__ = lambda s, o: True\ndef f(x):\n    return A()", False),
    ],
)
def test_assertions_are_out_of_the_programs_reach(server: str, code: str, accepted: bool) -> None:
    found = submit(server, fenced(code), MBPP).body
    assert found["accepted"] is accepted
    assert (found["tests"][0]["exec_info"]["status"] == "Success") is accepted


def test_functions_that_continue_a_prompt(server: str) -> None:
    row = {
        "prompt": 'def mean(xs: List[float]) -> float:\n    """Their mean."""\n',
        "test": "def check(candidate):\n    assert abs(candidate([1.0, 2.0]) - 1.5) < 1e-6\n",
        "entry_point": "mean",
    }
    config = {"dataset_type": "HumanEvalDataset", "provided_data": row}
    right = submit(server, "    return sum(xs) / len(xs)\n\ndef spoilt(", config).body
    assert right["accepted"] is True
    assert submit(server, "    return max(xs)\n", config).body["accepted"] is False
    assert submit(server, "", config).body["accepted"] is False


def test_a_callers_own_logic_runs_in_the_sandbox(server: str) -> None:
    logic = (
        "import os\n"
        "assert sorted(os.listdir()) == ['assay_extract.py', 'main.py']\n"
        "code = extract_fenced_code(completion)[0].code.partition('#')[0]\n"
        "submit_code_blocks([CodeBlock(priority=40, code=code, language='python')])\n"
    )
    config = {**oj([("", "1")]), "custom_extract_logic": logic}
    found = submit(server, fenced("print(1)#print(2)"), config).body
    assert (found["accepted"], found["extracted_code"]) == (True, "print(1)")
    wrong = submit(server, "", {**config, "custom_extract_logic": "1 / 0"})
    assert wrong.status == 422
    assert "ZeroDivisionError" in wrong.body["detail"][0]["msg"]
    # Only this completion breaks it: that finds nothing, and is no fault.
    empty = submit(server, "I give up.", config)
    assert (empty.status, empty.body["accepted"]) == (200, False)


def test_a_completion_cannot_break_logic_that_has_worked(server: str) -> None:
    marked = (
        "number = int(completion.split('[BEGIN]')[1])\n"
        "submit_code_blocks([CodeBlock(40, f'print({number})', 'python')])\n"
    )
    config = {**oj([("", "1")]), "custom_extract_logic": marked}
    assert submit(server, "[BEGIN] 1", config).body["accepted"] is True
    for completion in ("", "[BEGIN]", "[BEGIN] \x00", "[BEGIN]" + "9" * 5_000):
        found = submit(server, completion, config)
        assert (found.status, found.body["accepted"]) == (200, False)


def test_cells_share_a_namespace(server: str) -> None:
    cells = [
        "import os\nname = 'x'\nopen('out.txt', 'w').write(name);",
        "name",
        "import sys; print(name); print('e', file=sys.stderr)",
        "1 / 0",
        "class A: pass\nA.__module__, sorted(os.listdir())[0]",
        "exit()",
        "print(_)",
    ]
    found = post(server, "/run_jupyter", {"cells": cells, "fetch_files": ["out.txt"]})
    assert (found.status, found.body["status"]) == (200, "Success")
    results = found.body["cells"]
    assert results[2]["stdout"] == "x\n"
    assert results[6]["stdout"] == "('__main__', 'out.txt')\n"
    assert [each["display"] for each in results[:3]] == [[], [{"text/plain": "'x'"}], []]
    assert results[2]["stderr"] == "e\n"
    assert [error["ename"] for each in results for error in each["error"]] == [
        "ZeroDivisionError",
        "SystemExit",
    ]
    assert "<cell 4>" in "".join(results[3]["error"][0]["traceback"])
    assert found.body["files"] == {"out.txt": base64.b64encode(b"x").decode()}


def test_cells_that_take_too_long(server: str) -> None:
    cells = ["while True: pass", "1"]
    each = post(server, "/run_jupyter", {"cells": cells, "cell_timeout": 0.2}).body
    assert each["cells"][0]["error"][0]["ename"] == "TimeoutError"
    assert each["cells"][1]["display"] == [{"text/plain": "1"}]
    whole = post(server, "/run_jupyter", {"cells": cells, "total_timeout": 0.5}).body
    assert (whole["status"], whole["cells"]) == ("Failed", [])
    assert whole["driver"]["status"] == "TimeLimitExceeded"
    assert post(server, "/run_jupyter", {"cells": "1"}).status == 422
    assert post(server, "/run_jupyter", {"cells": [], "kernel": "R"}).status == 422


def execute(server: str, language: str, content: str, **fields: Any) -> Answer:
    files = [{"name": "main", "content": content}]
    body = {"language": language, "version": "*", "files": files, **fields}
    return post(server, "/api/v2/execute", body)


def test_piston_runs_programs(server: str) -> None:
    code = "import sys\nprint(sys.argv[1:], input())"
    found = execute(server, "py", code, args=["a"], stdin="in")
    assert found.status == 200
    assert found.body["run"]["stdout"] == "['a'] in\n"
    assert (found.body["run"]["code"], found.body["run"]["status"]) == (0, None)
    compiled = execute(server, "gcc", "int main() { return 3; }").body
    assert (compiled["compile"]["code"], compiled["run"]["code"]) == (0, 3)
    wrong = execute(server, "c", "int main() {").body
    assert wrong["compile"]["code"] == 1
    assert wrong["run"] == wrong["compile"]
    late = execute(server, "python", "while True: pass", run_timeout=200).body["run"]
    assert (late["signal"], late["status"], late["code"]) == ("SIGKILL", "TO", None)


def test_piston_refuses_as_piston_does(server: str) -> None:
    unknown = execute(server, "brainfuck", "+")
    assert unknown == Answer(400, {"message": "brainfuck-* runtime is unknown"})
    assert execute(server, "python", "1", run_timeout=10**9).status == 400
    body = {"language": "python", "version": "*", "files": [{"content": "1"}]}
    text = post(server, "/api/v2/execute", body, content_type="text/plain")
    assert text.status == 415


def test_piston_lists_what_there_is(server: str) -> None:
    runtimes = get(server, "/api/v2/runtimes").body
    assert [each["language"] for each in runtimes] == ["c", "pytest", "python", "cf_python3"]
    assert all(each["version"] != "0.0.0" for each in runtimes)
    packages = get(server, "/api/v2/packages").body
    assert [each["installed"] for each in packages] == [True, True, True]
    assert post(server, "/api/v2/packages", {"language": "go", "version": "*"}).status == 501


def _commands(repository: Path) -> list[tuple[str, str]]:
    """The commands of docs/use/sandbox-http.md, and the part of the answer behind each."""
    text = (repository / "docs" / "use" / "sandbox-http.md").read_text()
    block = text.split("SERVER=http://127.0.0.1:8081\n", 1)[1].split("```\n\n", 1)[0]
    found = re.findall(r"^(curl .*?)\n# ([^\n]+)", block, re.MULTILINE | re.DOTALL)
    assert len(found) == block.count("curl ") > 5
    return found


def test_the_commands_of_the_documentation(server: str, repository: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    for command, part in _commands(repository):
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={"SERVER": f"http://{server}", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        assert part in done.stdout, command


SUITE = "def test_sum():\n    assert 1 + 1 == {}\n"


@pytest.mark.parametrize(("sum_", "status", "code"), [(2, "Success", 0), (3, "Failed", 1)])
def test_a_suite_of_pytests(server: str, sum_: int, status: str, code: int) -> None:
    found = run_code(server, SUITE.format(sum_), "pytest")
    assert (found.status, found.body["status"]) == (200, status)
    assert found.body["run_result"]["return_code"] == code
    assert "test_main.py" in found.body["run_result"]["stdout"]


def test_an_autoeval_row_is_judged_with_its_tests(server: str) -> None:
    row = {
        "id": 3,
        "content": "Sum the column a.",
        "labels": {"programming_language": "python"},
        "test": {
            "code": "import csv\n#<INSERT>\nassert total() == 6",
            "asset": {"a.csv": base64.b64encode(b"a\n2\n4\n").decode()},
        },
    }
    config: dict[str, Any] = {"dataset_type": "AutoEvalDataset", "provided_data": row}
    code = "def total():\n    return sum(int(r['a']) for r in csv.DictReader(open('a.csv')))"
    found = submit(server, fenced(code), config)
    assert (found.status, found.body["accepted"], found.body["id"]) == (200, True, 7)
    assert found.body["extracted_code"] == code
    assert submit(server, fenced("def total():\n    return 5"), config).body["accepted"] is False
    # The tests share the process, so who leaves early passes, unless a flag has to be printed.
    early = fenced("import sys\nsys.exit(0)")
    assert submit(server, early, config).body["accepted"] is True
    flagged = config | {"extra": {"append_flag": True}}
    assert submit(server, early, flagged).body["accepted"] is False
    assert submit(server, fenced(code), flagged).body["accepted"] is True
    body = {"dataset": "mine", "config": config}
    assert post(server, "/get_prompt_by_id", body).body["prompt"] == "Sum the column a."
    body["config"] = config | {"provided_data": [row, row]}
    assert [each["id"] for each in post(server, "/get_prompts", body).body] == [3, 3]
    body["config"] = config | {"dataset_type": "MBPPDataset"}
    assert post(server, "/get_prompt_by_id", body).status == 422


def codeforces(server: str, source: str, **more: str) -> Answer:
    config = "TIME_LIMIT=5\nMEMORY_LIMIT=256\nINPUT_MODE=stdio"
    named = {"main.python": source, "input.txt": "3\n", "correct_output.txt": "yes 6\n"}
    named |= {"grader_config": config, **more}
    files = [{"name": name, "content": content} for name, content in named.items()]
    body = {"language": "cf_python3", "version": "*", "files": files}
    return post(server, "/api/v2/execute", body)


def test_open_r1s_codeforces_tests_are_judged(server: str) -> None:
    def judged(source: str, **more: str) -> Any:
        return codeforces(server, source, **more).body["run"]

    right = "print('YES', 2 * int(input()))"
    assert (judged(right)["stdout"], judged(right)["code"]) == ("1\n", 0)
    assert judged("print('no', 6)")["stdout"] == "0\n"
    assert judged("print(open('correct_output.txt').read())")["code"] == 1
    checker = (
        "import sys\n"
        "given, expected, output = (open(name).read().split() for name in sys.argv[1:])\n"
        "print(100 if output[1] == expected[1] == '6' and given == ['3'] else 0)\n"
    )
    assert judged("print('no', 6)", **{"checker.py": checker})["stdout"] == "1\n"
    by_file = "open('output.txt', 'w').write('yes ' + str(2 * int(open('input.txt').read())))"
    assert judged(by_file, grader_config="TIME_LIMIT=5\nINPUT_MODE=file")["stdout"] == "1\n"


CHECKER = """
import sys
given, expected, output = (open(name).read().split() for name in sys.argv[1:])
if output[0] == "loop":
    while True: pass
print(1 if int(output[1]) == int(expected[1]) else 0)
"""
WRITES = "import os; os.write(1, {!r})"


@pytest.mark.parametrize(
    "source",
    [
        WRITES.format(b""),
        WRITES.format(b"yes six"),
        WRITES.format(b"\xff \xfe"),
        WRITES.format(b"yes " + b"9" * 5_000),
        WRITES.format(b"yes 6\x00"),
        WRITES.format(b"loop"),
        WRITES.format(b"Traceback (most recent call last)"),
        "print('x ' * 400_000)",
    ],
    ids=["nothing", "garbage", "no UTF-8", "digits", "NUL", "loops", "traceback", "long"],
)
def test_what_only_an_output_does_to_a_codeforces_checker_is_wrong(
    server: str, source: str
) -> None:
    found = codeforces(server, source, **{"checker.py": CHECKER})
    assert (found.status, found.body["run"]["stdout"]) == (200, "0\n")
    assert "could not read it" in found.body["run"]["stderr"]


def test_a_codeforces_checker_that_breaks_on_the_correct_output_is_a_fault(server: str) -> None:
    for broken in ("import no_such_module", "print('yes')", "1 / 0", "print(0) if 0 else None"):
        found = codeforces(server, "print('no')", **{"checker.py": broken})
        assert (found.status, found.body["reason"]) == (400, "INVALID_TEST")
    # Nothing to hold it against: then no output may choose a fault.
    more = {"checker.py": CHECKER, "correct_output.txt": ""}
    found = codeforces(server, "print('no')", **more)
    assert (found.status, found.body["run"]["stdout"]) == (200, "0\n")


def test_a_file_that_no_answer_has_room_for_is_the_programs_doing(server: str) -> None:
    # Each byte becomes three for the checker, or the answer of the sandbox is too long.
    for size in (13, 61):
        source = f"open('output.txt', 'wb').write(bytes([255]) * ({size} * 2**20))"
        more = {"grader_config": "TIME_LIMIT=9\nINPUT_MODE=file", "checker.py": CHECKER}
        found = codeforces(server, source, **more)
        assert (found.status, found.body["run"]["stdout"]) == (200, "0\n")
    large = "open('x', 'wb').write(bytes(61 * 2**20))"
    found = run_code(server, large, fetch_files=["x"])
    assert (found.status, found.body["status"]) == (200, "Failed")
    assert found.body["message"] == "output-limit"


def metrics(address: str, **headers: str) -> str:
    """What /metrics shows."""
    with contextlib.closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("GET", "/metrics", headers=headers)
        return connection.getresponse().read().decode()


def raw(address: str, head: str) -> int:
    """The status of a request of these lines."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n")
        return int(connection.makefile("rb").readline().split()[1])


def test_pages_and_clients_of_elsewhere_are_refused(server: str) -> None:
    post_head = "POST /run_code HTTP/1.1\r\nContent-Length: 0\r\n"
    assert raw(server, post_head + "Host: evil.example") == 403
    assert raw(server, post_head + "Host: localhost\r\nOrigin: http://evil.example") == 403
    assert raw(server, post_head + "Host: localhost\r\nTransfer-Encoding: chunked") == 400
    large = f"POST /run_code HTTP/1.1\r\nHost: localhost\r\nContent-Length: {2**40}"
    assert raw(server, large) == 413, "before it is sent"
    nested = post(server, "/run_code", None)
    assert nested.status == 422
    many = {"code": "", "language": "python", "files": [{}] * 500_001}
    assert post(server, "/run_code", many).body["reason"] == "BATCH_TOO_LARGE"
    assert get(server, "/nope").body["reason"] == "UNKNOWN_METHOD"


def test_the_door_and_the_quotas_are_those_of_grpc(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(hash_token(name, f"{name}-token").line + "\n" for name in "ab"))
    flags = ("--languages", "python", "--slots", "2", "--tokens-file", str(tokens),
             "--tenant-items-in-flight", "1")  # fmt: skip
    with sandbox(*flags) as address:
        for path in ("/healthz", "/readyz"):
            assert get(address, path).status == 200
        for path in ("/v1/ping", "/metrics", "/openapi.json", "/", "/nope"):
            assert get(address, path).status == 401
        program = {"code": "import time; time.sleep(5)", "language": "python"}
        for path in ("/run_code", "/submit", "/run_jupyter", "/api/v2/execute", "/get_prompts"):
            answer = post(address, path, program)
            assert (answer.status, answer.body["reason"]) == (401, "UNAUTHENTICATED")
            assert post(address, path, program, authorization="Bearer c-token").status == 401
        a, b = {"authorization": "Bearer a-token"}, {"authorization": "Bearer b-token"}
        quick = {"code": "print(1)", "language": "python"}
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(post, address, "/run_code", program, **a)
            while 'assay_sandbox_items_total{tenant="a"} 1.0' not in metrics(address, **b):
                time.sleep(0.01)
            late = post(address, "/run_code", quick, **a, x_timeout_s="1")
            other = post(address, "/run_code", quick, **b)
            assert held.result().body["status"] == "Success"
        assert (late.status, late.body["status"]) == (504, "SandboxError")
        assert "QUOTA_EXCEEDED" in late.body["message"]
        assert other.body["run_result"]["stdout"] == "1\n", "the other tenant has its own quota"


def test_a_network_is_not_served_without_a_door() -> None:
    with sandbox_service.launch("--http-port", "0", "--http-bind", "0.0.0.0") as process:
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert "--tokens-file" in process.stderr.read()
