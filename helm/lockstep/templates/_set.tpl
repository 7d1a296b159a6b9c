{{/* The JobSet with the Job of each group, which the modes jobset and trainjob have in common. */}}

{{/* Whether it is one. */}}
{{- define "lockstep.isSet" -}}
{{- if has .Values.mode (list "jobset" "trainjob") }}yes{{ end -}}
{{- end -}}

{{/* Name of the container. Kubeflow's Trainer and SDK expect `node`. */}}
{{- define "lockstep.container" -}}
{{- ternary "node" "lockstep" (eq .Values.mode "trainjob") -}}
{{- end -}}

{{- define "lockstep.setSpec" -}}
{{- $hash := include "lockstep.hash" . }}
{{- $name := include "lockstep.hashedName" (dict "root" . "hash" $hash) }}
{{- $groups := (include "lockstep.groups" . | fromJson).groups }}
{{- $leading := (first $groups).name }}
{{- with include "lockstep.timeToLive" . }}
{{ . }}
{{- end }}
# Names below the release's own Service, which is there before; else the controller would make one.
network: {enableDNSHostnames: true, publishNotReadyAddresses: true, subdomain: {{ include "lockstep.fullname" . | toYaml }}}
successPolicy: {operator: All, targetReplicatedJobs: [{{ toYaml $leading }}]}
# Pods are replaced by their Job, by the exit codes in it. One that fails nonetheless would fail again.
failurePolicy:
  maxRestarts: 0
  rules: [{name: anyJob, action: FailJobSet}]
replicatedJobs:
  {{- range $index, $group := $groups }}
  - name: {{ $group.name | toYaml }}
    replicas: 1
    {{- if and (gt $index 0) (eq $.Values.cluster.gang "never") }}
    dependsOn: [{name: {{ toYaml $leading }}, status: Ready}]  # the leader's sshd answers then
    {{- end }}
    template:
      metadata:
        labels:
          {{- include "lockstep.instance" $ | nindent 10 }}
          {{- if and (eq $index 0) (eq $.Values.mode "trainjob") }}
          trainer.kubeflow.org/trainjob-ancestor-step: trainer
          {{- end }}
      spec:
        {{- include "lockstep.jobSpec" (dict "root" $ "group" $group "index" $index "config" $name
          "job" (include "lockstep.jobName" (dict "root" $ "group" $group "hash" $hash))
          "limits" (include "lockstep.deadline" $)) | nindent 8 }}
  {{- end }}
{{- end -}}
