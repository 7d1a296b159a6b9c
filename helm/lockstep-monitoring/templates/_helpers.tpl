{{/* metadata of an object: (dict "root" $ "name" NAME "labels" MORE) */}}
{{- define "monitoring.metadata" -}}
name: {{ .name | toYaml }}
namespace: {{ .root.Release.Namespace | toYaml }}
labels:
  app.kubernetes.io/name: {{ .root.Chart.Name }}
  app.kubernetes.io/instance: {{ .root.Release.Name | toYaml }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* An alert with the values applied, as JSON; empty if it is disabled: (dict "root" $ "rule" RULE). Thresholds are the numbers
in parentheses; the description repeats them. */}}
{{- define "monitoring.alert" -}}
{{- $values := .root.Values -}}
{{- $rule := .rule -}}
{{- $name := $rule.alert -}}
{{- $own := get $values.alerts $name -}}
{{- if $own.enabled -}}
  {{- $expression := $rule.expr -}}
  {{- $description := $rule.annotations.description -}}
  {{- $defaults := regexFindAll "\\([0-9.]+\\)" $expression -1 -}}
  {{- /* Via placeholders, so a new threshold is not mistaken for the next default. */}}
  {{- range $index, $default := $defaults -}}
    {{- $expression = replace $default (printf "(@%d)" $index) $expression -}}
    {{- $description = regexReplaceAll (printf "\\b%s\\b" (trimAll "()" $default | replace "." "\\.")) $description (printf "@%d" $index) -}}
  {{- end -}}
  {{- range $index, $threshold := $own.thresholds -}}
    {{- $expression = replace (printf "(@%d)" $index) (printf "(%v)" $threshold) $expression -}}
    {{- $description = replace (printf "@%d" $index) (toString $threshold) $description -}}
  {{- end -}}
  {{- $annotations := merge (dict "description" $description) $rule.annotations -}}
  {{- with $values.runbooks -}}{{- $_ := set $annotations "runbook_url" (printf "%s#%s" . (lower $name)) -}}{{- end -}}
  {{- $changes := dict "expr" $expression "annotations" $annotations "labels" (merge (dict "severity" $own.severity) $values.alertLabels) -}}
  {{- $alert := merge $changes (omit $rule "for") -}}
  {{- if ne $own.for "0s" -}}{{- $_ := set $alert "for" $own.for -}}{{- end -}}
  {{- toJson $alert -}}
{{- end -}}
{{- end -}}

{{/* The rule groups, as JSON. */}}
{{- define "monitoring.groups" -}}
{{- $root := . -}}
{{- $groups := list -}}
{{- range (.Files.Get "rules/lockstep.yaml" | fromYaml).groups -}}
  {{- $rules := list -}}
  {{- range .rules -}}
    {{- if hasKey . "record" -}}{{- $rules = append $rules . -}}
    {{- else -}}
      {{- with include "monitoring.alert" (dict "root" $root "rule" .) -}}{{- $rules = append $rules (fromJson .) -}}{{- end -}}
    {{- end -}}
  {{- end -}}
  {{- if $rules -}}{{- $groups = append $groups (dict "name" .name "rules" $rules) -}}{{- end -}}
{{- end -}}
{{- toJson $groups -}}
{{- end -}}
