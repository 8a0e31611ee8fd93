"""What the grammar draws from: words, pieces and whole commands that are odd in the ways that matter."""

from __future__ import annotations

from collections.abc import Mapping


def listed(text: str, by: str | None = None) -> tuple[str, ...]:
    """The items of a list that is written as one text."""
    return tuple(text.split(by))


def split_texts(text: str) -> tuple[str, ...]:
    """Words of a list whose words may hold quoted blanks."""
    words: list[str] = []
    quote = ""
    fresh = True
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == " " and not quote:
            fresh = True
            at += 1
            continue
        if fresh:
            words.append("")
            fresh = False
        if letter == "\\" and quote != "'" and at + 1 < len(text):
            words[-1] += text[at : at + 2]
            at += 2
            continue
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        words[-1] += letter
        at += 1
    return tuple(words)


INSIDE = listed(
    "a.txt b.txt c.md data.json nums.txt names.csv empty.txt src src/main.py src/util.py src/deep/x.txt docs "
    "docs/readme.md ./a.txt . src/ prog.o old.tar old.tgz old.zip text.gz odd inner inner/main.py missing - "
    "left right +l @opts ./@opts inner/../a.txt inner/../src"
)
OUTSIDE = listed(
    "/etc/hosts /etc/canary /etc .. ../other ../other/secret.txt ~ ~/.bashrc ~/.ssh/id_rsa $HOME/.netrc ext ext/hosts "
    "key out.log src/up src/up/other/secret.txt /srv/canary / src/../../.bashrc ~dev/.bashrc /proc/self/environ "
    "ext/../srv/canary ext/.. src/up/.. src/up/../dev/.bashrc left/f left/../+l"
)
GLOBS = listed(
    "* *.txt src/* ? [ab].txt *.md */ ./* odd/* src/*.py k* *y o* */*.py .* *[!x] [^a]* "
    "[[:lower:]]* '[k]'* \\[a]* k''* ?e? -* **/*.py {a,b}.txt e*/hosts"
)
TEXTS = (
    "x foo 'a b' \"it is\" '$(touch pwned)' \"x; touch pwned\" 'a|b' '^def ' '.*' \"don't\" 'say \"hi\"' a\\ b \\* "
    "'>pwned' \"a > pwned\" '#no' a#b -- -n -5 +3 'x\ny' '{a,b}' %s 'é' 3 10 0 x=y ~x '' \"\" \\; \\ '\\'"
).replace("\\n", "\n")
NUMBERS = listed("0 1 2 5 10 +3 -1 1,3 2- 3M 1k")
SED = (
    "p 1p '2,4p' 's/x/y/' 's|a|b|g' '/x/d' '$!d' '1!G;h' 's/x/y/w pwned' 'w pwned' 'e touch pwned' 's/x/touch pwned/e' "
    "'r key' '/x/,/y/p' = 'y/ab/cd/' 'q' '5q;p' 's/a\\/b/c/p' 's,[,],x,' '1e ls' 's/a/b/;w pwned' 'R ../.bashrc'"
)
SED_PIECES = (
    *listed("[ ] ^ a , / | : \\ \\] \\[ \\/ [a] [^a] [] [^] [[:alpha:] [[:alpha:]] [a[.].] [\\] [,] [/]"),
    "/w pwned",
    "]/w pwned",
    "]/b/w pwned,x,",
    ";s,]",
    "hi]/e touch pwned #",
)
"""Of them fields are made: where one ends is where seds and their readers disagree."""
SED_OPENERS = listed("[ [^] [] [[:alpha:] [\\] [a[.].] [^\\] a[b")
SED_CLOSERS = ("hi]/e touch pwned #", "]/w pwned", "]/b/w pwned", "]|w pwned", "],/w pwned")
"""What opens a bracket in one field, and what closes it in the next for those who see one bracket."""
JQ = (
    "'.' '.a' '.b[]' '.a|length' 'keys' '.[\"env\"]' 'env' '$ENV.HOME' 'input_filename' 'import \"x\" as x; .' "
    "'\"\\(env)\"' 'input' 'inputs' '@base64' '.a as $x|$x' 'debug' 'getpath([\"a\"])' '$__prog_args' 'halt_error'"
)
FIND = (
    "-name '*.py' -name *.txt -type f -maxdepth 2 -size +1k -print -print0 -ls -delete -exec touch pwned \\; "
    "-fprint pwned -fls pwned -newer a.txt -newer key -printf '%p\\n' -prune -o -not ! -follow -L "
    "-execdir ls {} + -ok ls \\; "
    "-samefile ../.bashrc -fprintf pwned x -regex '.*' -path './src/*' ( ) \\( \\) -files0-from names.csv -quit"
)
TESTS = (
    "-f a.txt -d src -e key -n x -z '' a = b 1 -eq 2 a -nt b.txt -v x[$(touch${IFS}pwned)] x[0] -eq 1 ! "
    "-f x -o -a -r src ]"
)
REVISIONS = listed("HEAD HEAD~1 main a.txt src HEAD:a.txt :/first -- main..HEAD ../other/secret.txt HEAD^ stash@{0} v1")
GIT_MORE = listed(
    "--format=%G? --pretty=%GK --format=%(describe) "
    "--output=pwned --ext-diff --textconv --no-index -O --open-files-in-pager=touch --no-index -c "
    "--exec=x --git-dir=bare "
    "--paginate -p --contents key --no-pager -C bare --config-env=a=B --upload-pack=pwned"
)
RISKY = listed(
    "-o pwned --output=pwned -i --in-place -w pwned --pre=./pwned --files0-from=names.csv -f key --file=key -L -R "
    "--compress-program=./pwned -T . -exec -x ./pwned -X pwned --pager=./pwned -c x --exec=./pwned -s -C --follow -Z"
)
HARMS = listed(
    "--output=pwned -opwned --pre=./runs --plugin=./x.so --in-place -i --compress-program=./runs -w -delete -x -D main "
    "--files0-from=names.csv --pager=./runs --ext-diff --get --list @opts --exec=./runs --textconv --filters"
)
"""Flags that no command may have unasked: behind one whose value is absent they are told apart or not."""
FEEDERS = (
    "rg --files -0",
    "rg --files -0 src",
    "rg -l0 x",
    "grep -rlZ x",
    "grep -rlZ x .",
    "find . -type f -print0",
    "find src -type f -print0",
    "find * -type f -print0",
    "find @x -type f -print0",
    "ls",
)
MOVES = ("", "", "", "! ", "timeout 5 ", "nice ", "command ", "time ", "! ! ")
WRAPPERS = listed(
    "timeout 5|nice|nice -n 5|nohup|stdbuf -oL|command|builtin|time|time -p|timeout -k 1 5|timeout -s KILL 5|"
    "env|env -i|"
    "sudo|exec|command -p|!|eval|xargs|bash -c|noglob|-|timeout 0.5s|stdbuf --output=0|nice --adjustment=3|time time",
    "|",
)
ASSIGNMENTS = listed(
    "LANG=C LC_ALL=C.UTF-8 TZ=UTC NO_COLOR=1 TERM=dumb FOO=1 PATH=. IFS=x GREP_COLORS='mt=1' LANG=$(touch${IFS}pwned) "
    "TZ=/etc/canary LANG= LS_COLORS=x a[0]=1 LANG+=x PAGER=./pwned GIT_PAGER=./pwned "
    "LD_PRELOAD=./x.so BASH_ENV=./pwned "
    "TZ=:../other/secret.txt LC_ALL='C' TIME_STYLE=+%F BLOCK_SIZE=1k"
)
FREE_REDIRECTS = listed("2>/dev/null 2>&1 >/dev/null &>/dev/null 1>&2 2>&- 2>>/dev/null >&2 2> /dev/null &>>/dev/null")
RISKY_REDIRECTS = (
    ">pwned|> pwned|>>pwned|2>pwned|&>pwned|>|pwned|<a.txt|< key|<>pwned|>&pwned|<<<x|>$X|2>/dev/null/../x|>/dev/nullx|"
    ">/dev/null pwned|3<a.txt|{fd}>pwned|>!pwned|>/dev/tcp/127.0.0.1/9"
).replace("|pwned|", "\0pwned|")
LINKS = (" && ", " && ", " || ", "; ", " | ", " | ", "\n", " |& ", " & ", "&&", "|", ";", " ;\n", "\\\n&& ", " | \\\n ")
SPACES = (" ", " ", " ", " ", " ", "  ", "\t", " \\\n ", "\\\n", "\v", "\r", "\f", "\u00a0", "\n", "", "\\ ")
TAILS = (
    "",
    "",
    "",
    "",
    "",
    " ",
    "\n",
    " # note",
    " # it's",
    ";",
    " &",
    "\\",
    "#x",
    " #\ntouch pwned",
    "\t#\\\ntouch pwned",
)
PIECES = (
    *listed(
        " |\t|\n|\\\n|\\ |'|\"|''|\"\"|\\|\\|#| #|\\#|$|`|^|%|=|!|;|&&|&|(|)|{|}|[|]|*|?|~|==\n|=~\n|\r|\v|\f|<|>",
        "|",
    ),
    *listed("2>/dev/null|>&2|2>&1|<<E\n|\nE\n|<<<|>&-|x|--|é|\u00a0|${a}|-o pwned|X=1|time|\u200b|$'|$\"|\\\r\n", "|"),
    *(
        "|",
        "||",
        "|&",
        " | ",
        "\n#",
        "$(",
        "$((",
        "))",
        "<(",
        ">(",
        "=(",
        "=ls",
        "~[",
        "{a,b}",
        "\\\n#",
        "\\\n ",
        " \\\n",
    ),
    *(
        " touch pwned",
        ";touch pwned",
        "\ntouch pwned",
        "|touch pwned",
        "&touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
    ),
    *(
        ">pwned",
        "pwned",
        "-delete",
        "key",
        "../",
        "/etc/hosts",
        "\\\ntouch pwned",
        "' touch pwned '",
        "2>",
        "&>",
        "3>&1",
    ),
)
SEEDS = (
    "ls -la src | head -3",
    "cat a.txt b.txt | sort -u | uniq -c | sort -rn",
    "grep -rn 'def ' src --include='*.py' | wc -l",
    'rg -n "x|y" src docs; pwd',
    "find . -name '*.py' -type f -not -path './odd/*' -print0 | xargs -0 grep -l main",
    "find src -type f -print0 | xargs -0 wc -l | tail -1",
    "rg -l0 x src | xargs -0 head -2",
    "cd odd && rg --files -0 | xargs -0 wc",
    "rg --files -0 | xargs -0 head -1 --",
    "ls | xargs -n1 basename",
    "cd odd && wc *",
    "cd odd && cat ./* && ls -d -- *",
    "git log --oneline -5 -- src && git status --short",
    "git diff HEAD~1 --stat; git show HEAD:a.txt",
    "git branch --list 'm*' && git rev-parse --abbrev-ref HEAD",
    "sed -n '1,5p' a.txt | cut -d' ' -f1",
    "sed 's/x/y/g; /^$/d' a.txt",
    "jq -r '.b[]' data.json | paste -sd, -",
    "test -f a.txt && echo \"it's there\" || echo 'no; not'",
    "[ -d src ] && ls src 2>/dev/null",
    "cd src && ls -l && cat main.py",
    "cd src; cat deep/x.txt; cd .. && pwd",
    "LANG=C sort a.txt 2>/dev/null | tail -n +2",
    "timeout 5 du -sh src 2>&1 | cut -f1",
    "nice -n 5 stdbuf -oL head -c 10 a.txt",
    "time wc -l a.txt",
    "printf '%s\\n' \"a b\" 'c > d' e\\ f",
    'echo "don\'t" \'$(x)\' "\\$y" a#b # the rest',
    "diff -u a.txt b.txt > /dev/null 2>&1; echo done",
    "tr a-z A-Z < /dev/null | rev",
    "head -5 a.txt; tail -5 b.txt; wc *.txt",
    "stat -c %s a.txt && file src/main.py",
    "seq 1 5 | paste -sd+ - | bc",
    "tar tf old.tar | sort; unzip -l old.zip",
    "ls 'two words.txt' && cat \"two words.txt\"",
    "echo a &&\n  echo b |\n  cat",
    "ls -l \\\n  src \\\n  docs",
    "! grep -q nothing a.txt",
    "command -v git && which ls && type cat",
    "date +%F; uname -a; id -un",
    "base64 a.txt | fold -w 20 | nl | tac",
    "basename src/main.py .py; dirname src/main.py; realpath a.txt",
    "grep -c x < a.txt",
    "cat <<'E'\nx; touch pwned\nE\necho y",
    'for f in *.txt; do cat "$f"; done',
    "(cd src && ls)",
    "echo $(git log -1)",
)


TEXT_WORDS = split_texts(TEXTS)
POOLS: Mapping[str, tuple[str, ...]] = {
    "sed": split_texts(SED),
    "jq": split_texts(JQ),
    "find": split_texts(FIND),
    "test": split_texts(TESTS),
}
RISKY_WORDS = tuple(piece.replace("\0", "|") for piece in RISKY_REDIRECTS.split("|"))
LEFT_OUT = frozenset(("vmstat", "sleep"))
"""They would only cost time."""
VERSIONS = frozenset(("flag", "version-words"))
QUICK_VERSIONS = frozenset(("bash", "awk", "perl", "make", "tar", "sqlite3"))
"""Of those that may only say their version. What the others do for it is their own, and slow."""
SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
BUILTINS = frozenset(listed("echo printf true false : test [ cd pwd type command ulimit umask jobs"))
