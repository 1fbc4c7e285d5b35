"""deploy/images.env names every image that is not ours, and digests come from a registry or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts import pin_images
from scripts.pin_images import UnknownDigestError, pinned, read_images

ONE, TWO = (f"sha256:{digit * 64}" for digit in "1a")
FILE = "# a comment\nASSAY_A_IMAGE=python:3.11\n\nASSAY_B_IMAGE=x/y.z:v1\n"
_DOCKER = """#!/bin/sh
echo "$@" >> {log}
[ "$4" = gone:1 ] && {{ echo "gone:1: not found" >&2; exit 1; }}
[ "$4" = odd:1 ] && {{ echo "not a digest"; exit 0; }}
echo {digest}
"""


def test_every_image_that_is_used_is_named_with_its_tag(repository: Path) -> None:
    named = read_images((repository / "deploy" / "images.env").read_text())
    tags = {variable: image for variable, (image, _) in named.items()}
    defaults: dict[str, str] = {}
    for file in sorted(repository.glob("compose*.yaml")):
        text = file.read_text()
        defaults |= dict(re.findall(r"\$\{(ASSAY_\w+_IMAGE):-([^}]+)\}", text))
        for image in re.findall(r"^\s+image: (\S+)$", text, re.MULTILINE):
            assert image.startswith(("${ASSAY_", "assay-")), f"{file.name} names {image}"
    assert tags == defaults
    base = tags["ASSAY_PYTHON_IMAGE"]
    for file in sorted(repository.glob("*/Dockerfile")):
        lines = file.read_text().splitlines()
        assert f"ARG PYTHON_IMAGE={base}" in lines
        roots = {line.split()[1] for line in lines if line.startswith("FROM ")}
        assert roots == {"${PYTHON_IMAGE}"}, file
    for name in ("scripts/test_docker.sh", "tests/compose_support.py"):
        written = re.findall(r"\bpython:\d[\w.-]*", (repository / name).read_text())
        assert set(written) == {base}, name


def test_digests_are_written_behind_tags_and_in_the_place_of_old_ones() -> None:
    digests = {"python:3.11": ONE, "x/y.z:v1": TWO}
    once = pinned(FILE, digests.__getitem__)
    assert once == FILE.replace("3.11\n", f"3.11@{ONE}\n").replace("v1\n", f"v1@{TWO}\n")
    assert read_images(once)["ASSAY_B_IMAGE"] == ("x/y.z:v1", TWO)
    assert pinned(once, digests.__getitem__) == once
    assert pinned(once, lambda _: TWO).count(TWO) == 2


@pytest.mark.parametrize(
    "line", ["python:3.11", "ASSAY_A_IMAGE=", "ASSAY_A_IMAGE=a:1@sha256:12", "ASSAY_A_IMAGE=a b"]
)
def test_a_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not VARIABLE=IMAGE"):
        read_images(line)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a `docker` was asked that answers without a registry."""
    log, docker = tmp_path / "log", tmp_path / "docker"
    docker.write_text(_DOCKER.format(log=log, digest=ONE))
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return log


def test_docker_is_asked_for_each_tag(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pin_images, "IMAGES", tmp_path / "images.env")
    pin_images.IMAGES.write_text(FILE)
    assert pin_images.main() == 0
    assert pin_images.IMAGES.read_text().count(f"@{ONE}\n") == 2
    asks = "buildx imagetools inspect {} --format {{{{.Manifest.Digest}}}}"
    expected = [asks.format("python:3.11"), asks.format("x/y.z:v1")]
    assert asked.read_text().splitlines() == expected


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(("image", "said"), [("gone:1", "not found"), ("odd:1", "not a digest")])
def test_where_one_cannot_be_had_nothing_is_written(
    image: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f"{FILE}ASSAY_C_IMAGE={image}\n"
    monkeypatch.setattr(pin_images, "IMAGES", tmp_path / "images.env")
    pin_images.IMAGES.write_text(text)
    assert pin_images.main() == 1
    assert pin_images.IMAGES.read_text() == text
    assert said in capsys.readouterr().err


def test_a_docker_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnknownDigestError, match="docker"):
        pin_images.ask_docker("python:3.11")
