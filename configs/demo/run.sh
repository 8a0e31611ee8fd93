#!/usr/bin/env bash
# The main job on a small repository of its own: make it, launch the team, take its work, run the tests.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/retinue-demo.XXXXXX")
repo=$work/shelf

cp -R "$here/repo" "$repo"
git -C "$repo" init --quiet --initial-branch=main
git -C "$repo" config user.name demo
git -C "$repo" config user.email demo@example.invalid
git -C "$repo" add --all
git -C "$repo" commit --quiet --message "A small shop, with three faults"

echo "A repository with failing tests: $repo"
(cd "$repo" && python3 -B -m unittest 2>&1 | tail -n 1) || true
echo

run() { echo "\$ $*"; "$@"; }
run retinue up "$here/../demo.yaml" --ephemeral --trust --run-id demo --state-dir "$work/state" \
  --set "repo.path=$repo"
echo
run retinue land demo --state-dir "$work/state"
(cd "$repo" && echo '$ python3 -m unittest' && python3 -B -m unittest 2>&1 | tail -n 3)
echo
git -C "$repo" log --graph --format='%h %an: %s' -n 12
echo
echo "All of it is in $work; remove it when you have seen enough."
