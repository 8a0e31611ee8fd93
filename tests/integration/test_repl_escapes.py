"""Code that speaks the protocol itself: it gets no more than a call of a tool, and nonsense ends its process."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.base import Decision
from support.calls import SAFE, Surroundings, tool
from support.repl_scene import repl

SPEAK = """
import gc, json, os, time
link = next(o for o in gc.get_objects() if type(o).__name__ == "Link")
def say(**message):
    body = json.dumps(message).encode()
    os.write(link.outgoing, len(body).to_bytes(4, "big") + body)
"""


@pytest.mark.parametrize(
    "code",
    [
        "os.write(link.outgoing, b'\\xff' * 100)",
        "os.write(link.outgoing, bytes(4))",
        "os.write(link.outgoing, (10).to_bytes(4, 'big') + b'[[[[[[[[[[')",
        "os.write(link.outgoing, (5_000_000).to_bytes(4, 'big'))",
        "link.send({'kind': 'out', 'text': 'x' * 5_000_000})",
        "body = b'[' * 100_000; os.write(link.outgoing, len(body).to_bytes(4, 'big') + body)",
        "say(kind='ready')",
        "say(kind='approve', id=1)",
        "say(kind='call', id=1, name='Look', input={}, approved=True)",
        "say(kind='call', id='1', name='Look', input={})",
        "say(kind='call', id=1, name='Look', input=[])",
        "say(kind='answer', id=1, text='yes', error=False)",
        "say(kind='done', id=99, value=None, error=None)",
    ],
)
async def test_what_is_no_message_ends_the_process_and_nothing_is_called(tmp_path: Path, code: str) -> None:
    async with repl(tmp_path, tools=(tool("Look", None, SAFE),)) as at:
        result = await at.run(f"{SPEAK}\n{code}\ntime.sleep(30)")
        assert result.is_error
        assert "Python process" in result.data.gone
        assert at.ended == []
        assert await at.text("1") == "=> 1"


async def test_a_forged_call_is_decided_like_any_other(tmp_path: Path) -> None:
    around = Surroundings(fds=(), decision=Decision("deny", "no"))
    async with repl(tmp_path, around=around, tools=(tool("Look", None, SAFE),)) as at:
        code = "say(kind='call', id=7, name='Look', input={'text': 'forged'})\ntime.sleep(0.2)"
        await at.run(f"{SPEAK}\n{code}")
        assert [(result.call_id, result.denied, result.ran) for result in at.ended] == [("c1.1", True, False)]


async def test_two_calls_with_one_number_end_the_process(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        slow = "say(kind='call', id=7, name='Bash', input={'command': 'sleep 5'})"
        result = await at.run(f"{SPEAK}\n{slow}\n{slow}\ntime.sleep(30)")
        assert "one number for two calls" in result.data.gone
        assert len(at.ended) < 2


async def test_a_forged_end_ends_nothing_but_what_the_agent_hears(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Look", None, SAFE),)) as at:
        code = "say(kind='done', id=1, value='forged', error=None)\ntime.sleep(0.5)\nLook.sync('late')"
        result = await at.run(f"{SPEAK}\n{code}")
        assert result.data.value == "forged"
        assert at.ended == []
        result = await at.run("'second'")  # the true end of the first run comes, and is taken for nonsense
        assert "a run that there is none of" in result.data.gone
        assert await at.text("3") == "=> 3"


@pytest.mark.parametrize(
    "code", ["os.close(link.outgoing)", "os.close(link.incoming); os.close(link.outgoing)", "os.close(link.incoming)"]
)
async def test_closed_pipes_cost_the_process_at_the_latest_when_time_is_up(tmp_path: Path, code: str) -> None:
    async with repl(tmp_path) as at:
        at.session.grace_s = 0.3
        await at.run(f"{SPEAK}\n{code}\nx = 1", timeout=300)
        await at.run("x", timeout=300)
        assert await at.text("4") == "=> 4"


async def test_a_process_that_reads_nothing_does_not_hold_up_the_agent(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        at.session.grace_s = 0.3
        (at.work / "big.txt").write_text("x" * 200_000)
        stop_reading = "link.receive = lambda: time.sleep(100)"
        calls = "for n in range(150): say(kind='call', id=n + 100, name='Read', input={'file_path': 'big.txt'})"
        result = await at.run(f"{SPEAK}\n{stop_reading}\n{calls}\ntime.sleep(30)", timeout=3_000)
        assert result.is_error
        assert await at.text("5") == "=> 5"


async def test_the_pipes_have_no_name_once_both_sides_have_them(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("1")
        assert [path for path in (tmp_path / "scratch").rglob("*")] == []


async def test_memory_without_end_is_refused(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        fill = "  while True: held.append(bytes(2 ** 28))"
        code = f"held = []\ntry:\n{fill}\nexcept MemoryError:\n  held.clear()\n  print('no')"
        assert await at.text(code) == "no"
        assert "17" in await at.text("import resource\nresource.getrlimit(resource.RLIMIT_AS)[0] // 2 ** 28 + 1")
