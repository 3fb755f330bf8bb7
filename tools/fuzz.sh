#!/usr/bin/env bash
# Fuzzes every kind of input at once, or those that are named: fuzz.sh SECONDS JOBS OUT [KIND...], beside the program,
# the seeds and the dictionary that `just fuzz-kit DIR` puts together. It needs no Rust.
#
# JOBS processes share the kinds; where there are more kinds than jobs, they take turns of SECONDS. OUT then holds
#   table.tsv          what was run, for how many seconds by the clock and of the processor, and what of the program it reached
#   crashes/KIND/      inputs that ended the program, took too long or too much memory
#   corpus.tar.xz      inputs that reached something new, by kind
#   logs/KIND.log
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 2
fi
seconds=$1
jobs=$2
out=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"/{corpus,crashes,logs}
out=$(cd "$out" && pwd)
kinds=("${@:4}")
if [ $# -eq 3 ]; then
    # Those with the longest inputs first: they are the slowest.
    mapfile -t kinds < <(cd "$here/seeds" && du -s -- * | sort -rn | cut -f2)
fi
# Where the program keeps what it makes, in memory if it can be; removed in the end.
TMPDIR=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# Fuzzes a kind with so many processes; a finding does not end it.
fuzz() {
    local kind=$1 workers=$2 TIMEFORMAT='%U %S'
    mkdir -p "$out/corpus/$kind" "$out/crashes/$kind"
    echo "$workers" >"$out/logs/$kind.workers"
    cd "$TMPDIR"
    { time TERRANE_FUZZ=$kind ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:allocator_may_return_null=1} \
        nice -n 19 "$here/any" \
        -fork="$workers" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 \
        -max_total_time="$seconds" -rss_limit_mb=1500 -timeout=20 \
        -dict="$here/terrane.dict" -artifact_prefix="$out/crashes/$kind/" \
        "$out/corpus/$kind" "$here/seeds/$kind" >"$out/logs/$kind.log" 2>&1 || true; } 2>"$out/logs/$kind.processor"
}

count=${#kinds[@]}
for ((first = 0; first < count; first += jobs)); do
    turn=("${kinds[@]:first:jobs}")
    for index in "${!turn[@]}"; do
        # Jobs that are left over go to the first ones.
        workers=$((jobs / ${#turn[@]} + (index < jobs % ${#turn[@]} ? 1 : 0)))
        fuzz "${turn[index]}" "$workers" &
    done
    wait
done

{
    printf 'kind\tprocesses\tseconds\tprocessor\texecutions\tedges\tfeatures\tinputs\tfindings\n'
    for kind in "${kinds[@]}"; do
        # The last line of the kind: "#1234: cov: 5 ft: 6 corp: 7 exec/s: 8 oom/timeout/crash: 0/0/0 time: 9s …"
        line=$(grep -aE '^#[0-9]+: cov: ' "$out/logs/$kind.log" | tail -1 || true)
        field() { sed -nE "s|.*$1 ([0-9]+).*|\1|p" <<<"$line"; }
        found=$(find "$out/crashes/$kind" -type f | wc -l)
        printf '%s\t%s\t%s\t%.0f\t%s\t%s\t%s\t%s\t%s\n' "$kind" "$(cat "$out/logs/$kind.workers")" "$(field ' time:')" \
            "$(awk '{ print $1 + $2 }' "$out/logs/$kind.processor")" "$(sed -nE 's|^#([0-9]+):.*|\1|p' <<<"$line")" \
            "$(field 'cov:')" "$(field 'ft:')" "$(find "$out/corpus/$kind" -type f | wc -l)" "$found"
    done
} >"$out/table.tsv"
rm -f "$out"/logs/*.{workers,processor}
tar -C "$out" -cf - corpus | xz -6 >"$out/corpus.tar.xz"
rm -rf "$out/corpus"
cat "$out/table.tsv"
