from __future__ import annotations

import json
from urllib.parse import quote

from pydantic import JsonValue

from retinue.orchestrator.state.redact import MARK, Redactor

KEY = "sk-test-0123456789"


def test_a_secret_is_replaced_wherever_it_stands() -> None:
    body: dict[str, JsonValue] = {
        "text": f"the key is {KEY}.",
        "nested": [{"deep": [KEY, 1, None, True, 2.5]}],
        KEY: "as a key",
    }
    assert Redactor([KEY]).body(body) == {
        "text": f"the key is {MARK}.",
        "nested": [{"deep": [MARK, 1, None, True, 2.5]}],
        MARK: "as a key",
    }


def test_without_secrets_the_body_itself_comes_back() -> None:
    body: dict[str, JsonValue] = {"text": KEY}
    assert Redactor([]).body(body) is body
    assert Redactor(["", "short"]).body(body) is body


def test_a_value_of_six_characters_is_a_secret_and_one_of_five_is_not() -> None:
    assert Redactor(["abcde", "uvwxyz"]).text("abcde uvwxyz") == f"abcde {MARK}"


def test_overlapping_secrets_leave_nothing_of_either() -> None:
    assert Redactor(["abcdefgh", "fghijklm", "cdefgh"]).text("-abcdefghijklm-") == f"-{MARK}-"


def test_adjacent_secrets_are_both_replaced() -> None:
    assert Redactor([KEY]).text(KEY + KEY) == MARK + MARK


def test_a_secret_that_is_part_of_the_mark_does_not_damage_it() -> None:
    assert Redactor(["redacted", KEY]).text(f"{KEY} redacted") == f"{MARK} {MARK}"


def test_a_secret_is_found_inside_json_and_urls() -> None:
    secret = 'pass"wörd\\/&1'
    redactor = Redactor([secret])
    assert redactor.text(json.dumps({"p": secret})) == json.dumps({"p": MARK})
    assert redactor.text(json.dumps({"p": secret}, ensure_ascii=False)) == json.dumps({"p": MARK})
    assert redactor.text("https://x/?p=" + quote(secret, safe="")) == f"https://x/?p={MARK}"


def test_a_secret_of_several_lines_is_found_with_line_numbers_in_front() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "qhkiG9w0BAQEFAASCBKcwggS", "-----END KEY-----"]
    shown = "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, 1))
    assert Redactor(["\n".join(lines) + "\n"]).text(shown) == "\n".join(f"{n:6}→{MARK}" for n in range(1, 5))


def test_a_secret_read_from_a_file_is_found_without_its_last_newline() -> None:
    assert Redactor([KEY + "\n"]).text(f"<{KEY}>") == f"<{MARK}>"


def test_lone_surrogates_in_secrets_and_texts_do_no_harm() -> None:
    assert Redactor(["abc\udcffdef", "\ud800" * 6]).text("abc\udcffdef \ud800") == f"{MARK} \ud800"
