#!/usr/bin/env bash
# A real kubectl works on jobs and cron jobs: create, wait, suspend, indexes with policies, time to live, schedules.
. "$(dirname "$0")/kubectl_lib.sh"
start_cluster
works 'create namespace' 'created' k create namespace work
works 'set the namespace of the context' 'modified' k config set-context --current --namespace=work

# job NAME SPEC [ANNOTATION...]: applies a job whose pods end at once; SPEC is its spec, but for the template.
job() {
  local name=$1 spec=$2
  shift 2
  cat <<Y
apiVersion: batch/v1
kind: Job
metadata: {name: $name}
spec:
  $spec
  template:
    metadata: {annotations: {tessera.dev/run-for: 1s, $*}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: example.com/x:1}]
Y
}
make_job() {
  job "$@" >"$scratch/job.yaml"
  works "create job $1" 'created' k create -f "$scratch/job.yaml"
}

# --- create job
works 'create job' 'job.batch/one created' k create job one --image=example.com/x:1 -- true
works 'its pod runs' '' k wait --for=jsonpath='{.status.ready}'=1 job/one --timeout=60s
works 'jobs table' '^NAME +STATUS +COMPLETIONS +DURATION +AGE$' k get jobs
works 'jobs row' '^one +Running +0/1 ' k get jobs
works 'describe job' 'Pods Statuses: +1 Active' k describe job one
works 'delete job' 'deleted' k delete job one
works 'its pods go with it' '' k wait --for=delete pod -l job-name=one --timeout=60s

# --- to the end
make_job done 'completions: 2'
works 'wait for a job' 'condition met' k wait --for=condition=Complete job/done --timeout=60s
works 'a complete job' '^done +Complete +2/2 ' k get jobs
works 'its events' 'Completed.*Job completed' k events --for job/done
make_job bad 'backoffLimit: 0' 'tessera.dev/exit-code: "3"'
works 'wait for a failure' 'condition met' k wait --for=condition=Failed job/bad --timeout=60s
gives 'why it failed' BackoffLimitExceeded k get job bad -o jsonpath='{.status.conditions[?(@.type=="Failed")].reason}'
make_job short 'ttlSecondsAfterFinished: 0'
works 'a finished job goes' '' k wait --for=delete job/short --timeout=60s

# --- policies
make_job coded 'podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}' \
  'tessera.dev/exit-code: "42"'
works 'an exit code ends it' 'condition met' k wait --for=condition=Failed job/coded --timeout=60s
works 'and is named' 'failed with exit code 42 matching FailJob rule at index 0' k describe job coded
make_job array 'completionMode: Indexed
  completions: 4
  parallelism: 2
  successPolicy: {rules: [{succeededCount: 2}]}'
works 'enough indexes' 'condition met' k wait --for=condition=Complete job/array --timeout=60s
gives 'by its policy' SuccessPolicy k get job array -o jsonpath='{.status.conditions[?(@.type=="Complete")].reason}'
make_job indexes 'completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimitPerIndex: 0' 'tessera.dev/exit-code: "1"'
works 'every index failed' 'condition met' k wait --for=condition=Failed job/indexes --timeout=60s
gives 'the indexes that failed' '0-2' k get job indexes -o jsonpath='{.status.failedIndexes}'
gives 'host names of indexes' 'indexes-0 indexes-1 indexes-2' bash -c \
  "'$kubectl_program' get pods -l job-name=indexes -o jsonpath='{range .items[*]}{.spec.hostname}{\"\\n\"}{end}' | sort | xargs"

# --- suspend
make_job waits 'suspend: true'
works 'it says so' '' k wait --for=condition=Suspended job/waits --timeout=30s
gives 'no pods' '' k get pods -l job-name=waits -o name
works 'resume' 'patched' k patch job waits -p '{"spec":{"suspend":false}}'
works 'a resumed job ends' 'condition met' k wait --for=condition=Complete job/waits --timeout=60s

# --- cron jobs
works 'create cron job' 'cronjob.batch/tick created' k create cronjob tick --image=example.com/x:1 --schedule='@every 2s'
works 'cron jobs table' '^NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE$' k get cronjobs
works 'it starts a job' '' k wait --for=jsonpath='{.status.active[0].kind}'=Job cronjob/tick --timeout=60s
works 'describe cron job' 'SuccessfulCreate' k describe cronjob tick
works 'suspend it' 'patched' k patch cronjob tick -p '{"spec":{"suspend":true}}'
works 'suspended in the table' '^tick +@every 2s +<none> +True ' k get cronjobs
works 'a job by hand' 'job.batch/extra created' k create job extra --from=cronjob/tick
gives 'belongs to it' tick k get job extra -o jsonpath='{.metadata.ownerReferences[0].name}'
works 'delete cron job' 'deleted' k delete cronjob tick
works 'its jobs go with it' '' k wait --for=delete job/extra --timeout=60s
fails 'a bad schedule' 'expected exactly 5 fields' k create cronjob bad --image=x --schedule='* *'
