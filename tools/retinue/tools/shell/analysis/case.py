"""All that is known of one command before any rule is held against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from retinue.tools.shell.analysis.checks import run_checks
from retinue.tools.shell.analysis.effects import NO_FILES, Files, files_of, files_of_words
from retinue.tools.shell.analysis.model import MAX_PARTS, Need, Part, Place, Reason, Request, Word
from retinue.tools.shell.analysis.movement import is_move, places
from retinue.tools.shell.analysis.paths import candidates, place
from retinue.tools.shell.analysis.reading import Reading, all_commands, commands_of, may_be_fed, read
from retinue.tools.shell.analysis.readonly import why_not
from retinue.tools.shell.analysis.table import Table, builtin_table
from retinue.tools.shell.analysis.wrappers import inner_starts


@dataclass(frozen=True)
class Survey:
    """What a command is made of.

    `spots` tell where each part runs, and what keeps it from running there unasked. `needs` are the parts that the
    table does not vouch for, and why; only of a simple text.
    """

    request: Request
    reading: Reading
    hits: tuple[Reason, ...]
    spots: Sequence[tuple[Place, str | None]]
    needs: tuple[Need, ...]

    @property
    def is_simple(self) -> bool:
        return self.reading.status == "simple"

    @property
    def only_reads(self) -> bool:
        """Whether nothing keeps it from being approved unasked."""
        return self.is_simple and not self.hits and not self.needs

    @property
    def checks(self) -> frozenset[int]:
        return frozenset(hit.check for hit in self.hits)

    @cached_property
    def commands(self) -> list[tuple[Sequence[Word], Place]]:
        """Every command that the text may run, as far as anyone can tell, and where: to look for what is forbidden."""
        if self.is_simple:
            placed = [(words, where) for part, where in self._placed_parts() for words in commands_of(part)]
            if not may_be_fed(self.request.command):
                return placed
            known = {tuple(words) for words, _ in placed}
            found = (words for words in all_commands(self.request.command, self.reading) if tuple(words) not in known)
            return [*placed, *((words, self._anywhere) for words in found)]
        anywhere = self._anywhere
        return [(words, anywhere) for words in all_commands(self.request.command, self.reading)]

    @cached_property
    def files(self) -> list[tuple[Files, Place]]:
        """The files that each of them names."""
        named = [(files_of(part), where) for part, where in self._placed_parts()]
        inner = [(files_of_words(tail), where) for words, where in self.commands for tail in inner_starts(words)]
        return [(files, where) for files, where in (*named, *inner) if files is not NO_FILES]

    def _placed_parts(self) -> Iterator[tuple[Part, Place]]:
        """A text that is no plain list may run each part anywhere that it leads to."""
        for part, (where, _) in zip(self.reading.parts, self.spots, strict=True):
            yield part, where if self.is_simple else self._anywhere

    @cached_property
    def _anywhere(self) -> Place:
        """The working directory, and each place that some `cd` of the text names."""
        start = place(self.request)
        moves = (words for words in all_commands(self.request.command, self.reading) if words[0].value == "cd")
        found = (path for words in moves for word in words[1:] for path in candidates(word, start))
        targets = [path for path in found if path is not None]
        return start._replace(bases=tuple(dict.fromkeys((*start.bases, *targets[:MAX_PARTS]))))


def survey(request: Request, table: Table | None = None) -> Survey:
    """Reads the text twice, runs the checks, and holds each part against the table. Never raises."""
    reading = read(request.command)
    hits = tuple(run_checks(request.command, reading.parts))
    start = place(request)
    if reading.status != "simple":
        return Survey(request, reading, hits, [(start, None)] * len(reading.parts), ())
    spots = places(reading.parts, start)
    return Survey(request, reading, hits, spots, _needs(request, reading, spots, table or builtin_table()))


def _needs(
    request: Request, reading: Reading, spots: Sequence[tuple[Place, str | None]], table: Table
) -> tuple[Need, ...]:
    needs: list[Need] = []
    before: Part | None = None
    for part, (where, why) in zip(reading.parts, spots, strict=True):
        if why is None and not (is_move(part) and not part.assignments and not part.raw.redirects):
            why = why_not(part, where, table, request.shell, before if part.raw.connector == "|" else None)
        before = part
        if why is not None:
            needs.append(Need(part, where, why))
    return tuple(needs)
