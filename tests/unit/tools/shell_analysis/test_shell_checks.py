"""The named checks: for each, texts that it must flag and texts that it must let pass."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis.checks import SUBSTITUTIONS, ZSH_DANGEROUS, Check, run_checks
from retinue.tools.shell.analysis.model import Reason
from retinue.tools.shell.analysis.reading import read

TABLE: dict[Check, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Check.INCOMPLETE_COMMANDS: (
        ("ls &&", "ls |", "ls ||", "&& ls", "| ls", "; ls", "-rf x", "ls \\", ") ls", "ls >"),
        ("ls", "ls;", "ls &", "ls '&&'", 'ls "|"', "ls # x", "> x ls", "./-x", "ls \\| x"),
    ),
    Check.JQ_SYSTEM_FUNCTION: (
        ("jq 'system(\"x\")' a", "jq -n 'system (1)'", "cat a | jq 'x|system(1)'", "/usr/bin/jq 'system(1)' a"),
        ("jq '.system' a", "jq '.file_system' a", "grep 'system(' a", "echo jq"),
    ),
    Check.JQ_FILE_ARGUMENTS: (
        (
            "jq -f p a",
            "jq -rf p a",
            "jq --from-file p a",
            "jq --slurpfile x y . a",
            "jq --rawfile x y . a",
            "jq -L m . a",
            "jq 'env.X' a",
            "jq '$ENV.X' a",
            "jq 'import \"x\" as x; .' a",
            "jq '\"\\(1)\" + env.X' a",
            "jq -n '1 # \"\n| env # \"'",
            "jq '\"\\\\\" + env.X' a",
        ),
        ("jq . a", "jq '.env' a", "jq '\"env\"' a", "jq --arg a b '.x' a", "jq -r '.f' a", "grep -f x a"),
    ),
    Check.OBFUSCATED_FLAGS: (
        ("ls $'-l'", "ls '-l'", 'ls "-l"', "find . -'delete'", "ls \\-l", "rm ''-rf x"),
        (
            "ls -l",
            "ls '->'",
            "rg --glob='*.py' x",
            "cut -d',' a",
            "git log --format='%h'",
            "git log -S'x'",
            "echo '---'",
            "ls 'a-b'",
        ),
    ),
    Check.SHELL_METACHARACTERS: (
        ("ls & x", "ls |& x", "ls &", "ls >| x", "ls <> x", "ls &> x", "ls &>> x", "case a in a) ls;; esac"),
        ("ls && x", "ls || x", "ls | x", "ls; x", "ls '&'", 'ls "a & b"', "ls 2>&1", "ls &>/dev/null", "ls a\\&b"),
    ),
    Check.DANGEROUS_VARIABLES: (
        ("ls > $X", "ls | $X", "cat < $X", "$X | ls", "echo $X > y", 'ls > "$X"', "ls > ${X}"),
        ("ls $X", "echo '> $X'", "ls | grep x", "echo $X; ls"),
    ),
    Check.NEWLINES: (
        ("ls\nrm x", "ls\n\nls", "cat <<E\nx\nE"),
        ("ls", "ls\n", "\nls", "ls '\n' x", 'ls "a\nb"', "ls  \n  "),
    ),
    Check.COMMAND_SUBSTITUTION: (
        (
            "ls $(x)",
            'ls "$(x)"',
            "ls `x`",
            'ls "`x`"',
            "ls ${x}",
            'ls "${x}"',
            "ls $[1]",
            "ls <(x)",
            "ls >(x)",
            "ls =(x)",
            "=ls",
            "ls =x",
            "ls ~[x]",
            "ls *(e:x:)",
            "ls *(+x)",
            "{ ls } always { x }",
            "ls <# x",
        ),
        (
            "ls '$(x)'",
            "ls '`x`'",
            "ls \\$\\(x\\)",
            "ls '${x}'",
            'rg "<(x)"',
            "rg '=(' x",
            "ls a=b",
            "echo \\`x\\`",
            "ls $",
        ),
    ),
    Check.INPUT_REDIRECTION: (
        ("cat < a", "cat <a", "cat <<< a", "cat <<E\nE", "cat 0<a"),
        ("cat '<'", 'cat "<a"', "cat \\<a", "ls"),
    ),
    Check.OUTPUT_REDIRECTION: (
        ("ls > a", "ls >> a", "ls >a", "ls 2>a", "ls >/dev/nullx", "ls >/dev/null>a", "ls >&a", "ls > /dev/sda"),
        (
            "ls >/dev/null",
            "ls 2>/dev/null",
            "ls > /dev/null 2>&1",
            "ls 2>&1 | x",
            "ls '>a'",
            "ls \\>a",
            "ls &>/dev/null",
        ),
    ),
    Check.IFS_INJECTION: (
        ("ls$IFS-l", "ls${IFS}-l", "IFS=x ls", "ls ${IFS:0:1}", 'ls "$IFS"', "x; IFS=y", "ls $IFS"),
        ("ls IFS", "rg 'IFS='", "rg '$IFS'", "grep GIFS=1 a"),
    ),
    Check.GIT_COMMIT_SUBSTITUTION: (
        ('git commit -m "$(x)"', 'git commit -m "`x`"', 'git commit -m "${x}"', "git -C a commit -m $(x)"),
        ("git commit -m '$(x)'", "git commit -m x", "git log $(x)", 'git commit -m "\\$5"'),
    ),
    Check.PROC_ENVIRON_ACCESS: (
        (
            "cat /proc/self/environ",
            "cat /proc/1/environ",
            "cat '/proc/'self/environ",
            "cat /proc/*/x",
            "cat < /proc/1/environ",
        ),
        ("cat environ", "rg environ src", "cat /proc/cpuinfo", "ls proc/environ"),
    ),
    Check.MALFORMED_TOKEN_INJECTION: (
        ("ls 'a", 'ls "a', "echo it's", "echo 'a' 'b", 'echo "a\\"'),
        ("ls 'a'", 'ls "a"', "echo it\\'s", "ls # it's", 'echo "it\'s"', "echo 'say \"x'"),
    ),
    Check.BACKSLASH_ESCAPED_WHITESPACE: (
        ("ls a\\ b", "ls a\\\tb", "\\ ls", "cat a\\ b\\ c"),
        ("ls 'a\\ b'", 'ls "a\\ b"', "ls a\\b", "ls a\\\\ b"),
    ),
    Check.BRACE_EXPANSION: (
        ("ls {a,b}", "ls x{1..3}", "ls a{b,{c,d}}", "{ls,x}", "cat a.{txt,md}"),
        ("ls '{a,b}'", 'rg "x{2,3}"', "git show HEAD@{1}", "echo {}", "ls {a}", "ls \\{a,b\\}"),
    ),
    Check.CONTROL_CHARACTERS: (
        (
            "ls \x00",
            "ls \x07",
            "ls\rrm x",
            "ls \x1b[0m",
            "ls \x0b#;x",
            "ls 'a\x01b'",
            "ls \u200b",
            "ls \u202e",
            "ls \x7f",
        ),
        ("ls", "ls\t-l", "ls\npwd", "ls é", "echo '\\x1b'"),
    ),
    Check.UNICODE_WHITESPACE: (
        ("ls\u00a0-l", "ls\u3000x", "ls\u2003x", "echo 'a\u2028b'"),
        ("ls é", "ls 説明", "echo '✓'", "ls a b"),
    ),
    Check.MID_WORD_HASH: (
        ("echo 'a'#;x", 'echo "a"#b', "echo \\a#b", "ls \\ #;x", "echo ${x}#y"),
        ("ls a#b", "ls # x", "echo '#'", 'echo "a # b"', "git log --grep='#1'", "ls"),
    ),
    Check.ZSH_DANGEROUS_COMMANDS: (
        (*(f"{name} x" for name in sorted(ZSH_DANGEROUS)), "ls; zmodload x", "command zmodload x", "z'mod'load x"),
        ("echo zmodload", "rg zmodload", "ls zf_rm", "ls emulate"),
    ),
    Check.BACKSLASH_ESCAPED_OPERATORS: (
        ("find . -exec x {} \\;", "echo a \\| b", "echo \\& x", "echo \\> x", "echo \\< x"),
        ("echo 'a \\; b'", 'rg "a\\|b"', "find . \\( -name x \\)", "echo \\\\; ls", "ls"),
    ),
    Check.COMMENT_QUOTE_DESYNC: (
        ("ls # it's", "# don't\nls", 'ls # "x', "ls # `x`", "ls; # 'a'"),
        ("ls # x", "echo '# it'", 'echo "# x"', "ls a#b", "git log --grep='fix #1'", "echo 'it' '#'"),
    ),
    Check.QUOTED_NEWLINE: (
        ("echo 'a\n# b'", 'echo "a\n#b"', "echo 'a\n  # b\nc'"),
        ("echo 'a\nb'", "echo 'a # b'", "ls\n# x", 'echo "a\nb # c"'),
    ),
}
"""For each check: must flag, must pass."""


def hits(command: str) -> list[Reason]:
    return run_checks(command, read(command).parts)


def numbers(command: str) -> set[int]:
    return {hit.check for hit in hits(command)}


def test_every_check_has_a_table_and_a_number_of_its_own() -> None:
    assert set(TABLE) == set(Check)
    assert [check.value for check in Check] == list(range(1, 24))


@pytest.mark.parametrize(("check", "command"), [(check, text) for check, (flags, _) in TABLE.items() for text in flags])
def test_a_check_flags_what_it_is_for(check: Check, command: str) -> None:
    assert check in numbers(command)


@pytest.mark.parametrize(
    ("check", "command"), [(check, text) for check, (_, passes) in TABLE.items() for text in passes]
)
def test_a_check_lets_pass_what_only_looks_like_it(check: Check, command: str) -> None:
    assert check not in numbers(command)


def test_there_are_twelve_substitutions_and_eighteen_commands_of_zsh() -> None:
    assert len(SUBSTITUTIONS) == 12
    assert len(ZSH_DANGEROUS) == 18


@pytest.mark.parametrize(
    "text", ["<(x)", ">(x)", "=(x)", "=cmd", "$(x)", "${x}", "$[x]", "~[x]", "(e:x)", "(+x)", "} always {", "<#"]
)
def test_a_substitution_in_single_quotes_raises_nothing(text: str) -> None:
    assert Check.COMMAND_SUBSTITUTION in numbers(f"echo {text}")
    assert hits(f"echo '{text}'") == []


def test_hits_come_in_the_order_of_their_numbers() -> None:
    found = [hit.check for hit in hits("ls $(x) > $IFS\\ y # it's\nz")]
    assert found == sorted(found)
    assert len(found) > 4
