"""Shell commands at random: from a grammar around the read-only table, and seeds with odd pieces put in. Seeded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from retinue.tools.shell.analysis.table import Table
from support.shell_fuzz.vocabulary import (
    ASSIGNMENTS,
    BUILTINS,
    FEEDERS,
    FREE_REDIRECTS,
    GIT_MORE,
    GLOBS,
    HARMS,
    INSIDE,
    LEFT_OUT,
    LINKS,
    MOVES,
    NUMBERS,
    OUTSIDE,
    PIECES,
    POOLS,
    QUICK_VERSIONS,
    REVISIONS,
    RISKY,
    RISKY_WORDS,
    SEARCH_PATH,
    SED_CLOSERS,
    SED_OPENERS,
    SED_PIECES,
    SEEDS,
    SPACES,
    TAILS,
    TEXT_WORDS,
    VERSIONS,
    WRAPPERS,
)


class Grammar:
    """Draws commands. The same seed, table and programs of the machine give the same commands."""

    def __init__(self, seed: int, table: Table, more_seeds: Sequence[str] = ()) -> None:
        self.rng = Random(seed)
        self.table = table
        self.seeds = (*SEEDS, *more_seeds)
        slow = {name for name, entry in table.items() if entry.args in VERSIONS} - QUICK_VERSIONS
        top = sorted({name.partition(" ")[0] for name in table} - LEFT_OUT - slow)
        self.programs = [name for name in top if name in BUILTINS or shutil.which(name, path=SEARCH_PATH)]
        self.known = frozenset((*self.programs, "xargs", "noglob"))
        self.subs = {
            name: sorted(key.partition(" ")[2] for key in table if key.startswith(f"{name} ")) for name in self.programs
        }

    def commands(self) -> Iterator[str]:
        """Without end: from the grammar, seeds with odd pieces, and both."""
        while True:
            roll = self.rng.random()
            if roll < 0.55:
                yield self.text()
            elif roll < 0.8:
                yield self.mutant(self.rng.choice(self.seeds))
            else:
                yield self.mutant(self.text())

    def text(self) -> str:
        """A list or pipeline of simple commands; now and then in a frame that no simple command has."""
        rng = self.rng
        parts = [self.fed() if rng.random() < 0.06 else self.simple()]
        while rng.random() < 0.3 and len(parts) < 4:
            parts.extend((rng.choice(LINKS), self.simple()))
        whole = "".join(parts)
        if rng.random() < 0.1:
            folder = rng.choice(
                ("src", "odd", "docs", ".", "./src", "inner", "missing", "odd", "src/deep", *OUTSIDE[:8])
            )
            whole = f"{rng.choice(MOVES)}cd {folder}{rng.choice(LINKS)}{whole}"
        if rng.random() < 0.05:
            frames = ("({})", "{{ {}; }}", "echo $({})", 'echo "$({})"', "`{}`", "if {}; then ls; fi", "cat <({})")
            whole = rng.choice(frames).format(whole.replace("{", "").replace("}", ""))
        return whole + rng.choice(TAILS)

    def mutant(self, text: str) -> str:
        """The text with a few pieces put in, taken out, doubled or moved."""
        rng = self.rng
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            at = rng.randrange(len(text) + 1)
            roll = rng.random()
            if roll < 0.65:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            elif roll < 0.8:
                text = text[:at] + text[at + rng.randrange(1, 4) :]
            elif roll < 0.9:
                end = at + rng.randrange(1, 8)
                text = text[:end] + text[at:end] + text[end:]
            else:
                to = rng.randrange(len(text) + 1)
                text = text[:to] + text[at : at + 5] + text[to:]
        return text

    def simple(self) -> str:
        """One program with flags, arguments, and perhaps assignments, wrappers and redirects around them."""
        rng = self.rng
        words: list[str] = []
        if rng.random() < 0.08:
            words.append(rng.choice(ASSIGNMENTS))
        if rng.random() < 0.1:
            words.append(rng.choice(WRAPPERS))
        words.extend(self.call(rng.choice(self.programs)))
        if rng.random() < 0.12:
            words.insert(rng.randrange(len(words) + 1), rng.choice(FREE_REDIRECTS))
        if rng.random() < 0.03:
            words.insert(rng.randrange(len(words) + 1), rng.choice(RISKY_WORDS))
        if rng.random() < 0.9:
            return " ".join(words)
        return "".join(word + rng.choice(SPACES) for word in words).strip(" ")

    def fed(self) -> str:
        """A program that xargs gives names found in the tree."""
        rng = self.rng
        called = self.call(rng.choice(self.programs))
        return f"{rng.choice(FEEDERS)} | xargs {rng.choice(('-0', '-0', '-0r', '-0 -n1', ''))} {' '.join(called)}"

    def call(self, program: str) -> list[str]:
        """The program and its words, most of them such as the table lists."""
        rng = self.rng
        words = [program]
        entry = self.table.get(program)
        if self.subs[program] and rng.random() < 0.95:
            words.extend(rng.sample(sorted(entry.flags), 1) if entry and entry.flags and rng.random() < 0.1 else [])
            sub = rng.choice(self.subs[program])
            words.append(sub)
            entry = self.table[f"{program} {sub}"]
        if entry is None:
            return [*words, rng.choice(TEXT_WORDS)]
        flags = [word for _ in range(rng.choice((0, 0, 1, 1, 2, 3))) for word in self.flag(entry.flags)]
        if entry.flags and rng.random() < 0.12:
            flags.extend(self.shifted(entry.flags))
        arguments = self.arguments(program, entry.args)
        if rng.random() < 0.15:
            flags, arguments = arguments, flags
        words.extend(flags)
        if rng.random() < 0.04:
            words.append(rng.choice(RISKY if program != "git" else GIT_MORE))
        words.extend(arguments)
        if rng.random() < 0.05:
            at = rng.randrange(1, len(words) + 1)
            words.insert(at, rng.choice(RISKY))
        return [words[0], *(self.quoted(word) for word in words[1:])]

    def shifted(self, flags: Mapping[str, int]) -> list[str]:
        """Flags without the values that the table has for them, or in one word, and one that must not be there."""
        rng = self.rng
        drawn = [f"-{rng.randrange(1, 30)}" if name == "#" else name for name in rng.choices(list(flags), k=2)]
        if rng.random() < 0.3:
            letters = [name[1] for name in drawn if len(name) == 2]
            return [f"-{''.join(letters)}o", rng.choice(INSIDE), "pwned"]
        harm = HARMS[0] if rng.random() < 0.4 else rng.choice(HARMS)
        return [*drawn[: rng.choice((1, 1, 2))], harm]

    def script(self) -> str:
        """For sed, of fields and addresses with brackets in them."""
        rng = self.rng

        def field() -> str:
            return "".join(rng.choices(SED_PIECES, k=rng.choice((1, 2, 3))))

        shapes = (
            "/{0}/p;s,{1},x,",
            "s/{0}/a/;s,{1},x,",
            "s|{0}|{1}|",
            "/{0}/,/{1}/p",
            "y/{0}/{1}/",
            "s,{0},{1},;/{0}/p",
        )
        fields = (rng.choice(SED_OPENERS), rng.choice(SED_CLOSERS)) if rng.random() < 0.5 else (field(), field())
        return f"'{rng.choice(shapes).format(*fields)}'"

    def flag(self, flags: Mapping[str, int]) -> list[str]:
        """One that the table lists, with a value where it takes one."""
        rng = self.rng
        if not flags:
            return []
        name = rng.choice(list(flags))
        kind = flags[name]
        if name == "#":
            return [f"-{rng.randrange(1, 30)}"]
        if kind == 0:
            return [name]
        value = self.value(kind)
        if kind == 2:
            return [rng.choice((name, f"{name}={value}"))]
        if kind == 5:
            return [name, rng.choice(("x", "env", "y z")), self.value(1)]
        if name.startswith("--"):
            return [f"{name}={value}"] if rng.random() < 0.6 else [name, value]
        return [f"{name}{value}"] if rng.random() < 0.4 else [name, value]

    def value(self, kind: int) -> str:
        rng = self.rng
        if kind == 3:
            return self.path()
        if kind == 4:
            return rng.choice(NUMBERS[:5])
        return rng.choice(
            (rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(TEXT_WORDS), self.path(), "never", "full")
        )

    def path(self) -> str:
        roll = self.rng.random()
        return self.rng.choice(INSIDE if roll < 0.78 else GLOBS if roll < 0.92 else OUTSIDE)

    def arguments(self, program: str, kind: str) -> list[str]:
        """What follows the flags, by the rule that the table names for it."""
        rng = self.rng
        some = rng.choice((0, 1, 1, 1, 2, 3))
        if kind == "sed" and rng.random() < 0.4:
            return [self.script(), *(self.path() for _ in range(some or 1))]
        if kind in ("sed", "jq"):
            return [rng.choice(POOLS[kind]), *(self.path() for _ in range(some))]
        if kind == "find":
            return [*(self.path() for _ in range(some % 2)), *(rng.choice(POOLS["find"]) for _ in range(some))]
        if kind == "test":
            return [*(rng.choice(POOLS["test"]) for _ in range(some)), *(["]"] if program == "[" else [])]
        if kind in ("first-text", "rg"):
            return [rng.choice(TEXT_WORDS), *(self.path() for _ in range(some))]
        if kind == "first-revision":
            return [rng.choice(TEXT_WORDS), *(rng.choice(REVISIONS) for _ in range(some))]
        if kind in ("paths", "diff", "cd"):
            return [self.path() for _ in range(some)]
        if kind in ("revisions", "branch", "tag"):
            return [rng.choice(REVISIONS) for _ in range(some % 3)]
        return self._odd_arguments(kind, some)

    def _odd_arguments(self, kind: str, some: int) -> list[str]:
        rng = self.rng
        firsts = {
            "stash": ("list", "show", "drop"),
            "worktree": ("list", "add"),
            "submodule": ("status", "init"),
            "reflog": ("", "show", "expire"),
            "config": ("user.name", "--list", "core.pager ./pwned"),
            "remote": ("", "get-url x", "add y z"),
            "tar": ("tf old.tar", "tzf old.tgz", "xf old.tar", "tvf old.tar --to-command=./pwned", "cf pwned a.txt"),
            "unzip": ("-l old.zip", "old.zip", "-v old.zip", "-p old.zip", "old.zip -v a.txt", "-l old.zip -d x"),
            "ip": ("a", "route show", "link list", "link set lo up", "-br addr"),
            "number": ("0.1", "0"),
            "ps": ("aux", "-e", "eww"),
            "query": ("ls", "git"),
            "date": ("+%F", "+%s", "010100"),
            "version-words": ("version", "--version"),
            "flag": ("--version",),
        }
        if kind in firsts:
            return rng.choice(firsts[kind]).split()
        if kind in ("none", "numeric"):
            return []
        return [rng.choice((rng.choice(TEXT_WORDS), rng.choice(NUMBERS), self.path())) for _ in range(some)]

    def quoted(self, word: str) -> str:
        """The word as it is, or in a quoting that leaves it what it is or nearly so."""
        rng = self.rng
        if rng.random() < 0.85 or not word or word[0] in "'\"" or "\\" in word:
            return word
        styles = ("'{}'", '"{}"', "$'{}'", "{}''", "''{}", '$"{}"')
        if rng.random() < 0.7:
            return rng.choice(styles).format(word)
        at = rng.randrange(len(word))
        return rng.choice(
            (word[:at] + "\\" + word[at:], word[:at] + "'" + word[at:] + "'", word[:at] + '""' + word[at:])
        )
