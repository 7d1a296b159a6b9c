{{/* What values.schema.json cannot say. One message each: the value, what was expected and found, what to try. */}}
{{- define "lockstep.checks" -}}
{{- $v := .Values -}}
{{- $all := include "lockstep.groups" . | fromJson -}}
{{- include "lockstep.checkGroups" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkClaims" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkPodCounts" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkDevice" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkRunDirectory" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkPorts" (dict "root" . "all" $all) -}}
{{- include "lockstep.checkOverrides" . -}}
{{- include "lockstep.checkSweep" . -}}
{{- include "lockstep.checkSidecars" . -}}
{{- include "lockstep.checkResources" $all -}}
{{- include "lockstep.checkScheduling" . -}}
{{- include "lockstep.checkMonitors" . -}}
{{- $sources := list -}}
{{- range list "existingClaim" "image" "fetchSize" -}}{{- if get $v.data . -}}{{- $sources = append $sources . -}}{{- end -}}{{- end -}}
{{- if gt (len $sources) 1 -}}
  {{- fail (printf "data: expected one of existingClaim, image and fetchSize, found %s" (join " and " $sources)) -}}
{{- end -}}
{{- include "lockstep.checkDataPaths" (dict "root" . "sources" $sources "groups" $all.groups) -}}
{{- end -}}

{{/* gpusPerNode requires `device: cuda`, and `device: cuda` requires GPUs: gpusPerNode, a claim (which may be anything), or
NVIDIA_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES in the environment. */}}
{{- define "lockstep.checkDevice" -}}
{{- $device := include "lockstep.device" .root -}}
{{- range .all.groups -}}
  {{- $gpus := int .gpusPerNode -}}
  {{- if or (hasKey .resources.limits .gpuResource) (hasKey .resources.requests .gpuResource) -}}
    {{- fail (printf "group %s: expected GPUs in gpusPerNode, found %s in resources; set gpusPerNode" .name .gpuResource) -}}
  {{- end -}}
  {{- $visible := not (empty .resourceClaims) -}}
  {{- range .env -}}
    {{- if has .name (list "NVIDIA_VISIBLE_DEVICES" "CUDA_VISIBLE_DEVICES") -}}{{- $visible = true -}}{{- end -}}
  {{- end -}}
  {{- if and $gpus (ne $device "cuda") -}}
    {{- fail (printf "job.device: expected cuda, since the pods of group %s hold gpusPerNode %d, found %s, which trains on the CPU; set job.device=cuda, or gpusPerNode to 0" .name $gpus $device) -}}
  {{- end -}}
  {{- if and (not $gpus) (eq $device "cuda") (not $visible) -}}
    {{- fail (printf "cluster.gpusPerNode: expected at least 1 with device: cuda, found 0 in group %s; set gpusPerNode or resourceClaims, or job.device=cpu; where pods get GPUs in another way, set NVIDIA_VISIBLE_DEVICES in cluster.env" .name) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* An older cluster would drop the claims without a word, and start the pods without GPUs. */}}
{{- define "lockstep.checkClaims" -}}
{{- range .all.groups -}}
  {{- if and .resourceClaims (not ($.root.Capabilities.APIVersions.Has "resource.k8s.io/v1")) -}}
    {{- fail (printf "group %s: expected a cluster that knows resource.k8s.io/v1 (Kubernetes 1.34 or later) for its resourceClaims, found %s without it; set gpusPerNode instead" .name $.root.Capabilities.KubeVersion.Version) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Quantities that a cluster would refuse, or take for something else than what was meant. */}}
{{- define "lockstep.checkResources" -}}
{{- range $group := .groups -}}
  {{- range $kind, $amounts := $group.resources -}}
    {{- if not (has $kind (list "limits" "requests")) -}}
      {{- fail (printf "resources: expected limits and requests, found %s beside them in group %s; set resources.limits.%s, which the request follows" $kind $group.name $kind) -}}
    {{- end -}}
    {{- range $name, $amount := $amounts -}}
      {{- $place := printf "group %s: resources.%s.%s" $group.name $kind $name -}}
      {{- if not (regexMatch "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$" (toString $amount)) -}}
        {{- fail (printf "%s: expected a quantity, such as 4, 500m or 64Gi, found %v" $place $amount) -}}
      {{- end -}}
      {{- if and (eq $name "memory") (lt (include "lockstep.amount" $amount | float64) 1048576.0) -}}
        {{- fail (printf "%s: expected at least 1Mi, found %v, which is in bytes; write 512Mi or 64Gi" $place $amount) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- range $name, $amount := $group.resources.requests -}}
    {{- $most := get $group.resources.limits $name | default $amount -}}
    {{- if gt (include "lockstep.amount" $amount | float64) (include "lockstep.amount" $most | float64) -}}
      {{- fail (printf "group %s: resources.requests.%s: expected at most the limit, which is %v, found %v; set resources.limits.%s, to null for none" $group.name $name $most $amount $name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A quantity of Kubernetes as a number. */}}
{{- define "lockstep.amount" -}}
{{- $text := toString . -}}
{{- $unit := regexFind "[A-Za-z]+$" $text -}}
{{- $units := dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- mulf (trimSuffix $unit $text | float64) (get $units $unit) | printf "%g" -}}
{{- end -}}

{{/* What a queue does by itself nobody else may do. */}}
{{- define "lockstep.checkScheduling" -}}
{{- $v := .Values -}}
{{- if and (ne $v.cluster.gang "never") (eq $v.mode "mpijob") -}}
  {{- fail (printf "cluster.gang: expected never in mode mpijob, whose operator makes PodGroups itself (--gang-scheduling), found %s; use mode indexedJob or jobset" $v.cluster.gang) -}}
{{- end -}}
{{- if and (ne $v.cluster.gang "never") $v.sweep -}}
  {{- fail (printf "cluster.gang: expected never with a sweep, which begins with the pods that there are, found %s; leave it out" $v.cluster.gang) -}}
{{- end -}}
{{- if and $v.cluster.gangQueue (ne $v.cluster.gang "volcano") -}}
  {{- fail (printf "cluster.gangQueue: expected none with cluster.gang %s, found %s; set cluster.gang=volcano, or queue.name for Kueue" $v.cluster.gang $v.cluster.gangQueue) -}}
{{- end -}}
{{- if and $v.cluster.avoidUnfitNodes (eq $v.mode "mpijob") -}}
  {{- fail "cluster.avoidUnfitNodes: expected false in mode mpijob, whose operator replaces pods, found true; use mode indexedJob or jobset" -}}
{{- end -}}
{{- if and $v.cluster.avoidUnfitNodes (ne $v.queue.topology "never") -}}
  {{- fail (printf "cluster.avoidUnfitNodes: expected false with queue.topology %s, by which the queue chooses nodes, found true; set one of the two" $v.queue.topology) -}}
{{- end -}}
{{- if and $v.cluster.suspend $v.queue.name -}}
  {{- fail (printf "cluster.suspend: expected false in queue %s, which itself suspends and starts the Job, found true; hold its workload instead: kubectl patch workload NAME --type=merge -p '{\"spec\": {\"active\": false}}'" $v.queue.name) -}}
{{- end -}}
{{- if and (eq $v.cluster.dnsPolicy "None") (not (dig "nameservers" list $v.cluster.dnsConfig)) -}}
  {{- fail "cluster.dnsPolicy: expected nameservers in cluster.dnsConfig with None, found none; name some that know the pods" -}}
{{- end -}}
{{- if and $v.security.certificates.configMap $v.security.certificates.secret -}}
  {{- fail "security.certificates: expected one of configMap and secret, found both" -}}
{{- end -}}
{{- if and $v.cluster.topologySpreadConstraints (ne $v.queue.topology "never") -}}
  {{- fail (printf "cluster.topologySpreadConstraints: expected none with queue.topology %s, by which the queue places the pods, found %d; set one of the two" $v.queue.topology (len $v.cluster.topologySpreadConstraints)) -}}
{{- end -}}
{{- end -}}

{{/* Each rank of a pod has its own metrics port, counted from observability.port. */}}
{{- define "lockstep.checkPorts" -}}
{{- $first := int .root.Values.observability.port -}}
{{- $last := add $first (int .all.slots) -1 | int -}}
{{- $ssh := int .root.Values.network.sshPort -}}
{{- if gt $last 65535 -}}
  {{- fail (printf "observability.port: expected at most %d, since the %d ranks of a pod have a port each, found %d" (sub 65536 (int .all.slots)) (int .all.slots) $first) -}}
{{- end -}}
{{- if and (ge $ssh $first) (le $ssh $last) -}}
  {{- fail (printf "network.sshPort: expected none of the ports of the metrics, which are %d to %d, found %d; set another, or observability.port" $first $last $ssh) -}}
{{- end -}}
{{- end -}}

{{/* What the chart decides in place of the job may not be said there otherwise. */}}
{{- define "lockstep.checkOverrides" -}}
{{- $job := .Values.job | default dict -}}
{{- $directory := include "lockstep.runDirectory" . -}}
{{- $said := dig "run_directory" "" $job -}}
{{- if and $said (ne (toString $said) $directory) -}}
  {{- fail (printf "job.run_directory: expected none, since the chart runs in %s, found %s; set persistence.directory, and leave this out (--set job.run_directory=null)" $directory $said) -}}
{{- end -}}
{{- $metrics := dig "telemetry" "prometheus" dict $job -}}
{{- if kindIs "map" $metrics -}}
  {{- $port := dig "port" 0 $metrics | int -}}
  {{- if and (gt $port 0) (ne $port (int .Values.observability.port)) -}}
    {{- fail (printf "job.telemetry.prometheus.port: expected observability.port, which is %d, found %d; set observability.port=%d, or leave this out" (int .Values.observability.port) $port $port) -}}
  {{- end -}}
  {{- $address := dig "address" "::" $metrics | toString -}}
  {{- if not (has $address (list "::" "0.0.0.0")) -}}
    {{- fail (printf "job.telemetry.prometheus.address: expected :: or 0.0.0.0, where a Prometheus of the cluster reaches it, found %s; leave this out, and say in security.networkPolicy.metricsFrom who may read metrics" $address) -}}
  {{- end -}}
{{- end -}}
{{- range .Values.cluster.launchOptions -}}
  {{- if hasPrefix "run_directory=" . -}}
    {{- fail (printf "cluster.launchOptions: expected no run_directory, since the chart decides it, found %s; set persistence.directory" .) -}}
  {{- end -}}
  {{- if or (hasPrefix "telemetry.prometheus.port=" .) (hasPrefix "telemetry.prometheus.address=" .) -}}
    {{- fail (printf "cluster.launchOptions: expected no port and address of metrics, since the chart decides them, found %s; set observability.port" .) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The journal and the trials outlive pods, and the chart says where they are. */}}
{{- define "lockstep.checkSweep" -}}
{{- with .Values.sweep -}}
  {{- if not (include "lockstep.persistent" $) -}}
    {{- fail "sweep: expected a volume for the journal and the trials, found none; set persistence.enabled=true or persistence.existingClaim" -}}
  {{- end -}}
  {{- if eq $.Values.mode "mpijob" -}}
    {{- fail "sweep: expected mode indexedJob or jobset, found mpijob, whose launcher alone may lead; use mode indexedJob" -}}
  {{- end -}}
  {{- if $.Values.cluster.checkHosts -}}
    {{- fail "cluster.checkHosts: expected false with a sweep, whose trials are in one pod each, found true; use helm test" -}}
  {{- end -}}
  {{- with .directory -}}
    {{- fail (printf "sweep.directory: expected none, since the chart searches in %s, found %s; set persistence.directory, and leave this out" (include "lockstep.runDirectory" $) .) -}}
  {{- end -}}
  {{- with .job -}}
    {{- fail (printf "sweep.job: expected none, since the pods have no such file, found %s; give the job beside the sweep: -f %s" . .) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A sidecar that is not restarted is an init container: it would have to end before the training begins. */}}
{{- define "lockstep.checkSidecars" -}}
{{- range $index, $sidecar := .Values.cluster.sidecars -}}
  {{- $policy := dig "restartPolicy" "Always" $sidecar -}}
  {{- if ne $policy "Always" -}}
    {{- fail (printf "cluster.sidecars[%d]: expected restartPolicy Always, found %s; leave it out, or use cluster.initContainers" $index $policy) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Files below /data want something that is mounted there, in every pod. They are named in the job, in what a sweep tries,
and in overrides, such as data.train={images: /data/cifar}: (dict "root" $ "sources" SOURCES "groups" GROUPS) */}}
{{- define "lockstep.checkDataPaths" -}}
{{- $values := list (.root.Values.job | default dict) (.root.Values.sweep | default dict) | toJson -}}
{{- $path := regexFind "\"/data(/[^\"]*)?\"" $values | trimAll "\"" -}}
{{- range .root.Values.cluster.launchOptions -}}
  {{- $path = default (regexFind "(^|[= ,:\\[{\"'])/data(/[^ ,\\]}\"']*)?([ ,\\]}\"']|$)" . | trimAll "= ,:[]{}\"'") $path -}}
{{- end -}}
{{- if and $path (not .sources) -}}
  {{- range .groups -}}
    {{- $mounted := false -}}
    {{- range .volumeMounts -}}
      {{- if or (eq .mountPath "/data") (hasPrefix "/data/" .mountPath) -}}{{- $mounted = true -}}{{- end -}}
    {{- end -}}
    {{- if not $mounted -}}
      {{- fail (printf "data: expected a volume for %s, found none in group %s; set data.existingClaim, data.image or data.fetchSize, or mount one of yours (cluster.volumes, cluster.volumeMounts)" $path .name) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* How many trials of a sweep the launch options let share a GPU. */}}
{{- define "lockstep.trialsPerGpu" -}}
{{- $found := "1" -}}
{{- if .Values.sweep -}}
  {{- $words := .Values.cluster.launchOptions -}}
  {{- range $index, $word := $words -}}
    {{- if hasPrefix "--trials-per-gpu=" $word -}}{{- $found = trimPrefix "--trials-per-gpu=" $word -}}{{- end -}}
    {{- if and (eq $word "--trials-per-gpu") (lt (add1 $index) (len $words)) -}}{{- $found = index $words (add1 $index) -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{- define "lockstep.checkGroups" -}}
{{- $names := list -}}
{{- $withGpus := 0 -}}
{{- $without := 0 -}}
{{- range .all.groups -}}
  {{- if has .name $names -}}{{- fail (printf "groups: expected names that differ, found '%s' twice" .name) -}}{{- end -}}
  {{- $names = append $names .name -}}
  {{- $gpus := int .gpusPerNode -}}
  {{- if $gpus -}}{{- $withGpus = add1 $withGpus -}}{{- end -}}
  {{- if not (or $gpus .resourceClaims) -}}{{- $without = add1 $without -}}{{- end -}}
  {{- if gt $gpus 0 -}}
    {{- $ranks := include "lockstep.trialsPerGpu" $.root | int -}}
    {{- if gt (int .slots) (mul $gpus $ranks) -}}
      {{- fail (printf "group %s: expected at most %s per GPU, found slots %d with gpusPerNode %d" .name (eq $ranks 1 | ternary "one rank" (printf "the %d trials of --trials-per-gpu" $ranks)) (int .slots) $gpus) -}}
    {{- end -}}
    {{- if and (gt $gpus 1) (or (contains "mig-" .gpuResource) (hasSuffix ".shared" .gpuResource)) -}}
      {{- fail (printf "group %s: expected gpusPerNode 1 with parts of a GPU (%s), found %d: NCCL does not join parts of one GPU; ask for more replicas" .name .gpuResource $gpus) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and (gt (int $withGpus) 0) (gt (int $without) 0) -}}
  {{- fail "groups: expected GPUs in all of them or in none, found both: all ranks of a job need the same kind of device; set gpusPerNode or resourceClaims" -}}
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
{{- if include "lockstep.isSet" .root -}}
  {{- range $value := list (dict "name" "cluster.maxReplicas" "found" $v.cluster.maxReplicas) (dict "name" "queue.minReplicas" "found" $v.queue.minReplicas) -}}
    {{- if gt (int $value.found) 0 -}}
      {{- fail (printf "%s: expected 0 in mode %s, since a JobSet keeps the size that it has, found %d; use mode indexedJob" $value.name $v.mode (int $value.found)) -}}
    {{- end -}}
  {{- end -}}
  {{- include "lockstep.checkSetNames" . -}}
{{- end -}}
{{- if and (eq $v.mode "trainjob") (include "lockstep.timeToLive" .root) -}}
  {{- fail (printf "cluster.ttlSecondsAfterFinished: expected null in mode trainjob, whose controller would make a deleted JobSet anew, found %d; use mode jobset" (int $v.cluster.ttlSecondsAfterFinished)) -}}
{{- end -}}
{{- if not .root.Values.sweep -}}{{- include "lockstep.checkParts" . -}}{{- end -}}
{{- end -}}

{{/* JobSet counts the characters of a pod's name with the suffix that the Job adds, of six. */}}
{{- define "lockstep.checkSetNames" -}}
{{- $root := .root -}}
{{- range .all.groups -}}
  {{- $job := include "lockstep.jobName" (dict "root" $root "group" . "hash" "12345678") -}}
  {{- $length := add (len (printf "%s-%d" $job (sub .replicas 1))) 6 -}}
  {{- if gt $length 63 -}}
    {{- fail (printf "group %s: expected names of pods of at most 63 characters in mode %s, found %d; set fullnameOverride or the group's name, which now have %d and %d, to shorter ones" .name $root.Values.mode $length (len (include "lockstep.fullname" $root)) (len .name)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Ranks of a part divide all micro-batches among them; a whole model is one part. What becomes of branches only the program knows. */}}
{{- define "lockstep.checkParts" -}}
{{- $job := .root.Values.job | default dict -}}
{{- $micro_batches := dig "micro_batches" 0 $job -}}
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
{{- if and $counted (gt (int $micro_batches) 0) (gt (int .all.ranks) (mul (int $micro_batches) (int $parts) | int)) -}}
  {{- $of := ternary (printf "%d parts of " (int $parts)) "" (gt (int $parts) 1) -}}
  {{- fail (printf "job.micro_batches: expected at least as many micro-batches as ranks, found %s%d micro-batches and %d ranks; use fewer pods or more micro-batches" $of (int $micro_batches) (int .all.ranks)) -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.checkRunDirectory" -}}
{{- $job := .root.Values.job | default dict -}}
{{- if and $job (not (include "lockstep.persistent" .root)) (gt (int .all.pods) 1) -}}
  {{- $checkpoint := dig "checkpoint" "" $job -}}
  {{- if ne (toString $checkpoint) "never" -}}
    {{- $found := "none" -}}
    {{- if kindIs "map" $checkpoint -}}{{- with get $checkpoint "copy_to" -}}{{- $found = printf "none, and copies in %s do not take its place" . -}}{{- end -}}{{- end -}}
    {{- fail (printf "persistence: expected a volume for the checkpoints that all %d pods share, found %s; set persistence.enabled=true or persistence.existingClaim, or set `checkpoint: never` in the job" (int .all.pods) $found) -}}
  {{- end -}}
{{- end -}}
{{- if and .all.elastic (not (include "lockstep.persistent" .root)) -}}
  {{- fail "cluster.maxReplicas: expected a volume for the checkpoints through which an elastic job changes its size, found none; set persistence.enabled=true or persistence.existingClaim" -}}
{{- end -}}
{{- end -}}

{{/* Refuses changes to immutable fields of an existing claim, which holds the model: (dict "root" $ "found" CLAIM). */}}
{{- define "lockstep.checkClaim" -}}
{{- $wanted := .root.Values.persistence -}}
{{- if .found -}}
  {{- $class := get .found.spec "storageClassName" -}}
  {{- if and (not (kindIs "invalid" $wanted.storageClassName)) (ne $wanted.storageClassName $class) -}}
    {{- fail (printf "persistence.storageClassName: expected that of the claim %s, which cannot be changed, %s, found %s; set fullnameOverride or existingClaim for another" .found.metadata.name (quote $class) (quote $wanted.storageClassName)) -}}
  {{- end -}}
  {{- if not (has $wanted.accessMode .found.spec.accessModes) -}}
    {{- fail (printf "persistence.accessMode: expected that of the claim %s, which cannot be changed, %s, found %s; set fullnameOverride or existingClaim for another" .found.metadata.name (first .found.spec.accessModes) $wanted.accessMode) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* An object whose kind the cluster lacks: (dict "root" $ "kind" GROUP/VERSION/KIND "value" VALUE) */}}
{{- define "lockstep.requireKind" -}}
{{- if not (.root.Capabilities.APIVersions.Has .kind) -}}
  {{- fail (printf "%s: expected a cluster that knows %s, found none; install its CRDs, or with `helm template` say --api-versions %s" .value .kind .kind) -}}
{{- end -}}
{{- end -}}
