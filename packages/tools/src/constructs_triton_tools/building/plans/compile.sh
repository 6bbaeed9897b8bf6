#!/bin/bash
# Builds model.plan from model.onnx with trtexec, in a SageMaker job with the endpoint's image.
#
#   compile.sh JOB MODEL OUTPUT MESSAGES
#
# JOB       folder with this file, trtexec.txt (one argument on each line), compute_capability.txt and
#           perhaps timing.cache
# MODEL     folder with model.onnx and its external data
# OUTPUT    folder for model.plan, trtexec.log, timing.cache and job.json
# MESSAGES  folder whose files message and failure SageMaker returns when it describes the job
#
# Whatever happens, the last step writes one line of JSON: a log may not be readable to whoever started the job.
# It uses bash alone where it can: your own image may have few other programs.
set -u
job=$1 model=$2 output=$3 messages=$4
mkdir -p "$output" "$messages"
log=$output/trtexec.log
gpu='' capability='' driver=''

quoted() {  # a JSON string, without control characters and of at most 600 characters
    local text=${1//[[:cntrl:]]/ }
    text=${text:0:600}
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

finish() {  # STAGE EXIT_CODE ERROR
    local line
    line=$(printf '{"stage": %s, "exit_code": %d, "seconds": %d, "gpu": %s, "compute_capability": %s, "driver": %s, "error": %s}' \
        "$(quoted "$1")" "$2" "$SECONDS" "$(quoted "$gpu")" "$(quoted "$capability")" "$(quoted "$driver")" "$(quoted "$3")")
    printf '%s\n' "$line" >"$output/job.json"
    printf '%s\n' "$line" >"$messages/message"
    [ "$2" -eq 0 ] || printf '%s\n' "$line" >"$messages/failure"
    printf '%s\n' "$line"
    exit "$2"
}

trap 'finish stopped 143 "the job was stopped"' TERM

found=$(nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv,noheader 2>&1) \
    || finish gpu 3 "nvidia-smi: $found"
IFS=, read -r gpu capability driver <<<"${found%%$'\n'*}"
capability=${capability// /} driver=${driver// /}
wanted=$(<"$job/compute_capability.txt")
[ "$capability" = "$wanted" ] || finish gpu 3 "expected a GPU of compute capability $wanted, got $gpu of $capability"

# Path: github triton-inference-server/server qa/L0_perf_resnet/test.sh at r24.03 to r26.05.
trtexec=/usr/src/tensorrt/bin/trtexec
[ -x "$trtexec" ] || trtexec=$(type -P trtexec) || finish trtexec 4 "the image has no trtexec"

mapfile -t arguments <"$job/trtexec.txt"
[ ! -f "$job/timing.cache" ] || cat "$job/timing.cache" >"$output/timing.cache"
arguments+=("--onnx=$model/model.onnx" "--saveEngine=$output/model.plan" "--timingCacheFile=$output/timing.cache")
printf 'GPU %s, driver %s\n%s' "$gpu" "$driver" "$trtexec"
printf ' %q' "${arguments[@]}"
printf '\n'

show() {  # print each line, and keep it
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line"
        printf '%s\n' "$line" >>"$log"
    done
}

first_error() {
    local line
    while IFS= read -r line; do
        if [[ $line == *'[E]'* ]]; then
            printf '%s' "$line"
            return
        fi
    done <"$log"
}

: >"$log"
exec 3> >(show)
shown=$!
"$trtexec" "${arguments[@]}" >&3 2>&1 &
child=$!
exec 3>&-
# bash runs a trap at once only while it waits for a process in the background.
trap 'kill "$child" 2>/dev/null; finish stopped 143 "the job was stopped"' TERM
wait "$child"
code=$?
wait "$shown"
error=$(first_error)
[ "$code" -ne 137 ] || error="trtexec was killed; the instance may have too little memory. $error"
[ "$code" -eq 0 ] || finish trtexec 1 "${error:-trtexec ended with exit code $code}"
[ -s "$output/model.plan" ] || finish trtexec 1 "trtexec wrote no plan"
finish built 0 ''
