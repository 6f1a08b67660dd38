#!/bin/sh
# The demo: in a copy of shop/ a local model answers a question about the code,
# then finds and fixes the bug that makes a test fail. Run it with `make demo`.
#
#   ATOLL   the program (default: bin/atoll)
#   MODEL   a name of `atoll model list` or a GGUF file (default: the default model)
#   PARTS   question, fix, or all (default: all; question for models too small to fix)
#   KEEP=1  keep the copy
#
# The model gets what a user would type: the question, and the output of the
# failing test. The test is run here, by the shell, before and after; the exit
# status is that of the last run.
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
*.gguf | script:*) file=$MODEL ;;
*) file=$("$ATOLL" model pull ${MODEL:+"$MODEL"}) || exit $? ;;
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
cp -R "$here/shop" "$tmp/shop"
export ATOLL_HOME="$tmp/home" PYTHONDONTWRITEBYTECODE=1
cd "$tmp/shop"

ask() { # MODE PROMPT
	say "atoll --mode $1 -p \"$2\""
	start=$(date +%s)
	"$ATOLL" -m "$file" --mode "$1" -p "$2"
	printf '(%s s)\n' $(($(date +%s) - start))
}

if [ "$PARTS" != fix ]; then
	ask read-only "Read prices.py. What does shipping cost, and from which amount on is it free?"
fi
[ "$PARTS" != question ] || exit 0

say "python3 -m unittest"
if python3 -m unittest >"$tmp/before.txt" 2>&1; then
	die "the test passes before the fix: the demo's project is broken"
fi
cat "$tmp/before.txt"

ask workspace-write "A test fails. Find the bug in the code and fix it. Do not change the test.

$(cat "$tmp/before.txt")"

say "the change"
git --no-pager diff --no-index -- "$here/shop" "$tmp/shop" && die "the model changed nothing"
cmp -s "$here/shop/test_prices.py" test_prices.py || die "the model changed the test"

say "python3 -m unittest"
python3 -m unittest
