{{/* How a monitor of the Prometheus Operator scrapes each rank, with the labels job, run and host as the rules and
dashboards know them: (dict "root" $ "monitor" VALUES) */}}
{{- define "lockstep.scrapedPorts" -}}
{{- $root := .root -}}
{{- $monitor := .monitor -}}
{{- range $rank := until (int (include "lockstep.groups" $root | fromJson).slots) }}
- port: metrics-{{ $rank }}
  interval: {{ $monitor.interval }}
  {{- with $monitor.scrapeTimeout }}
  scrapeTimeout: {{ . }}
  {{- end }}
  relabelings:
    - {targetLabel: job, replacement: {{ dig "name" (include "lockstep.runName" $root) ($root.Values.job | default dict) | quote }}}
    - {targetLabel: run, replacement: {{ include "lockstep.runName" $root | quote }}}
    - {sourceLabels: [__meta_kubernetes_pod_name], targetLabel: host}
    {{- with $monitor.relabelings }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $monitor.metricRelabelings }}
  metricRelabelings: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* One monitor is enough, and two count each rank twice. */}}
{{- define "lockstep.checkMonitors" -}}
{{- $o := .Values.observability -}}
{{- if and $o.podMonitor.enabled $o.serviceMonitor.enabled -}}
  {{- fail "observability.serviceMonitor.enabled: expected one of podMonitor and serviceMonitor, found both, which would scrape each rank twice; set one of them to false" -}}
{{- end -}}
{{- end -}}
