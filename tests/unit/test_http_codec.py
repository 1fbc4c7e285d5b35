"""The short road of reward.proto's JSON answers every text as the long one does."""

from __future__ import annotations

import json
import math

import pytest
from google.protobuf import json_format
from hypothesis import example, given
from hypothesis import strategies as st

from assay.api.reward.v1 import reward_pb2
from assay.kit.errors import CallError
from assay.kit.http import codec as kit_codec
from assay.kit.limits import MAX_BATCH_ITEMS
from assay.reward_server.http import codec

ITEM = b'{"items":[{"id":"a","verifier":"exact","response":"42","reference":{"text":"42"}}]}'
ODD = [
    b'{"items":[{"id":"a","id":"b"}]}',
    b'{"items":[{"id":1,"id":"b"}]}',
    b'{"items":[{"id":"a","id":1}]}',
    b'{"items":[{"id":"a","id":null}]}',
    b'{"items":[{"id":"a"}],"items":[]}',
    b'{"items":[{"id":"a"}],"items":[{"id":"b","id":"c"}]}',
    b'{"items":[{"reference":{"text":"a"},"reference":{"text":"b"}}]}',
    b'{"items":[{"reference":{"text":"a"},"reference":{"data":{}}}]}',
    b'{"items":[{"reference":{"text":"a","text":"b"}}]}',
    b'{"items":[{"reference":{"text":"a","anchor_response":"b"}}]}',
    b'{"items":[{"response":"a","turns":{}}]}',
    b'{"items":[{"response":"a","response":"b"}]}',
    b'{"items":[{"group_id":"a","groupId":"b"}]}',
    b'{"\\u0069tems":[{"\\u0069d":"a"}]}',
    b'{"items":[{"i\\u0064":"a","id":"b"}]}',
    b'{"items":[{"id\\u0000":"a"}]}',
    b'{"items":[{"id":"\\u0000","response":"a\\u0001b"}]}',
    b'{"items":[{"id":"a\x00b"}]}',
    b'{"items":[{"id":"a\x01b"}]}',
    b'{"items":[{"id":"a\x1fb"}]}',
    b'{"items":[{"id":"a\x7fb"}]}',
    b'{"items":[{"id":"a\nb\tc"}]}',
    b'{"items":[{"id":"\xff"}]}',
    b'{"items":[{"id":"\xc0\x80"}]}',
    b'{"items":[{"id":"\xed\xa0\x80"}]}',
    b'{"items":[{"id":"\xed\xa0\xbd\xed\xb8\x80"}]}',
    b'{"items":[{"id":"\xf4\x90\x80\x80"}]}',
    b'{"items":[{"\xff":"a"}]}',
    b'{"items":[{"id":"\\ud800"}]}',
    b'{"items":[{"id":"\\udc00\\ud800"}]}',
    b'{"items":[{"id":"\\ud800\\u0041"}]}',
    b'{"items":[{"id":"\\ud83d\\ude00"}]}',
    b'{"items":[{"id":"\\uD83D\\uDE00"}]}',
    b'{"items":[{"id":"\\ud8"}]}',
    b'{"items":[{"id":"\\x41"}]}',
    b'{"items":[{"id":"\\u004g"}]}',
    b'{"items":[{"id":"\\/\\b\\f"}]}',
    b'{"items":[{"prompt":[{"role":"user","content":"a"}]}]}',
    b'{"items":[{"prompt":[{"role":"user","content":[]}]}]}',
    b'{"items":[{"prompt":[{"role":"user"},{"content":null}]}]}',
    b'{"items":[{"prompt":[null]}]}',
    b'{"items":[{"prompt":null,"reference":null,"response":null}]}',
    b'{"items":[{"prompt":{}}]}',
    b'{"items":[{"prompt":"a"}]}',
    b'{"items":[{"prompt":[{"role":"a","role":"b","name":"c"}]}]}',
    b'{"items":[{"truncated":1}]}',
    b'{"items":[{"response_token_count":"7","timeout":"1.5s"}]}',
    b'{"items":[{"response_token_count":7.0}]}',
    b'{"items":[{"timeout":{"seconds":1}}]}',
    b'{"items":[{"id":NaN}]}',
    b'{"items":[{"id":Infinity}]}',
    b'{"items":[{"response_token_count":1e999}]}',
    b'{"items":[{"response_token_count":' + b"9" * 5_000 + b"}]}",
    b'{"items":[{"response_token_count":-0}]}',
    b'{"items":{}}',
    b'{"items":null}',
    b'{"items":[null]}',
    b'{"items":[[]]}',
    b'{"items":[{}],"more":1}',
    b"[]",
    b"null",
    b'"items"',
    b"",
    b"{}",
    b"\xef\xbb\xbf" + ITEM,
    ITEM.decode().encode("utf-16"),
    ITEM.decode().encode("utf-32-le"),
    ITEM + b"\x00",
    ITEM + b" \r\n\t ",
    ITEM + b"\x0b",
    b"\xa0" + ITEM,
    ITEM + ITEM,
    ITEM[:-1],
    ITEM.replace(b'"42"', b"'42'"),
    ITEM.replace(b"]", b",]"),
    ITEM + b"// a comment",
    b"[" * 100_000,
    b'{"items":[{"reference":' * 50_000,
    b'{"items":[{"reference":{"data":' + b'{"list_value":{"values":[' * 5_000,
]


def answered(read: object, body: bytes) -> reward_pb2.BatchScoreRequest | tuple[str, str]:
    try:
        return read(body)  # type: ignore[operator]
    except CallError as error:
        return error.reason, str(error)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_an_odd_text_is_answered_as_the_long_road_answers_it(body: bytes) -> None:
    assert answered(codec.read_batch, body) == answered(codec._read_any, body)


KEYS = (b'"id"', b'"verifier"', b'"response"', b'"reference"', b'"prompt"', b'"group_id"',
        b'"groupId"', b'"i\\u0064"', b'"truncated"', b'"turns"', b'"x"')  # fmt: skip
VALUES = (b'"a"', b'""', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\xc3\xa9"', b'"\xff"', b"null",
          b"1", b"true", b"[]", b"{}", b'{"text":"a"}', b'{"text":"a","text":"b"}',
          b'{"text":null}', b'{"data":{"string_value":"a"}}', b'{"texts":{"values":["a"]}}',
          b'[{"role":"user","content":"a"}]', b'[{"role":1}]', b"NaN", b"1e999")  # fmt: skip
pairs = st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)).map(b":".join)
bodies = st.lists(st.lists(pairs, max_size=5), max_size=3).map(
    lambda items: b'{"items":[' + b",".join(b"{" + b",".join(i) + b"}" for i in items) + b"]}"
)


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A body, and perhaps some bytes of it left out, doubled or replaced."""
    body = draw(bodies | st.just(ITEM))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        end = min(len(body), at + draw(st.integers(0, 3)))
        put = draw(st.binary(max_size=2) | st.sampled_from((b"\\", b'"', b"{", b"}", b",", b" ")))
        body = body[:at] + put + body[end:]
    return body


@given(mangled())
@example(ITEM)
def test_any_text_is_answered_as_the_long_road_answers_it(body: bytes) -> None:
    assert answered(codec.read_batch, body) == answered(codec._read_any, body)


def test_the_hot_shape_takes_the_short_road(monkeypatch: pytest.MonkeyPatch) -> None:
    def long(_: bytes) -> reward_pb2.BatchScoreRequest:
        raise AssertionError

    monkeypatch.setattr(codec, "_read_any", long)
    (item,) = codec.read_batch(ITEM).items
    assert (item.id, item.response, item.reference.text) == ("a", "42", "42")
    item.response = ""
    empty = codec.read_batch(ITEM.replace(b'"response":"42"', b'"response":""'))
    assert empty.items[0] == item, "a text that is empty and there is there"
    assert empty.items[0].WhichOneof("candidate") == "response"
    latex = ITEM.replace(b'"response":"42"', b'"response":"' + b"{" * 1000 + b'"')
    assert codec.read_batch(latex).items[0].response == "{" * 1000


@pytest.mark.slow
@pytest.mark.parametrize("one", [b"{}", b"[]"])
def test_many_parts_are_refused_whatever_road_they_take(one: bytes) -> None:
    many = b",".join([one] * kit_codec.MAX_CONTAINERS)
    for body in (b'{"items":[' + many + b"]}", b'{"x":[' + many + b"]}"):
        with pytest.raises(CallError) as caught:
            codec.read_batch(body)
        assert caught.value.reason == "BATCH_TOO_LARGE"
    text = b'{"items":[{"response":"' + b"{" * (kit_codec.MAX_CONTAINERS + 1) + b'"}]}'
    assert len(codec.read_batch(text).items) == 1, "braces of a text are no parts"
    full = b'{"items":[' + b",".join([b"{}"] * MAX_BATCH_ITEMS) + b"]}"
    assert len(codec.read_batch(full).items) == MAX_BATCH_ITEMS


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e308, -0.0, 5e-324])
def test_a_number_that_json_has_no_place_for_is_written_as_protobuf_does(number: float) -> None:
    for place in ("reward", "score", "weight"):
        result = reward_pb2.Result(id="a")
        part = result.judgement.components.add(name="x", score=1.0, weight=1.0)
        result.judgement.reward = 1.0
        setattr(result.judgement if place == "reward" else part, place, number)
        written = json.loads(codec.write(codec.result_as_dict(result)))
        assert written == json.loads(json.dumps(kit_codec.as_dict(result)))


@given(st.integers(-(2**40), 2**40), st.integers(0, 999_999_999))
@example(1, 500_000_000)
@example(0, 120_000)
@example(0, 0)
def test_a_duration_is_written_as_protobuf_writes_it(seconds: int, nanos: int) -> None:
    duration = reward_pb2.Result().timings.queue
    duration.seconds = max(-(10**11), min(10**11, seconds))
    duration.nanos = nanos if seconds >= 0 else -nanos
    assert codec._duration(duration) == duration.ToJsonString()


@given(st.text())
def test_any_text_of_a_judgement_survives(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    result = reward_pb2.Result(id=text)
    result.judgement.explanation = result.judgement.verdict = text
    result.judgement.suspicions.append(text)
    found = reward_pb2.BatchScoreResponse()
    json_format.Parse(codec.write_results([result, result]), found)
    assert list(found.results) == [result, result]
