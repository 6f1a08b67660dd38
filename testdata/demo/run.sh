#!/bin/sh
# The demo: in a copy of contacts/ a local model answers a question about the code,
# then finds and fixes the bug that makes a test fail. Run it with `make demo`.
#
#   ATOLL   the program (default: bin/atoll)
#   MODEL   a name of `atoll model list` or a GGUF file (default: the default model)
#   PARTS   question, fix, or all (default: all; question for models too small to fix)
#   KEEP=1  keep the copy
#
# The model gets what a user would type: the question, and the output of the
# failing test (its name and what it got, without paths and times). The test is run here,
# by the shell, before and after; the exit status is that of the last run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
ATOLL=${ATOLL:-$here/../../bin/atoll}
MODEL=${MODEL:-}
say() { printf '\n=== %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

[ -x "$ATOLL" ] || die "$ATOLL is not built; run: make"
command -v python3 >/dev/null || die "python3 is missing; the demo's project is in Python"
command -v git >/dev/null || die "git is missing; it shows the diff"

# `model pull` fetches what is not there, says what is missing when it cannot,
# and prints the file's path.
case $MODEL in
/*.gguf | script:/*) file=$MODEL ;;
*.gguf) file=$PWD/$MODEL ;;
script:*) file=script:$PWD/${MODEL#script:} ;;
*) file=$("$ATOLL" model pull ${MODEL:+"$MODEL"}) || {
	code=$?
	echo "demo: with a GGUF file that is already here: make demo MODEL=FILE.gguf" >&2
	exit "$code"
} ;;
esac
case ${PARTS:-}:$file in
:*0.5b* | :*[Ss]mol[Ll][Mm]*)
	PARTS=question
	echo "demo: this model is too small to fix a bug; it only answers the question (PARTS=all tries)"
	;;
:*) PARTS=all ;;
esac

tmp=$(mktemp -d)
cleanup() { if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else rm -rf "$tmp"; fi; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
trap 'exit 141' PIPE
cp -R "$here/contacts" "$tmp/contacts"
export ATOLL_HOME="$tmp/home" PYTHONDONTWRITEBYTECODE=1
cd "$tmp/contacts"

ask() { # MODE PROMPT
	say "atoll --mode $1 -p \"$2\""
	start=$(date +%s)
	"$ATOLL" -m "$file" --mode "$1" -p "$2"
	printf '(%s s)\n' $(($(date +%s) - start))
}

if [ "$PARTS" != fix ]; then
	ask read-only "How many letters must a search have at least, and where is that set?"
fi
[ "$PARTS" != question ] || exit 0

say "python3 -m unittest"
if python3 -m unittest >"$tmp/before.txt" 2>&1; then
	die "the test passes before the fix: the demo's project is broken"
fi
cat "$tmp/before.txt"
grep -q '^AssertionError' "$tmp/before.txt" || die "the test did not run"

ask workspace-write "A test fails. Find the bug in the code and fix it. Do not change the test.

$(grep -e '^FAIL: ' -e '^AssertionError' "$tmp/before.txt" | sed 's/ (.*//')"

say "the change"
mkdir "$tmp/diff" && cp -R "$here/contacts" "$tmp/diff/a" && cp -R "$tmp/contacts" "$tmp/diff/b"
(cd "$tmp/diff" && git --no-pager diff --no-index --no-prefix a b) && die "the model changed nothing"
cmp -s "$here/contacts/test_contacts.py" test_contacts.py || die "the model changed the test"

say "python3 -m unittest"
python3 -m unittest
