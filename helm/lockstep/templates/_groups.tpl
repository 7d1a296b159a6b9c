{{/* Groups of pods with every value filled in: {groups: [{name, replicas, hosts, slots, gpusPerNode, ...}], ranks, pods,
slots, elastic}; slots is the most of a pod. hosts is the number of lines in the hostfile: all pods that an elastic job may ever have. */}}

{{- define "lockstep.groupDefaults" -}}
{{- $c := .Values.cluster -}}
{{- dict "replicas" $c.replicas "gpusPerNode" $c.gpusPerNode "gpuResource" $c.gpuResource "slots" $c.slots
  "resources" .Values.resources "nodeSelector" .Values.nodeSelector "tolerations" .Values.tolerations
  "affinity" .Values.affinity "priorityClassName" $c.priorityClassName "runtimeClassName" $c.runtimeClassName
  "podLabels" $c.podLabels "podAnnotations" $c.podAnnotations "env" $c.env | toJson -}}
{{- end -}}

{{- define "lockstep.groups" -}}
{{- $root := . -}}
{{- $elastic := gt (int .Values.cluster.maxReplicas) 0 -}}
{{- $groups := list -}}
{{- $ranks := 0 -}}
{{- $pods := 0 -}}
{{- $slots := 1 -}}
{{- range $own := default (list (dict "name" "worker")) .Values.groups -}}
  {{- $group := include "lockstep.groupDefaults" $root | fromJson -}}
  {{- range $key, $value := $own -}}
    {{- if kindIs "map" $value -}}
      {{- $_ := set $group $key (mergeOverwrite (get $group $key) (deepCopy $value)) -}}
    {{- else -}}
      {{- $_ := set $group $key $value -}}
    {{- end -}}
  {{- end -}}
  {{- if eq (int $group.slots) 0 -}}{{- $_ := set $group "slots" (max 1 (int $group.gpusPerNode)) -}}{{- end -}}
  {{- $hosts := ternary $root.Values.cluster.maxReplicas $group.replicas $elastic -}}
  {{- $_ := set $group "hosts" $hosts -}}
  {{- $groups = append $groups $group -}}
  {{- $slots = max $slots $group.slots -}}
  {{- $pods = add $pods $group.replicas -}}
  {{- $ranks = add $ranks (mul $group.replicas $group.slots) -}}
{{- end -}}
{{- dict "groups" $groups "ranks" $ranks "pods" $pods "slots" $slots "elastic" $elastic | toJson -}}
{{- end -}}

{{/* Fewest pods to start with. */}}
{{- define "lockstep.expectHosts" -}}
{{- $all := include "lockstep.groups" . | fromJson -}}
{{- if $all.elastic }}{{ .Values.cluster.minReplicas }}
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
{{- $name := include "lockstep.mpiJobName" (dict "root" $root "hash" $hash) }}
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
