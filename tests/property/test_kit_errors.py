"""Laws of the error model: what a status says survives the way to an exception and back."""

from __future__ import annotations

import pickle

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.kit.errors import (
    AssayError,
    CallError,
    call_error,
    code_of,
    error_info,
    make_status,
    reason_of,
    refuse,
    retry_after_s,
    status_code,
    wire_status,
)
from assay.kit.reasons import LEXICON, Reason

REASONS = st.sampled_from([str(reason) for reason in Reason]) | st.from_regex(
    r"[A-Z][A-Z0-9_]{0,30}", fullmatch=True
)
FAILURES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
CODES = st.none() | st.sampled_from(FAILURES)
RETRIES = st.none() | st.floats(min_value=0, max_value=1e6)
METADATA = st.dictionaries(st.text(max_size=20), st.text(max_size=50), max_size=5)
ANY_TEXT = st.text(st.characters(), max_size=3000)


@given(reason=REASONS, message=st.text(max_size=999), code=CODES, retry=RETRIES, metadata=METADATA)
def test_status_survives_the_exception(
    reason: str,
    message: str,
    code: grpc.StatusCode | None,
    retry: float | None,
    metadata: dict[str, str],
) -> None:
    status = make_status(reason, message, code=code, retry_after_s=retry, metadata=metadata)
    error = call_error(status)
    again = make_status(
        error.reason,
        str(error),
        code=error.code,
        retry_after_s=error.retry_after_s,
        metadata=error.metadata,
    )
    assert again == status
    assert error.reason == reason_of(again) == reason
    assert error.code is status_code(again) is (code or code_of(reason))
    assert error.metadata == metadata
    assert str(error) == message
    assert (retry is None) == (error.retry_after_s is None)
    assert error.retry_after_s == pytest.approx(retry, abs=1e-9)


@given(reason=REASONS, message=st.text(max_size=999), code=CODES, retry=RETRIES, metadata=METADATA)
def test_call_errors_survive_pickling(
    reason: str,
    message: str,
    code: grpc.StatusCode | None,
    retry: float | None,
    metadata: dict[str, str],
) -> None:
    error = call_error(
        make_status(reason, message, code=code, retry_after_s=retry, metadata=metadata)
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@given(reason=ANY_TEXT, message=ANY_TEXT, metadata=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3))
def test_any_text_makes_a_status(reason: str, message: str, metadata: dict[str, str]) -> None:
    status = make_status(reason, message, metadata=metadata)
    assert len(status.message) <= 1000
    assert error_info(status).domain == "assay"
    assert type(status).FromString(status.SerializeToString()) == status


@given(message=ANY_TEXT, metadata=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=5), retry=RETRIES)
def test_what_travels_as_metadata_fits_into_8_kib(
    message: str, metadata: dict[str, str], retry: float | None
) -> None:
    error = refuse(Reason.QUEUE_FULL, message, retry_after_s=retry)
    error.metadata = metadata
    status = wire_status(error)
    percent_encoded = 3 * len(status.message.encode())
    base64 = status.ByteSize() * 4 / 3
    assert percent_encoded + base64 < 8 * 1024 - 256
    assert reason_of(status) == Reason.QUEUE_FULL
    assert status_code(status) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert retry_after_s(status) == error.retry_after_s


@given(seconds=st.floats(allow_nan=False))
def test_a_wait_is_never_negative_or_endless(seconds: float) -> None:
    wait_s = retry_after_s(make_status(Reason.QUEUE_FULL, "full", retry_after_s=seconds))
    assert wait_s is not None
    assert 0 <= wait_s <= 1e9


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_in_the_lexicon_with_a_failure_code(reason: Reason) -> None:
    info = LEXICON[reason]
    assert reason.name == reason.value
    assert info.code is not grpc.StatusCode.OK
    for sentence in (info.meaning, info.remedy):
        assert sentence.endswith(".")
        assert "|" not in sentence
    assert code_of(reason) is code_of(reason.value) is info.code
    error = refuse(reason, "message", fact="value")
    assert isinstance(error, CallError)
    assert isinstance(error, AssayError)
    assert (error.reason, error.code, error.metadata) == (
        reason.value,
        info.code,
        {"fact": "value"},
    )


def test_the_lexicon_holds_nothing_else() -> None:
    assert set(LEXICON) == set(Reason)
