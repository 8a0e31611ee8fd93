"""The REPL with a real process: variables stay, tools are functions, and however code ends, the call ends well."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import Decision, OnProgress, ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.extension.repl.constants import MAX_OUTPUT_CHARS
from support.calls import SAFE, Said, Surroundings, Words, tool
from support.repl_scene import Bench, repl, until


def lines(*each: str) -> str:
    return "\n".join(each)


STUBBORN = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(60)"


async def alone(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
    await asyncio.Event().wait()
    raise AssertionError("it never ends by itself")


async def gone(pid: int) -> None:
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def pid_of(at: Bench) -> int:
    return int((await at.text("import os; os.getpid()")).removeprefix("=> "))


# --- code ---


async def test_variables_imports_and_functions_stay(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("import math\nx = 20\ndef twice(n): return 2 * n")
        assert await at.text("twice(x) + math.floor(2.5)") == "=> 42"
        assert await at.text("_ + 1") == "=> 43"
        assert await at.text("x = 1") == "(no output)"


async def test_await_works_at_the_top_and_in_what_was_defined_before(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("import asyncio\nasync def later(n):\n  await asyncio.sleep(0)\n  return n")
        assert await at.text("await asyncio.gather(later(1), later(2))") == "=> [1, 2]"
        assert await at.text("later(3)") == "=> 3"
        assert await at.text("for n in range(2):\n  print(await later(n))") == "0\n1"
        assert await at.text("async with asyncio.timeout(5):\n  y = await later(7)\ny") == "=> 7"


async def test_an_error_shows_the_agents_own_lines_alone(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("def deep(n):\n  return 1 / n")
        result = await at.run("import json\ndeep(0)")
        assert result.is_error
        error = result.data.error or ""
        assert re.findall(r'File "(.*?)", line (\d+)', error) == [("<repl 2>", "2"), ("<repl 1>", "2")]
        assert "return 1 / n" in error
        assert error.endswith("ZeroDivisionError: division by zero\n")
        code = "try:\n  json.loads('{')\nexcept ValueError as e:\n  raise KeyError('k') from e"
        error = (await at.run(code)).data.error
        assert "direct cause" in (error or "")
        assert "/json/" not in (error or "")
        assert "SyntaxError" in await at.text("def f(:")
        assert await at.text("deep(1)") == "=> 1.0"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('b')", "BaseException: b"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
        ("x = bytearray(10 ** 11)", "MemoryError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class A:\n  def __repr__(self): raise ValueError('no')\nA()", "ValueError: no"),
        ("class E(Exception):\n  def __str__(self): 1 / 0\nraise E", "E: <exception str() failed>"),
        ("raise ExceptionGroup('several', [ValueError(1), TypeError(2)])", "ExceptionGroup: several"),
        ("input()", "EOFError"),
        ("await nothing", "NameError"),
        ("Read(1, 2, 3, 4, 5, 6)", "TypeError: Read takes"),
        ("await Read('a', file_path='b')", "TypeError: Read was given file_path twice"),
        ("await Bash(float('nan'))", "ValueError"),
        ("await Bash('\\ud800')", "UnicodeEncodeError"),
        ("await Bash(object())", "TypeError"),
    ],
)
async def test_whatever_code_raises_is_an_error_result_and_the_variables_stay(
    tmp_path: Path, code: str, shown: str
) -> None:
    async with repl(tmp_path) as at:
        await at.run("kept = 1")
        result = await at.run(code)
        assert result.is_error
        assert shown in (result.data.error or ""), result.data
        assert not result.data.gone
        assert await at.text("kept") == "=> 1"


async def test_what_the_code_and_its_children_print_comes_in_order_and_harmless(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        last = "print('\\x1b[31mthree\\x1b[0m\\x07', file=sys.stderr)"
        code = lines("import os, sys", "print('one')", "os.system('echo two')", last)
        result = await at.run(code)
        assert result.data.output == "one\ntwo\nthree␇\n"
        assert "".join(at.shown) == result.data.output
        assert await at.text("'a\\x1b]0;title\\x07b\\n<c>'") == "=> ab\n<c>"
        assert await at.text("print('\\ud800'); '\\ud800\\n'") == "?\n=> ?\n"


async def test_a_long_value_and_a_long_output_are_cut_in_the_middle(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        result = await at.run("print('a' + 'x' * 100_000 + 'z')\n'v' * 100_000")
        assert len(result.data.output) < 31_000
        assert result.data.output.startswith("ax")
        assert result.data.output.endswith("xz\n")
        assert "characters of output left out" in result.data.output
        assert len(result.data.value or "") < 31_000


async def test_the_process_has_the_given_environment_and_the_standard_library_alone(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        os.environ["RETINUE_TEST_SECRET"] = "s"
        try:
            code = "import os, sys\nprint(sorted(os.environ), sys.flags.isolated, sys.flags.no_site, os.getcwd())"
            shown = await at.text(code)
        finally:
            del os.environ["RETINUE_TEST_SECRET"]
        assert "SECRET" not in shown
        assert shown.endswith(f"1 1 {at.work}")
        assert "ModuleNotFoundError" in await at.text("import pydantic")
        assert "ModuleNotFoundError" in await at.text("import retinue")
        assert await at.text("import os; [os.path.realpath(f'/proc/self/fd/{n}') for n in (0,)]") == "=> ['/dev/null']"


# --- calls of tools ---


async def test_tools_are_functions_whose_calls_have_ids_of_their_own(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("await Write(file_path='a.txt', content='one\\ntwo\\n')")
        shown = await at.text("print(await Read('a.txt'))\nBash.sync('wc -l <a.txt').strip()")
        assert shown == "1\tone\n2\ttwo\n=> '2'"
        assert at.names() == ["c1.1", "c2.1", "c2.2"]
        assert [result.name for result in at.ended] == ["Write", "Read", "Bash"]
        assert (at.work / "a.txt").read_text() == "one\ntwo\n"


async def test_code_that_reads_a_file_twice_gets_it_twice(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        (at.work / "a.txt").write_text("text\n")
        assert await at.text("a = await Read('a.txt')\nb = await Read('a.txt')\na == b == '1\\ttext'") == "=> True"
        assert all(not seen.shown for _, seen in at.ctx.files)


async def test_the_error_of_a_tool_is_an_exception_that_code_can_handle(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        code = "try:\n  await Read('none')\nexcept ToolError as e:\n  print(e.tool, str(e)[:19])"
        assert await at.text(code) == "Read File does not exist"
        result = await at.run("await Read('none')")
        assert result.is_error
        assert "ToolError: File does not exist" in (result.data.error or "")
        assert [result.is_error for result in at.ended] == [True, True]


async def test_each_call_is_checked_leased_and_recorded_like_the_models_own(tmp_path: Path) -> None:
    around = Surroundings(fds=())
    async with repl(tmp_path, around=around) as at:
        await at.run("await Bash('touch a')")
        assert around.log == ["permission", "lease exclusive", "journal", "released"]
        around.decision = Decision("deny", "not this one")
        assert "ToolError: not this one" in await at.text("await Bash('false')")
        assert at.ended[-1].denied
        assert not at.ended[-1].ran


async def test_code_cannot_call_what_it_was_not_given_nor_the_repl_itself(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        assert "NameError" in await at.text("await REPL(code='1')")
        assert "ToolError" in await at.text("await type(Read)(Read._calls, 'REPL', ['code'], '')('1')")
        assert at.ended[-1].error_class == "NoSuchTool"
        assert at.ctx.code is not None
        assert at.ctx.code.pool.find("REPL") is None


async def test_calls_that_only_read_run_side_by_side_and_others_alone(tmp_path: Path) -> None:
    running: list[str] = []
    most = {"Look": 0, "Note": 0}

    def counted(name: str) -> object:
        async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
            running.append(name)
            most[name] = max(most[name], len(running))
            await asyncio.sleep(0.05)
            running.remove(name)
            return ToolResult(Said(text=args.text))

        return act

    tools = (tool("Look", counted("Look"), SAFE), tool("Note", counted("Note")))  # type: ignore[arg-type]
    async with repl(tmp_path, tools=tools) as at:
        calls = "*(Look(str(n)) for n in range(4)), *(Note(str(n)) for n in range(2))"
        code = f"import asyncio\nawait asyncio.gather({calls})"
        assert await at.text(code) == "=> ['0', '1', '2', '3', '0', '1']"
        assert most == {"Look": 4, "Note": 1}


async def test_a_changed_directory_counts_for_later_calls_of_code_and_of_the_model(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        (at.work / "sub").mkdir()
        assert await at.text("await Bash('cd sub')\n(await Bash('pwd')).strip()") == f"=> '{at.work / 'sub'}'"
        assert at.ctx.cwd == at.work / "sub"


async def test_one_call_too_many_is_refused_and_none_is_carried_out(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Look", None, SAFE),), most=3) as at:
        loop = ("  while True:", "    await Look(str(n)); n += 1")
        code = lines("n = 0", "try:", *loop, "except ToolError as e:", "  print(n, str(e)[:26])")
        assert await at.text(code) == "3 This was one call too many"
        assert len(at.ended) == 3
        assert await at.text("await Look('again')") == "=> 'again'"


async def test_calls_beyond_the_limit_do_not_stop_the_clock(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Look", None, SAFE),), most=0) as at:
        spam = ("async def spam():", "  while True:", "    try: await Look('x')", "    except ToolError: pass")
        code = lines("import asyncio", *spam, "await asyncio.gather(*(spam() for _ in range(5)))")
        result = await at.run(code, timeout=300)
        assert result.data.stopped == "it did not end within 0.3 s"


async def test_a_call_that_code_gives_up_on_is_called_off(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Wait", alone),)) as at:
        code = "import asyncio\ntry:\n  await asyncio.wait_for(Wait('x'), 0.1)\nexcept TimeoutError:\n  print('late')"
        assert await at.text(code) == "late"
        assert ["outcome unknown" in result.content for result in at.ended] == [True]


async def test_a_call_that_is_given_up_before_its_turn_holds_up_nobody(tmp_path: Path) -> None:
    async def slow(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await asyncio.sleep(0.3)
        return ToolResult(Said(text=args.text))

    async with repl(tmp_path, tools=(tool("Slow", slow),)) as at:
        give_up = ("try:", "  await asyncio.wait_for(Slow('b'), 0.1)", "except TimeoutError: pass")
        begin = "first = asyncio.ensure_future(Slow('a'))"
        code = lines("import asyncio", begin, "await asyncio.sleep(0.05)", *give_up, "await first, await Slow('c')")
        assert await at.text(code) == "=> ('a', 'c')"
        assert at.names() == ["c1.1", "c1.3"]


async def test_what_had_begun_when_it_was_called_off_has_an_end_all_the_same(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        code = "import asyncio\nleft = asyncio.ensure_future(Bash('touch begun; sleep 100'))\nawait asyncio.sleep(0.5)"
        await at.run(code)
        (end,) = at.ended
        assert (end.call_id, end.is_error, end.ran) == ("c1.1", True, True)
        assert "outcome unknown" in end.content


async def test_what_is_no_name_in_python_can_be_given_all_the_same(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        (at.work / "a.txt").write_text("One\n")
        assert await at.text("await Grep('one', **{'-i': True})") == "=> 'a.txt'"
        assert "Write" in await at.text("print(Write, Write.__doc__[:5000])")


async def test_calls_in_flight_end_with_the_run_that_made_them(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Wait", alone), tool("Look", None, SAFE))) as at:
        code = "import asyncio\nleft = asyncio.ensure_future(Wait('x'))\nawait asyncio.sleep(0.05)\n'done'"
        assert await at.text(code) == "=> 'done'"
        code = "try:\n  await left\nexcept ToolError as e:\n  print(e)"
        assert await at.text(code) == "The call was called off."


async def test_threads_of_the_code_may_call_tools_while_a_run_goes_on(tmp_path: Path) -> None:
    async with repl(tmp_path, tools=(tool("Look", None, SAFE),)) as at:
        code = (
            "import threading\nfound = []\n"
            "def work(n): found.append(Look.sync(str(n)))\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]\n"
            "for t in threads: t.start()\nfor t in threads: t.join()\nsorted(found)"
        )
        assert await at.text(code) == "=> ['0', '1', '2', '3', '4']"


# --- ends ---


async def test_code_that_does_not_end_is_interrupted_and_keeps_its_variables(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        await at.run("x = 1")
        for code in ("while True: pass", "import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)"):
            result = await at.run(code, timeout=200)
            assert result.is_error
            assert result.data.stopped == "it did not end within 0.2 s"
            assert not result.data.gone
        assert await at.text("x") == "=> 1"


async def test_code_may_tidy_up_when_it_is_interrupted(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        code = "import asyncio\ntry:\n  await asyncio.sleep(60)\nfinally:\n  print('tidy')"
        result = await at.run(code, timeout=200)
        assert result.data.output == "tidy\n"
        assert not result.data.gone


async def test_code_that_will_not_stop_is_ended_and_its_end_is_told_once(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        at.session.grace_s = 0.6
        pid = await pid_of(at)
        result = await at.run(f"import time\n{STUBBORN}", timeout=200)
        assert result.is_error
        assert result.data.gone.startswith("the code did not stop")
        await gone(pid)
        result = await at.run("1")
        assert (result.data.value, result.data.lost, result.data.gone) == ("1", "", "")
        assert "NameError" in await at.text("time")


async def test_the_time_of_tools_is_not_the_codes(tmp_path: Path) -> None:
    async def slow(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await asyncio.sleep(0.5)
        return ToolResult(Said(text="slow"))

    async with repl(tmp_path, tools=(tool("Slow", slow),)) as at:
        result = await at.run("await Slow()", timeout=300)
        assert result.data.value == "'slow'"


async def test_a_call_that_is_called_off_stops_the_code_and_its_calls(tmp_path: Path) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def wait(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        raise AssertionError

    async with repl(tmp_path, tools=(tool("Wait", wait),)) as at:
        pid = await pid_of(at)
        running = asyncio.create_task(at.run("x = 5\nawait Wait()"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert over.is_set()
        assert await at.text("x, os.getpid()") == f"=> (5, {pid})"


async def test_after_stubborn_code_was_called_off_the_next_call_says_that_variables_are_gone(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        at.session.grace_s = 0.6
        pid = await pid_of(at)
        running = asyncio.create_task(at.run(f"import time\nprint('on')\n{STUBBORN}"))
        await until(lambda: "on" in "".join(at.shown))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await gone(pid)
        assert (await at.text("1")).startswith("[The call before this one was called off, and its code did not stop.")
        assert await at.text("1") == "=> 1"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os\nos._exit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
        ("import ctypes\nctypes.string_at(0)", "signal 11"),
    ],
)
async def test_the_end_of_the_process_is_told_and_never_run_again(tmp_path: Path, code: str, why: str) -> None:
    async with repl(tmp_path) as at:
        result = await at.run(f"open('ran', 'a').write('x')\nprint('before', flush=True)\n{code}")
        assert result.is_error
        assert why in result.data.gone
        assert "All variables are gone" in await at.text(code)
        assert (at.work / "ran").read_text() == "x"
        assert await at.text("2") == "=> 2"


async def test_a_process_that_died_between_two_calls_is_told_of_with_the_next(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        end = ("def end():", "  time.sleep(0.2)", "  os._exit(7)")
        await at.run(lines("import os, threading, time", *end, "threading.Thread(target=end).start()"))
        await until(lambda: not at.session.is_alive)
        shown = await at.text("5")
        assert "Between the calls the Python process ended (exit code 7)" in shown
        assert shown.endswith("=> 5")


async def test_a_forked_copy_neither_speaks_for_the_process_nor_outlives_it(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        fork = ("pid = os.fork()", "if pid == 0:", "  x = 2", "else:", "  os.waitpid(pid, 0)")
        assert await at.text(lines("import os", "x = 1", *fork, "x")) == "=> 1"
        code = "import time\npid = os.fork()\nif pid == 0:\n  os.setsid()\n  time.sleep(600)\nprint(pid)"
        pid = int(await at.text(code))
        assert Path(f"/proc/{pid}").exists()
        await at.lasting.close()
        await gone(pid)


async def test_output_without_end_is_stopped(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        result = await at.run("while True: print('x' * 10_000)", timeout=60_000)
        assert f"more than {MAX_OUTPUT_CHARS:,} characters" in result.data.stopped
        assert len(result.data.output) < 31_000
        result = await at.run("import os\nos.system('yes')", timeout=60_000)
        assert f"more than {MAX_OUTPUT_CHARS:,} characters" in result.data.stopped


async def test_a_reset_starts_anew(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        pid = await pid_of(at)
        await at.run("x = 1")
        assert "NameError" in await at.text("x", reset=True)
        await gone(pid)
        pid = await pid_of(at)
        assert "Variables of earlier calls are gone" in await at.text("", reset=True)
        await gone(pid)
        assert at.lasting.alive() == ()


async def test_it_is_alive_from_its_first_call_until_the_agent_ends(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        assert at.lasting.alive() == ()
        pid = await pid_of(at)
        assert at.lasting.alive() == ("REPL",)
        await at.lasting.close()
        assert at.lasting.alive() == ()
        await gone(pid)
        assert list((tmp_path / "scratch").iterdir()) == []
        assert not list((tmp_path / "results").glob("repl-*"))


async def test_in_another_workspace_it_starts_anew(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        pid = await pid_of(at)
        other = tmp_path / "other"
        other.mkdir()
        at.ctx = replace(at.ctx, root=other, cwd=other)
        result = await at.run("import os; os.getcwd()")
        assert result.data.value == repr(str(other))
        assert result.data.lost.startswith("the workspace is another one now")
        await gone(pid)


async def test_a_python_that_cannot_start_says_so(tmp_path: Path) -> None:
    async with repl(tmp_path, env={"PATH": "/usr/bin", "TMPDIR": "/proc/nowhere"}) as at:
        with pytest.raises(ToolError, match="No folder for the pipes"):
            await at.run("1")


async def test_a_killed_keeper_takes_the_process_with_it_and_is_told_of(tmp_path: Path) -> None:
    async with repl(tmp_path) as at:
        pid = await pid_of(at)
        keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert b"keeper" in Path(f"/proc/{keeper}/cmdline").read_bytes()
        os.kill(keeper, signal.SIGKILL)
        await gone(pid)
        assert "the Python process ended" in await at.text("1")
        assert await at.text("2") == "=> 2"


async def test_the_process_does_not_outlive_a_killed_agent(tmp_path: Path) -> None:
    program = lines(
        "import asyncio, pathlib, sys",
        "from support.repl_scene import repl",
        "async def main():",
        "  async with repl(pathlib.Path(sys.argv[1])) as at:",
        "    print(await at.text('import os; os.getpid()'), flush=True)",
        "    await asyncio.Event().wait()",
        "asyncio.run(main())",
    )
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(tmp_path)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert agent.stdout is not None
    pid = int((await agent.stdout.readline()).decode().removeprefix("=> "))
    assert Path(f"/proc/{pid}").exists()
    agent.kill()
    await agent.communicate()
    await gone(pid)
