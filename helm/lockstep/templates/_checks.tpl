{{/* What values.schema.json cannot say. One message each: the value, what was expected and found, what to try. */}}
{{- define "lockstep.checks" -}}
{{- $v := .Values -}}
{{- $all := include "lockstep.groups" . | fromJson -}}
{{- include "lockstep.checkGroups" (dict "all" $all) -}}
{{- include "lockstep.checkPodCounts" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkRunDirectory" (dict "root" . "all" $all) -}}
{{- $sources := list -}}
{{- range list "existingClaim" "image" "fetchSize" -}}{{- if get $v.data . -}}{{- $sources = append $sources . -}}{{- end -}}{{- end -}}
{{- if gt (len $sources) 1 -}}
  {{- fail (printf "data: expected one of existingClaim, image and fetchSize, found %s" (join " and " $sources)) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkGroups" -}}
{{- $names := list -}}
{{- $withGpus := 0 -}}
{{- range .all.groups -}}
  {{- if has .name $names -}}{{- fail (printf "groups: expected names that differ, found '%s' twice" .name) -}}{{- end -}}
  {{- $names = append $names .name -}}
  {{- $gpus := int .gpusPerNode -}}
  {{- if gt $gpus 0 -}}
    {{- $withGpus = add1 $withGpus -}}
    {{- if gt (int .slots) $gpus -}}
      {{- fail (printf "group %s: expected at most one rank per GPU, found slots %d with gpusPerNode %d" .name (int .slots) $gpus) -}}
    {{- end -}}
    {{- if and (gt $gpus 1) (contains "mig-" .gpuResource) -}}
      {{- fail (printf "group %s: expected gpusPerNode 1 with slices of a GPU (%s), found %d: NCCL does not join slices of one GPU; ask for more replicas" .name .gpuResource $gpus) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and (gt (int $withGpus) 0) (lt (int $withGpus) (len .all.groups)) -}}
  {{- fail "groups: expected GPUs in all of them or in none, found both: all ranks of a job need the same kind of device; set gpusPerNode" -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkPodCounts" -}}
{{- $v := .root.Values -}}
{{- $count := len .all.groups -}}
{{- $one := eq $count 1 -}}
{{- $replicas := int (first .all.groups).replicas -}}
{{- $fewest := int $v.cluster.minReplicas -}}
{{- $most := int $v.cluster.maxReplicas -}}
{{- if .all.elastic -}}
  {{- if not $one -}}
    {{- fail (printf "cluster.maxReplicas: expected one group in an elastic job, found %d; set maxReplicas to 0, or use one group" $count) -}}
  {{- end -}}
  {{- if or (lt $replicas $fewest) (gt $replicas $most) -}}
    {{- fail (printf "cluster.replicas: expected minReplicas %d to maxReplicas %d, found %d" $fewest $most $replicas) -}}
  {{- end -}}
  {{- if ne $v.queue.topology "never" -}}
    {{- fail "queue.topology: expected never with an elastic job, since Kueue cannot place elastic jobs by topology; set cluster.maxReplicas to 0" -}}
  {{- end -}}
{{- end -}}
{{- if gt (int $v.queue.minReplicas) 0 -}}
  {{- if not $one -}}
    {{- fail (printf "queue.minReplicas: expected one group, found %d: each group is a separate workload in the queue" $count) -}}
  {{- end -}}
  {{- if gt (int $v.queue.minReplicas) $replicas -}}
    {{- fail (printf "queue.minReplicas: expected at most replicas %d, found %d" $replicas (int $v.queue.minReplicas)) -}}
  {{- end -}}
{{- end -}}
{{- if eq $v.mode "mpijob" -}}
  {{- if or (not $one) .all.elastic (gt (int $v.queue.minReplicas) 0) -}}
    {{- fail "mode mpijob: expected one group of a fixed size, found several groups, cluster.maxReplicas or queue.minReplicas; use mode indexedJob" -}}
  {{- end -}}
  {{- if eq $v.network.profile "hostNetwork" -}}
    {{- fail "network.profile: expected tcp or rdmaSharedDevice in mode mpijob, found hostNetwork: pods could not identify themselves; use mode indexedJob" -}}
  {{- end -}}
  {{- if lt $replicas 2 -}}
    {{- fail "mode mpijob: expected at least 2 replicas (a launcher, which trains too, and a worker), found 1; use mode indexedJob" -}}
  {{- end -}}
{{- end -}}
{{- include "lockstep.checkParts" . -}}
{{- end -}}

{{/* Ranks of a part divide all shards among them; a whole model is one part. What becomes of branches only the program knows. */}}
{{- define "lockstep.checkParts" -}}
{{- $job := .root.Values.job | default dict -}}
{{- $shards := dig "shards" 0 $job -}}
{{- $parts := dig "parallel" "parts" 1 $job -}}
{{- if kindIs "slice" $parts -}}
  {{- $ranks := 0 -}}
  {{- range $parts -}}{{- $ranks = add $ranks (int (dig "ranks" 0 .)) -}}{{- end -}}
  {{- if and (gt (int $ranks) 0) (ne (int $ranks) (int .all.ranks)) -}}
    {{- fail (printf "job.parallel.parts: expected the ranks of all parts to be the %d of all pods, found %d; the first part has the first ranks, group by group" (int .all.ranks) (int $ranks)) -}}
  {{- end -}}
  {{- $parts = len $parts -}}
{{- end -}}
{{- $counted := not (kindIs "map" $parts) -}}
{{- if and $counted (kindIs "float64" $shards) (gt (int $shards) 0) (gt (int .all.ranks) (mul (int $shards) (int $parts) | int)) -}}
  {{- $of := ternary (printf "%d parts of " (int $parts)) "" (gt (int $parts) 1) -}}
  {{- fail (printf "job.shards: expected at least as many shards as ranks, found %s%d shards and %d ranks; use fewer pods or more shards" $of (int $shards) (int .all.ranks)) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkRunDirectory" -}}
{{- $job := .root.Values.job | default dict -}}
{{- if and $job (not (include "lockstep.persistent" .root)) (gt (int .all.pods) 1) -}}
  {{- if ne (toString (dig "checkpoint" "" $job)) "never" -}}
    {{- fail (printf "persistence: expected a volume for the checkpoints that all %d pods share, found none; set persistence.enabled=true or persistence.existingClaim, or set `checkpoint: never` in the job" (int .all.pods)) -}}
  {{- end -}}
{{- end -}}
{{- if and .all.elastic (not (include "lockstep.persistent" .root)) -}}
  {{- fail "cluster.maxReplicas: expected a volume for the checkpoints through which an elastic job changes its size, found none; set persistence.enabled=true or persistence.existingClaim" -}}
{{- end -}}
{{- end -}}

{{/* An object whose kind the cluster lacks: (dict "root" $ "kind" GROUP/VERSION/KIND "value" VALUE) */}}
{{- define "lockstep.requireKind" -}}
{{- if not (.root.Capabilities.APIVersions.Has .kind) -}}
  {{- fail (printf "%s: expected a cluster that knows %s, found none; install its CRDs, or with `helm template` say --api-versions %s" .value .kind .kind) -}}
{{- end -}}
{{- end -}}
