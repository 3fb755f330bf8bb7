#!/usr/bin/env bash
# The paper's network for its whole schedule, and everything that is measured with it, for machines that are lent by the minute:
#
#   paper.sh TERRANE TILES OUT SECONDS [KEY=VALUE...]
#
# Takes up where it was stopped, and ends after SECONDS at the latest, with exit code 75 where something is left to be done by another
# call. TILES is a dataset with the splits train, val, test and unseen; settings go to a training that begins, one that goes on has its
# own. DEVICE, PRESET (huvr-siren or huvr-siren-small) and FIT (steps of fitting, of tokens and of tokens with the decoder) may be set
# in the environment. Tokens with the decoder for the paper's 5,000 steps take minutes a tile: `terrane diagnose upper-bound`.
#
#   OUT/run        the run: config, log, checkpoint, model
#   OUT/results    what results/ keeps of it: config, log, evaluations, tables, and log.txt with the time of every part
set -euo pipefail

if [ $# -lt 4 ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 2
fi
terrane=$(realpath "$1") tiles=$(realpath "$2") seconds=$4
mkdir -p "$3/results"
out=$(realpath "$3")
settings=()
for setting in "${@:5}"; do settings+=(--set "$setting"); done
device=${DEVICE:-cuda} preset=${PRESET:-huvr-siren} fit=${FIT:-1000}
run=$out/run results=$out/results
case $preset in
    huvr-siren) size=paper ;;
    huvr-siren-small) size=small ;;
    *) echo "PRESET=$preset: the tables are those of huvr-siren or huvr-siren-small" && exit 2 ;;
esac
# Time in which a part that is told to end does so.
grace=20
child=
trap '[ -z "$child" ] || kill -INT "$child" 2> /dev/null; wait; exit 75' INT TERM

# Runs a part in what is left of the time, and notes how long it took; a part that does not end is begun again by the next call.
part() {
    local name=$1 left=$((seconds - SECONDS - grace)) start=$SECONDS is_done=
    shift
    if [ "$left" -gt 0 ]; then
        timeout --signal=INT --kill-after=$grace "$left" "$@" &
        child=$!
        wait "$child" && is_done=1
        child=
    fi
    if [ -z "$is_done" ]; then
        echo "$name: not done after $((SECONDS - start)) s" | tee -a "$results/log.txt"
        [ "$SECONDS" -lt $((seconds - grace)) ] && exit 1
        echo "call it again to go on"
        exit 75
    fi
    echo "$name: $((SECONDS - start)) s" | tee -a "$results/log.txt"
}

# Writes what a command prints, once it has ended well.
keep() {
    local file=$results/$1
    shift
    [ -e "$file" ] && return
    part "$(basename "$file")" bash -c 'file=$1; shift; "$@" > "$file.part" && mv "$file.part" "$file"' keep "$file" "$@"
}

if [ ! -e "$run/model.safetensors" ]; then
    if [ -e "$run/checkpoint.safetensors" ]; then
        part training "$terrane" train --resume --data "$tiles" --out "$run" --device "$device"
    else
        # What a training leaves that was stopped before its first checkpoint, and nothing else.
        rm -f "$run"/{config.toml,metrics.jsonl} "$run"/.terrane-*.part
        [ ! -d "$run" ] || rmdir "$run"
        part training "$terrane" train "$preset" --data "$tiles" --out "$run" --device "$device" "${settings[@]}"
    fi
fi
cp "$run/config.toml" "$run/metrics.jsonl" "$results"
for split in test val unseen; do
    keep "eval-$split.json" "$terrane" eval "$run" --data "$tiles" --split "$split" --device "$device" --json
done
keep dataset.txt "$terrane" dataset info "$tiles"

# Tables take networks from the folder of runs, by the name of their row.
tables=$out/tables
mkdir -p "$tables/runs"
ln -sfn "$run" "$tables/runs/huvr-siren"
table() {
    [ -e "$results/$1.csv" ] && return
    part "$1" "$terrane" bench "$1" --data "$tiles" --out "$tables" --device "$device" --size "$size" "${@:2}"
    cp "$tables/$1.csv" "$results/$1.csv.part" && mv "$results/$1.csv.part" "$results/$1.csv"
}
keep fit.json "$terrane" diagnose fit "$run" --data "$tiles" --steps "$fit" --batch 35 --device "$device" --json
keep tokens.json "$terrane" diagnose tokens "$run" --data "$tiles" --split test --device "$device" --json
table wall-clock
table amortisation --fit-steps "$fit" --bound-steps "$fit"
table ptq --method huvr-siren
rm -f "$results"/*.part
echo "all is there: $results"
