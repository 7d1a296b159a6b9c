{{/* The team's namespace, which the release itself is not in: who trains there need not see it. */}}
{{- define "team.namespace" -}}
{{- default .Release.Name .Values.namespace.name -}}
{{- end -}}

{{- define "team.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* metadata of an object in the namespace: (dict "root" $ "name" NAME) */}}
{{- define "team.metadata" -}}
name: {{ .name }}
namespace: {{ include "team.namespace" .root | toYaml }}
labels:
  {{- include "team.labels" .root | nindent 2 }}
{{- end -}}
