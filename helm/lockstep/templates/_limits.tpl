{{/* How long it may take, and what a queue wants to know: the same for a Job and for an MPIJob's runPolicy. */}}
{{- define "lockstep.limits" -}}
{{- with int .Values.cluster.activeDeadlineSeconds }}
activeDeadlineSeconds: {{ . }}
{{- end }}
{{- with int .Values.cluster.ttlSecondsAfterFinished }}
ttlSecondsAfterFinished: {{ . }}
{{- end }}
{{- end -}}

{{- define "lockstep.queueLabels" -}}
{{- with .Values.queue.name }}
kueue.x-k8s.io/queue-name: {{ . }}
{{- end }}
{{- with .Values.queue.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . }}
{{- end }}
{{- end -}}
