"""From a model's name to its port, with errors that name the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from retinue.agents.model.anthropic_client import AnthropicModel, retry_after_s
from retinue.agents.model.breaks import reason_of_status, reason_of_type, type_of_status
from retinue.agents.model.port import RETRYABLE
from retinue.agents.model.replay import RecordedAnswer, ReplayModel
from retinue.agents.model.router import ModelSettings, open_model, parse_ref
from retinue.agents.model.scripted import ScriptedModel
from retinue.tools.errors import EnvironmentProblem, SpecError


class Nothing:
    def answers(self, agent: str) -> Sequence[RecordedAnswer]:
        return ()


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("", "write PROVIDER:NAME"),
        ("claude-sonnet-5", "write PROVIDER:NAME, as in `anthropic:claude-sonnet-5`"),
        ("antropic:x", "did you mean anthropic? known are anthropic:…, script:…, replay:…"),
        ("openai:x", "known are anthropic:…, script:…, replay:…"),
        ("script:", "known are"),
    ],
)
def test_a_name_that_is_none_says_what_one_looks_like(ref: str, said: str):
    with pytest.raises(SpecError) as caught:
        parse_ref(ref)
    assert said in str(caught.value)


def test_a_name_may_hold_colons():
    assert parse_ref("script:a:b.yaml") == ("script", "a:b.yaml")


def test_a_scripts_relative_path_starts_from_the_given_folder(tmp_path: Path):
    (tmp_path / "s.yaml").write_text("agents: {a: [{say: x}]}")
    assert isinstance(open_model("script:s.yaml", ModelSettings(), folder=tmp_path), ScriptedModel)
    with pytest.raises(SpecError, match="no such script"):
        open_model("script:t.yaml", ModelSettings(), folder=tmp_path)


def test_the_messages_api_needs_a_key_unless_the_server_is_ones_own():
    with pytest.raises(EnvironmentProblem, match="ANTHROPIC_API_KEY"):
        open_model("anthropic:m", ModelSettings())
    for settings in (
        ModelSettings(api_key=SecretStr("k")),
        ModelSettings(auth_token=SecretStr("t")),
        ModelSettings(base_url="http://127.0.0.1:1"),
    ):
        assert isinstance(open_model("anthropic:m", settings), AnthropicModel)


def test_a_recording_is_found_by_its_run_or_cannot_be_opened():
    asked: list[str] = []

    def find(run: str) -> Nothing:
        asked.append(run)
        return Nothing()

    assert isinstance(open_model("replay:r-1", ModelSettings(), recording=find), ReplayModel)
    assert asked == ["r-1"]
    with pytest.raises(SpecError, match="cannot be opened"):
        open_model("replay:r-1", ModelSettings())


def test_a_key_is_not_shown_by_the_settings():
    assert "hush" not in repr(ModelSettings(api_key=SecretStr("hush")))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 70.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_what_a_server_wishes_is_read_as_milliseconds_seconds_or_a_date(headers: dict[str, str], seconds: float | None):
    assert retry_after_s(headers, now=30.0) == seconds


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "invalid_request"),
        (401, "authentication"),
        (402, "authentication"),
        (403, "authentication"),
        (404, "not_found"),
        (408, "dropped"),
        (409, "server_error"),
        (413, "invalid_request"),
        (422, "invalid_request"),
        (429, "rate_limited"),
        (500, "server_error"),
        (503, "server_error"),
        (529, "overloaded"),
    ],
)
def test_every_status_has_its_way_of_breaking(status: int, reason: str):
    assert reason_of_status(status) == reason


def test_only_what_may_go_away_by_itself_is_worth_another_try():
    again = {
        status for status in (400, 401, 403, 404, 413, 429, 500, 503, 529) if reason_of_status(status) in RETRYABLE
    }
    assert again == {429, 500, 503, 529}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 529])
def test_the_type_that_goes_with_a_status_means_the_same(status: int):
    assert reason_of_type(type_of_status(status)) == reason_of_status(status)


def test_an_unknown_type_has_no_meaning():
    assert reason_of_type("brand_new_error") is None
    assert reason_of_type(None) is None
