{{/* Groups of pods with every value filled in: {groups: [{name, replicas, hosts, slots, gpusPerNode, ...}], ranks, pods,
slots, elastic}; slots is the most of a pod. hosts is the number of lines in the hostfile: all pods that an elastic job may
ever have. */}}

{{- define "lockstep.groupDefaults" -}}
{{- $c := .Values.cluster -}}
{{- dict "replicas" $c.replicas "gpusPerNode" $c.gpusPerNode "gpuResource" $c.gpuResource "resourceClaims" $c.resourceClaims "slots" $c.slots
  "resources" (merge (dict) .Values.resources (dict "limits" dict "requests" dict)) "nodeSelector" .Values.nodeSelector "tolerations" .Values.tolerations
  "affinity" .Values.affinity "priorityClassName" $c.priorityClassName "runtimeClassName" $c.runtimeClassName
  "podLabels" $c.podLabels "podAnnotations" $c.podAnnotations "env" $c.env "image" .Values.image
  "volumes" $c.volumes "volumeMounts" $c.volumeMounts "podSecurityContext" .Values.security.podSecurityContext
  "containerSecurityContext" .Values.security.containerSecurityContext "podPatch" dict | toJson -}}
{{- end -}}

{{/* Merge keys by list: those of Kubernetes, and one for tolerations. A group's item replaces the common one with the same
key; an item of a podPatch is merged with it. */}}
{{- define "lockstep.listKeys" -}}
{{- dict "env" "name" "volumes" "name" "volumeMounts" "mountPath" "resourceClaims" "name" "containers" "name" "initContainers" "name"
  "ports" "containerPort" "volumeDevices" "devicePath" "claims" "name" "imagePullSecrets" "name" "hostAliases" "ip"
  "tolerations" "key" "topologySpreadConstraints" "topologyKey" "schedulingGates" "name" | toJson -}}
{{- end -}}

{{/* Items of all groups and of one: (dict "common" LIST "own" LIST "key" KEY). */}}
{{- define "lockstep.mergedList" -}}
{{- $key := .key -}}
{{- $names := list -}}
{{- range .own -}}{{- $names = append $names (get . $key) -}}{{- end -}}
{{- $items := list -}}
{{- range .common -}}{{- if not (has (get . $key) $names) -}}{{- $items = append $items . -}}{{- end -}}{{- end -}}
{{- concat $items .own | toJson -}}
{{- end -}}

{{- define "lockstep.groups" -}}
{{- $root := . -}}
{{- $elastic := gt (int .Values.cluster.maxReplicas) 0 -}}
{{- $listKeys := include "lockstep.listKeys" . | fromJson -}}
{{- $device := include "lockstep.device" . -}}
{{- $groups := list -}}
{{- $ranks := 0 -}}
{{- $pods := 0 -}}
{{- $slots := 1 -}}
{{- range $own := default (list (dict "name" "worker")) .Values.groups -}}
  {{- $group := include "lockstep.groupDefaults" $root | fromJson -}}
  {{- /* A digest is of one image: it says nothing of a group's other one. */}}
  {{- with get $own "image" -}}
    {{- if and (or .repository .tag) (not .digest) -}}{{- $_ := set $group.image "digest" "" -}}{{- end -}}
  {{- end -}}
  {{- range $key, $value := $own -}}
    {{- if kindIs "map" $value -}}
      {{- $_ := set $group $key (mergeOverwrite (get $group $key) (deepCopy $value)) -}}
    {{- else if eq $key "tolerations" -}}
      {{- $_ := set $group $key (concat $group.tolerations $value | uniq) -}}
    {{- else if hasKey $listKeys $key -}}
      {{- $_ := set $group $key (include "lockstep.mergedList" (dict "common" (get $group $key) "own" $value "key" (get $listKeys $key)) | fromJsonArray) -}}
    {{- else -}}
      {{- $_ := set $group $key $value -}}
    {{- end -}}
  {{- end -}}
  {{- if eq (int $group.slots) 0 -}}{{- $_ := set $group "slots" (max 1 (int $group.gpusPerNode)) -}}{{- end -}}
  {{- include "lockstep.fillLimits" (dict "group" $group "gpus" (eq $device "cuda")) -}}
  {{- $hosts := ternary $root.Values.cluster.maxReplicas $group.replicas $elastic -}}
  {{- $_ := set $group "hosts" $hosts -}}
  {{- $groups = append $groups $group -}}
  {{- $slots = max $slots $group.slots -}}
  {{- $pods = add $pods $group.replicas -}}
  {{- $ranks = add $ranks (mul $group.replicas $group.slots) -}}
{{- end -}}
{{- dict "groups" $groups "ranks" $ranks "pods" $pods "slots" $slots "elastic" $elastic | toJson -}}
{{- end -}}

{{/* Replaces `auto` in a group's limits: (dict "group" GROUP "gpus" BOOLEAN). Per GPU it is what fits the smallest GPU nodes of
the clouds, with 4 CPUs and 16 GiB per GPU, some of which the node itself uses. */}}
{{- define "lockstep.fillLimits" -}}
{{- $limits := .group.resources.limits -}}
{{- $each := ternary (dict "cpu" 3 "memory" 12) (dict "cpu" 1 "memory" 1) .gpus -}}
{{- $count := int .group.gpusPerNode | default (int .group.slots) -}}
{{- range $name, $unit := dict "cpu" "" "memory" "Gi" -}}
  {{- if eq (get $limits $name | toString) "auto" -}}
    {{- $amount := mul $count (get $each $name) -}}
    {{- $_ := set $limits $name (ternary (printf "%d%s" $amount $unit) $amount (ne $unit "")) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Fewest pods to start with. A sweep needs none but its leader. */}}
{{- define "lockstep.expectHosts" -}}
{{- $all := include "lockstep.groups" . | fromJson -}}
{{- if .Values.sweep }}1
{{- else if $all.elastic }}{{ .Values.cluster.minReplicas }}
{{- else if gt (int .Values.queue.minReplicas) 0 }}{{ .Values.queue.minReplicas }}
{{- else }}{{ $all.pods }}{{ end -}}
{{- end -}}

{{/* The hostfile: (dict "root" $ "hash" HASH) */}}
{{- define "lockstep.hosts" -}}
{{- $root := .root -}}
{{- $hash := .hash -}}
{{- range (include "lockstep.groups" $root | fromJson).groups -}}
{{- $slots := int .slots -}}
{{- $hosts := int .hosts -}}
{{- if eq $root.Values.mode "mpijob" -}}
{{- $name := include "lockstep.hashedName" (dict "root" $root "hash" $hash) }}
{{ $name }}-launcher.{{ $name }} slots={{ $slots }}
{{- range $i := until (sub $hosts 1 | int) }}
{{ $name }}-worker-{{ $i }}.{{ $name }} slots={{ $slots }}
{{- end }}
{{- else -}}
{{- $name := include "lockstep.jobName" (dict "root" $root "group" . "hash" $hash) -}}
{{- range $i := until $hosts }}
{{ $name }}-{{ $i }}.{{ include "lockstep.fullname" $root }} slots={{ $slots }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
