cd /tmp/w56/tunewalk/replay
timeout 300 constructs-triton tune models --latency-ms 100 --budget-minutes 3.5 --step-seconds 3 -o tuned --yes --json > new.json 2> new.err
PYTHONPATH=/tmp/w56/tunewalk/base/packages/core/src:/tmp/w56/tunewalk/base/packages/check/src:/tmp/w56/tunewalk/base/packages/client/src:/tmp/w56/tunewalk/base/packages/tools/src:/tmp/w56/tunewalk/base/packages/functions/src:/tmp/w56/tunewalk/base timeout 300 python -m constructs_triton.cli tune models --latency-ms 100 --budget-minutes 3.5 --step-seconds 3 -o tuned2 --yes --json > old.json 2> old.err
