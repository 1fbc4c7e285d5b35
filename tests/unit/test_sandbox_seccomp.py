"""The seccomp filter, run by a small interpreter of classic BPF and held against its tables."""

from __future__ import annotations

import errno
import re
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.zygote import calls, seccomp
from assay.sandbox.zygote.seccomp import ALLOW, KILL, SyscallPolicy

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386 = 0x40000003
ENOSYS = seccomp.error(errno.ENOSYS)
EPERM = seccomp.error(errno.EPERM)


def decide(code: bytes, audit: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do: runs the filter over a `struct seccomp_data`."""
    filled = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=iIQ6Q", number, audit, 0, *filled)
    program = list(struct.iter_unpack("=HBBI", code))
    accumulator, at = 0, 0
    for _ in range(len(program)):
        kind, if_true, if_false, value = program[at]
        at += 1
        if kind == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif kind == 0x05:
            at += value
        elif kind == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[kind]
            at += if_true if holds else if_false
    raise AssertionError("the filter does not end")


def named(architecture: str, number_of: str) -> int:
    return seccomp.numbers(architecture)[number_of]


@pytest.fixture(params=["x86_64", "aarch64"])
def architecture(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    ("table", "action"),
    [
        (calls.COMMON, ALLOW),
        (calls.SOCKETS, ALLOW),
        (calls.WATCHES, ALLOW),
        (calls.IGNORED, seccomp.error(0)),
        (calls.REFUSED, EPERM),
        (calls.FORBIDDEN, KILL),
    ],
)
def test_every_call_of_a_table_meets_its_action(table: str, action: int, architecture: str) -> None:
    code = seccomp.build(SyscallPolicy(), architecture)
    column = 0 if architecture == "x86_64" else 1
    for name, number in calls.parse(table, column):
        assert decide(code, AUDIT[architecture], number) == action, name


@given(number=st.integers(0, 2**32 - 1), argument=st.integers(0, 2**32 - 1))
def test_what_no_table_names_is_unknown(number: int, argument: int) -> None:
    known = set(seccomp.numbers("x86_64").values())
    outcome = decide(
        seccomp.build(SyscallPolicy(), "x86_64"),
        AUDIT["x86_64"],
        struct.unpack("=i", struct.pack("=I", number))[0],
        (argument,),
    )
    if number >= 0x40000000:
        assert outcome == KILL  # the x32 entry point
    elif number not in known:
        assert outcome == ENOSYS


POLICIES = st.builds(
    SyscallPolicy, sockets=st.booleans(), fork=st.booleans(), own_user=st.booleans()
)


@given(
    policy=POLICIES,
    architecture=st.sampled_from(sorted(AUDIT)),
    audit=st.sampled_from([*AUDIT.values(), I386]),
    number=st.integers(0, 460) | st.integers(0, 2**32 - 1),
    arguments=st.tuples(*[st.integers(0, 2**16) | st.sampled_from([17, 0x3D0F00, 1 << 29])] * 2),
)
def test_both_halves_together_answer_as_the_one_filter(
    policy: SyscallPolicy, architecture: str, audit: int, number: int, arguments: tuple[int, ...]
) -> None:
    """The kernel takes the stricter of two answers; KILL is the strictest, then an error."""
    number = struct.unpack("=i", struct.pack("=I", number))[0]
    whole = decide(seccomp.build(policy, architecture), audit, number, arguments)
    halves = [
        decide(half, audit, number, arguments) for half in seccomp.halve(policy, architecture)
    ]
    strictness = {KILL: 2, ALLOW: 0}
    assert max(halves, key=lambda answer: strictness.get(answer, 1)) == whole
    refused = {answer for answer in halves if strictness.get(answer, 1) == 1}
    assert len(refused) <= 1  # of two errors the kernel would take the last filter's


def test_the_part_that_each_run_installs_is_short() -> None:
    halves = seccomp.halve(SyscallPolicy(), "x86_64")
    assert len(halves.own) * 6 < len(halves.inherited)


def test_another_entry_point_of_the_kernel_is_the_end(architecture: str) -> None:
    code = seccomp.build(SyscallPolicy(), architecture)
    assert decide(code, I386, 1) == KILL
    other = "aarch64" if architecture == "x86_64" else "x86_64"
    assert decide(code, AUDIT[other], named(architecture, "read")) == KILL


@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000])
def test_a_process_may_start_but_no_namespace(flag: int, architecture: str) -> None:
    code, clone = seccomp.build(SyscallPolicy(), architecture), named(architecture, "clone")
    assert decide(code, AUDIT[architecture], clone, (17,)) == ALLOW
    assert decide(code, AUDIT[architecture], clone, (17 | flag,)) == EPERM


def test_without_fork_there_are_threads_only(architecture: str) -> None:
    code = seccomp.build(SyscallPolicy(fork=False), architecture)
    clone = named(architecture, "clone")
    assert (
        decide(code, AUDIT[architecture], clone, (0x3D0F00,)) == ALLOW
    )  # as pthread_create calls it
    assert decide(code, AUDIT[architecture], clone, (17,)) == EPERM


@pytest.mark.parametrize(
    ("family", "allowed"), [(1, True), (2, True), (10, True), (16, False), (40, False)]
)
def test_sockets_of_harmless_families_only(family: int, allowed: bool, architecture: str) -> None:
    audit, number = AUDIT[architecture], named(architecture, "socket")
    outcome = decide(seccomp.build(SyscallPolicy(), architecture), audit, number, (family, 1))
    assert outcome == (ALLOW if allowed else seccomp.error(errno.EAFNOSUPPORT))
    without = seccomp.build(SyscallPolicy(sockets=False), architecture)
    assert decide(without, audit, number, (family, 1)) == seccomp.error(errno.EACCES)


@given(pid=st.integers(1, 2**31 - 1))
def test_limits_and_scheduling_of_oneself_only(pid: int) -> None:
    code = seccomp.build(SyscallPolicy(), "x86_64")
    for name in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam"):
        number = named("x86_64", name)
        assert decide(code, AUDIT["x86_64"], number, (0,)) == ALLOW
        assert decide(code, AUDIT["x86_64"], number, (pid,)) == EPERM


def test_no_table_for_an_unknown_machine() -> None:
    with pytest.raises(seccomp.UnsupportedArchitecture, match="known: x86_64, aarch64"):
        seccomp.build(SyscallPolicy(), "pdp11")


def test_no_call_stands_in_two_tables() -> None:
    tables = [
        *(calls.COMMON, calls.SOCKETS, calls.WATCHES, calls.IGNORED),
        *(calls.REFUSED, calls.FORBIDDEN, calls.CHECKED),
    ]
    names = [name for table in tables for name, _ in calls.parse(table, 0)]
    assert len(names) == len(set(names))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler to read the kernel's headers")
def test_the_numbers_are_the_kernel_headers() -> None:
    command = ["gcc", "-E", "-dM", "-include", "asm/unistd.h", "-x", "c", "/dev/null"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"#define __NR_(\w+) (\d+)$", text, re.MULTILINE)
    real = {name: int(n) for name, n in found}
    if "arch_prctl" not in real:
        pytest.skip("the headers are not those of x86_64")
    ours = seccomp.numbers("x86_64")
    newest = max(real.values())
    assert {n: v for n, v in ours.items() if v <= newest} == {
        n: real[n] for n, v in ours.items() if v <= newest
    }
