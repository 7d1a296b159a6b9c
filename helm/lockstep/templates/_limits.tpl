{{/* Whether and how long it may run, and what a queue wants to know: the same for a Job and for an MPIJob's runPolicy. */}}
{{- define "lockstep.limits" -}}
{{- if .Values.cluster.suspend }}
suspend: true
{{- end }}
{{- with include "lockstep.deadline" . }}
{{ . }}
{{- end }}
{{- with include "lockstep.timeToLive" . }}
{{ . }}
{{- end }}
{{- with include "lockstep.managedBy" . }}
{{ . }}
{{- end }}
{{- end -}}

{{/* 0 means immediately, null never. */}}
{{- define "lockstep.timeToLive" -}}
{{- $seconds := .Values.cluster.ttlSecondsAfterFinished -}}
{{- if not (kindIs "invalid" $seconds) }}ttlSecondsAfterFinished: {{ int $seconds }}{{ end -}}
{{- end -}}

{{/* For the top-level object of a mode only. */}}
{{- define "lockstep.managedBy" -}}
{{- with .Values.cluster.managedBy }}managedBy: {{ . | quote }}{{ end -}}
{{- end -}}

{{/* What a JobSet leaves to its Jobs. */}}
{{- define "lockstep.deadline" -}}
{{- with int .Values.cluster.activeDeadlineSeconds }}activeDeadlineSeconds: {{ . }}{{ end -}}
{{- end -}}

{{- define "lockstep.queueLabels" -}}
{{- with .Values.queue.name }}
kueue.x-k8s.io/queue-name: {{ . | toYaml }}
{{- end }}
{{- with .Values.queue.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . | toYaml }}
{{- end }}
{{- end -}}
