{{/* The job: its file, its name, and the hash that names what runs it. */}}

{{/* job.yaml of the pods. Without a job it is the embedded digits; with a sweep it is a sweep file. */}}
{{- define "lockstep.jobFile" -}}
{{- $job := deepCopy (.Values.job | default dict) -}}
{{- include "lockstep.setNumbers" (dict "at" $job "path" "job" "places" (.Files.Get "files/numbers.txt" | splitList "\n")) -}}
{{- if .Values.sweep -}}
{{- $job = ternary $job (.Files.Get "files/digits.yaml" | fromYaml).job (gt (len $job) 0) -}}
{{ toYaml (dict "job" $job "sweep" .Values.sweep) }}
{{- else if $job }}{{ toYaml (dict "job" $job) }}{{ else }}{{ .Files.Get "files/digits.yaml" | trim }}{{ end -}}
{{- end -}}

{{/* Helm makes a text of a fraction that stands after --set. Where the job has a number, it is one again: (dict "at" MAP "path"
PATH "places" PATHS), which changes the map. "*" is any key, or an item of a list. */}}
{{- define "lockstep.setNumbers" -}}
{{- $at := .at -}}
{{- $path := .path -}}
{{- $places := .places -}}
{{- range $key, $value := $at -}}
  {{- $place := printf "%s.%s" $path $key -}}
  {{- if kindIs "map" $value -}}
    {{- include "lockstep.setNumbers" (dict "at" $value "path" $place "places" $places) -}}
  {{- else if kindIs "slice" $value -}}
    {{- $items := list -}}
    {{- range $value -}}
      {{- $item := dict "*" . -}}
      {{- include "lockstep.setNumbers" (dict "at" $item "path" $place "places" $places) -}}
      {{- $items = append $items (get $item "*") -}}
    {{- end -}}
    {{- $_ := set $at $key $items -}}
  {{- else if and (kindIs "string" $value) (or (has $place $places) (has (printf "%s.*" $path) $places)) -}}
    {{- if regexMatch "^[-+.0-9]" $value -}}{{- $_ := set $at $key (float64 $value) -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the layers run: the last word of the launch options, else what the job says, else what the chart says for the
embedded digits. `auto` is the CPU. */}}
{{- define "lockstep.device" -}}
{{- $device := dig "device" "auto" (.Values.job | default dict) | toString -}}
{{- if include "lockstep.digitsOnGpus" . -}}{{- $device = "cuda" -}}{{- end -}}
{{- range .Values.cluster.launchOptions -}}
  {{- if hasPrefix "device=" . -}}{{- $device = trimPrefix "device=" . -}}{{- end -}}
{{- end -}}
{{- $device -}}
{{- end -}}

{{/* Whether the embedded digits train on GPUs: without a job there is nowhere to set the device. Reads the values directly, since
lockstep.groups needs the device. */}}
{{- define "lockstep.digitsOnGpus" -}}
{{- if not .Values.job -}}
  {{- $common := .Values.cluster.gpusPerNode -}}
  {{- range .Values.groups | default (list dict) }}{{ if gt (dig "gpusPerNode" $common . | int) 0 }}yes{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The run's directory below the volume's root. Namespaces may share a volume, so theirs is in it. */}}
{{- define "lockstep.directory" -}}
{{- default (printf "%s/%s" .Release.Namespace (include "lockstep.fullname" .)) .Values.persistence.directory -}}
{{- end -}}

{{/* The name that metrics carry: that of the directory. */}}
{{- define "lockstep.runName" -}}
{{- include "lockstep.directory" . | base -}}
{{- end -}}

{{/* Where checkpoints, events and logs are. */}}
{{- define "lockstep.runDirectory" -}}
/runs/{{ include "lockstep.directory" . }}
{{- end -}}

{{/* Whether pods share a run directory. */}}
{{- define "lockstep.persistent" -}}
{{- if or .Values.persistence.enabled .Values.persistence.existingClaim }}yes{{ end -}}
{{- end -}}

{{/* What the chart decides in place of the job, and the launch options: a JSON list of words. */}}
{{- define "lockstep.launchWords" -}}
{{- $words := list (printf "run_directory=%s" (include "lockstep.runDirectory" .)) -}}
{{- if .Values.sweep -}}{{- $words = list "--directory" (include "lockstep.runDirectory" .) -}}{{- end -}}
{{- $words = concat $words (list "telemetry.prometheus.address='::'" (printf "telemetry.prometheus.port=%d" (int .Values.observability.port))) -}}
{{- $metrics := dig "telemetry" "prometheus" dict (.Values.job | default dict) -}}
{{- if not (and (kindIs "map" $metrics) (hasKey $metrics "linger")) -}}
  {{- $words = append $words "telemetry.prometheus.linger=auto" -}}{{/* else the end of a run looks like its loss */}}
{{- end -}}
{{- $all := include "lockstep.groups" . | fromJson -}}
{{- if and (not .Values.job) (not (include "lockstep.persistent" .)) (gt (int $all.pods) 1) -}}
  {{- $words = append $words "checkpoint=never" -}}
{{- end -}}
{{- if include "lockstep.digitsOnGpus" . -}}{{- $words = append $words "device=cuda" -}}{{- end -}}
{{- concat $words .Values.cluster.launchOptions | toJson -}}
{{- end -}}

{{/* Whether any pod may lead, and not only index 0 of the first group: a lock in the run directory decides. Parts of a model
that are tied to groups cannot go on without a pod; a trial of a sweep is in one pod. */}}
{{- define "lockstep.anyLeads" -}}
{{- $tied := and (not .Values.sweep) (kindIs "slice" (dig "parallel" "parts" 1 (.Values.job | default dict))) -}}
{{- if and (include "lockstep.persistent" .) (gt (int .Values.cluster.takeoverSeconds) 0) (ne .Values.mode "mpijob") (not $tied) }}yes{{ end -}}
{{- end -}}

{{/* Eight digits over all that a Job cannot change while it exists, and over the job itself. The number of an elastic
job's pods is no part of it, nor is anything that two renders could see differently. */}}
{{- define "lockstep.hash" -}}
{{- $root := . -}}
{{- $parts := list .Values.mode (include "lockstep.jobFile" .) (include "lockstep.hosts" (dict "root" . "hash" "")) -}}
{{- /* Limits of a plain Job are mutable; those of a JobSet are not. An MPIJob has its own. */}}
{{- $set := ne (include "lockstep.isSet" .) "" -}}
{{- $limits := ternary (include "lockstep.deadline" .) "" (or $set (eq .Values.mode "mpijob")) -}}
{{- range $index, $group := (include "lockstep.groups" . | fromJson).groups -}}
  {{- $job := dict "root" $root "group" $group "index" $index "job" "" "config" "" "limits" $limits -}}
  {{- $spec := omit (include "lockstep.jobSpec" $job | fromYaml) "parallelism" "completions" -}}
  {{- $parts = append $parts (ternary $spec (omit $spec "backoffLimit") $set) -}}
{{- end -}}
{{- if eq .Values.mode "mpijob" -}}
  {{- $parts = concat $parts (list (int .Values.cluster.launcherBackoffLimit) .Values.cluster.ttlSecondsAfterFinished) -}}
{{- end -}}
{{- $parts = append $parts .Values.cluster.managedBy -}}
{{- $parts | toJson | sha256sum | trunc 8 -}}
{{- end -}}

{{/* The Job of a group: (dict "root" $ "group" GROUP "hash" HASH). A JobSet numbers its Jobs, of which a group has one. */}}
{{- define "lockstep.jobName" -}}
{{- if include "lockstep.isSet" .root -}}
{{- printf "%s-%s-0" (include "lockstep.hashedName" .) .group.name -}}
{{- else -}}
{{- printf "%s-%s-%s" (include "lockstep.fullname" .root) .group.name .hash -}}
{{- end -}}
{{- end -}}

{{/* Of the ConfigMap, and of the one object of all groups, an MPIJob or a JobSet: (dict "root" $ "hash" HASH) */}}
{{- define "lockstep.hashedName" -}}
{{- printf "%s-%s" (include "lockstep.fullname" .root) .hash -}}
{{- end -}}

{{/* The spec of a group's Job: (dict "root" $ "group" GROUP "index" INDEX "job" NAME "config" CONFIGMAP "limits" TEXT) */}}
{{- define "lockstep.jobSpec" -}}
completionMode: Indexed
completions: {{ int .group.replicas }}
parallelism: {{ int .group.replicas }}
backoffLimit: {{ int .root.Values.cluster.backoffLimit }}
# Counts disruptions per index; otherwise the wait for a replacement would double with each disruption of any pod. Unlimited,
# since this field is immutable: backoffLimit is the limit.
backoffLimitPerIndex: 2147483647
maxFailedIndexes: 0
podReplacementPolicy: Failed
{{- with .limits }}
{{ . }}
{{- end }}
{{- if include "lockstep.anyLeads" .root }}
successPolicy:
  rules: [{succeededCount: 1}]  # the leader's; the others end after it
{{- else if eq (int .index) 0 }}
successPolicy:
  rules: [{succeededIndexes: "0", succeededCount: 1}]
{{- end }}
podFailurePolicy: {{- include "lockstep.failurePolicy" .root | nindent 2 }}
template:
  {{- include "lockstep.podTemplate" . | nindent 2 }}
{{- end -}}

{{/* What a pod's end means for its Job: docs/exit-codes.md. */}}
{{- define "lockstep.failurePolicy" -}}
{{- $container := include "lockstep.container" . -}}
rules:
  - action: Ignore  # evicted, preempted, drained
    onPodConditions: [{type: DisruptionTarget, status: "True"}]
  - action: Ignore  # wrote a checkpoint after a signal; its node is unfit
    onExitCodes: {containerName: {{ $container }}, operator: In, values: [75, 79]}
  - action: FailJob  # would fail again
    onExitCodes: {containerName: {{ $container }}, operator: In, values: [64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 76, 77, 78]}
{{- end -}}
