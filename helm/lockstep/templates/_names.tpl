{{/* Names and labels. A pod's host name is NAME-GROUP-HASH-INDEX and must be a DNS label: 30+1+16+1+8+1+4 <= 63. */}}

{{/* At most 30 characters of a name. What is cut ends with a hash of the whole, so that ...-lr01 and ...-lr02 stay two. */}}
{{- define "lockstep.short" -}}
{{- if gt (len .) 30 -}}
{{- printf "%s-%s" (trunc 23 . | trimSuffix "-") (sha256sum . | trunc 6) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "lockstep.name" -}}
{{- include "lockstep.short" (default .Chart.Name .Values.nameOverride) -}}
{{- end -}}

{{- define "lockstep.fullname" -}}
{{- include "lockstep.short" (default .Release.Name .Values.fullnameOverride) -}}
{{- end -}}

{{/* What all that is of the release has. */}}
{{- define "lockstep.instance" -}}
app.kubernetes.io/name: {{ include "lockstep.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{/* What selects the pods of the job, or of its test: (dict "root" $ "component" "training"), or "test". */}}
{{- define "lockstep.selector" -}}
{{ include "lockstep.instance" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of objects, but not of pods: a pod template must not change with the chart's version. */}}
{{- define "lockstep.labels" -}}
{{ include "lockstep.instance" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.cluster.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata of an object: (dict "root" $ "name" NAME "labels" MORE "annotations" MORE) */}}
{{- define "lockstep.metadata" -}}
name: {{ .name | toYaml }}
namespace: {{ .root.Release.Namespace | toYaml }}
labels:
  {{- include "lockstep.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.cluster.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of all that `helm test` has for itself. */}}
{{- define "lockstep.testName" -}}
{{- printf "%s-test" (include "lockstep.fullname" .) -}}
{{- end -}}

{{- define "lockstep.serviceAccount" -}}
{{- $account := .Values.security.serviceAccount -}}
{{- default (ternary (include "lockstep.fullname" .) "default" $account.create) $account.name -}}
{{- end -}}

{{- define "lockstep.sshSecret" -}}
{{- default (printf "%s-ssh" (include "lockstep.fullname" .)) .Values.security.ssh.existingSecret -}}
{{- end -}}

{{- define "lockstep.sshSecretKey" -}}
{{- ternary .Values.security.ssh.existingSecretKey "key" (ne .Values.security.ssh.existingSecret "") -}}
{{- end -}}

{{- define "lockstep.claim" -}}
{{- default (printf "%s-runs" (include "lockstep.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* global.imageRegistry takes the place of the repository's own registry, the first word if it has a dot or a port. What
follows it, a tag or a digest, stays: (dict "root" $ "image" IMAGE) */}}
{{- define "lockstep.repository" -}}
{{- $repository := .image.repository -}}
{{- with dig "imageRegistry" "" (.root.Values.global | default dict) -}}
  {{- $path := regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "" -}}
  {{- $repository = printf "%s/%s" (trimSuffix "/" .) $path -}}
{{- end -}}
{{- $repository -}}
{{- end -}}

{{/* (dict "root" $ "image" IMAGE) */}}
{{- define "lockstep.image" -}}
{{- $repository := include "lockstep.repository" . -}}
{{- $tag := default .root.Chart.AppVersion .image.tag -}}
{{- ternary (printf "%s@%s" $repository .image.digest) (printf "%s:%s" $repository $tag) (ne .image.digest "") -}}
{{- end -}}
