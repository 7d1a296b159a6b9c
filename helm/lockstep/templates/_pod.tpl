{{/* The pod template of a group: (dict "root" $ "group" GROUP "job" NAME "config" CONFIGMAP "words" WORDS "replicas" N
"options" OPTIONS "component" WORD). The last four are those of a test; without them it is the job's. Nothing here may change from one
render to the next: what a Job is named after is made of it. */}}
{{- define "lockstep.podTemplate" -}}
{{- $root := .root -}}
{{- $group := .group -}}
{{- $v := .root.Values -}}
metadata:
  labels:
    {{- include "lockstep.selector" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component | default "training" }}
    lockstep/group: {{ .group.name }}
    {{- with .group.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "lockstep.podAnnotations" . }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- if or (eq $v.mode "indexedJob") .component }}
  restartPolicy: Never
  subdomain: {{ include "lockstep.fullname" .root }}
  {{- end }}
  serviceAccountName: {{ include "lockstep.serviceAccount" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ int $v.cluster.terminationGracePeriodSeconds }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- toYaml $v.security.podSecurityContext | nindent 4 }}
  {{- if eq $v.network.profile "hostNetwork" }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with include "lockstep.scheduling" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with concat $v.cluster.initContainers $v.cluster.sidecars }}
  initContainers: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: lockstep
      image: {{ include "lockstep.image" .root }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args: {{- include "lockstep.arguments" . | fromJsonArray | toYaml | nindent 8 }}
      env:
        {{- include "lockstep.environment" . | nindent 8 }}
      {{- with $v.cluster.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - {name: ssh, containerPort: {{ int $v.network.sshPort }}}
        {{- range $rank := until (int .group.slots) }}
        - {name: metrics-{{ $rank }}, containerPort: {{ add (int $v.observability.port) $rank }}}
        {{- end }}
      # No liveness probe: a step may take as long as it takes, and lockstep finds what hangs by itself.
      readinessProbe:
        tcpSocket: {port: ssh}
        periodSeconds: 2
      resources: {{- include "lockstep.resources" . | nindent 8 }}
      securityContext: {{- include "lockstep.containerSecurity" .root | nindent 8 }}
      volumeMounts:
        {{- include "lockstep.mounts" .root | nindent 8 }}
  volumes:
    {{- include "lockstep.volumes" . | nindent 4 }}
{{- end -}}

{{- define "lockstep.podAnnotations" -}}
{{- $v := .root.Values -}}
{{- $notes := dict "sidecar.istio.io/inject" "false" -}}
{{- if $v.observability.annotations -}}
  {{- $_ := set $notes "prometheus.io/scrape" "true" -}}
  {{- $_ := set $notes "prometheus.io/port" (printf "%d" (int $v.observability.port)) -}}
  {{- $_ := set $notes "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- if ne $v.queue.topology "never" -}}
  {{- $_ := set $notes (printf "kueue.x-k8s.io/podset-%s-topology" $v.queue.topology) $v.queue.topologyLevel -}}
{{- end -}}
{{- toYaml (mergeOverwrite $notes .group.podAnnotations) -}}
{{- end -}}

{{/* The environment of `lockstep pod`. On its node's network a pod has the node's name, so its own is set here. */}}
{{- define "lockstep.arguments" -}}
{{- $v := .root.Values -}}
{{- $words := .words | default (include "lockstep.launchWords" .root | fromJsonArray) -}}
{{- $options := .options | default (ternary (list "--keep-workers") list (eq $v.mode "mpijob")) -}}
{{- $hosts := .replicas | default (include "lockstep.expectHosts" .root) | int -}}
{{- $name := ternary (list "--name" (printf "%s-$(JOB_COMPLETION_INDEX)" .job)) list (eq $v.network.profile "hostNetwork") -}}
{{- concat (list "pod" "--hostfile" "/etc/lockstep/hosts" "--job" "/etc/lockstep/job.yaml" "--key" "/etc/lockstep/ssh/key"
  "--port" (printf "%d" (int $v.network.sshPort)) "--expect-hosts" (printf "%d" $hosts)
  "--preflight-limit" (printf "%d" (int $v.cluster.preflightSeconds)) "--state" "/run/lockstep"
  "--grace" (printf "%d" (max 1 (sub (int $v.cluster.terminationGracePeriodSeconds) 5)))
  "--leader-limit" (printf "%d" (int $v.cluster.leaderSeconds))
  "--termination-log" "/dev/termination-log" "--log" $v.cluster.log) $name $options (list "--") $words | toJson -}}
{{- end -}}

{{/* Both families of Open MPI's variables: version 5 reads those of PRTE, version 4 those of OMPI. */}}
{{- define "lockstep.environment" -}}
{{- $v := .root.Values -}}
{{- $env := dict "HOME" "/run/lockstep" -}}
{{- with $v.network.interface -}}
  {{- $_ := set $env "NCCL_SOCKET_IFNAME" (printf "=%s" .) -}}
  {{- range list "OMPI_MCA_btl_tcp_if_include" "OMPI_MCA_oob_tcp_if_include" "PRTE_MCA_prte_if_include" -}}
    {{- $_ := set $env . $v.network.interface -}}
  {{- end -}}
{{- end -}}
{{- if eq $v.network.profile "tcp" -}}{{- $_ := set $env "NCCL_IB_DISABLE" "1" -}}{{- end -}}
{{- with $v.network.rdmaDevices -}}{{- $_ := set $env "NCCL_IB_HCA" . -}}{{- end -}}
{{- $list := list -}}
{{- range $name, $value := mergeOverwrite $env $v.network.env -}}
  {{- $list = append $list (dict "name" $name "value" $value) -}}
{{- end -}}
{{- toYaml (concat $list .group.env) -}}
{{- end -}}

{{/* Requests are the limits, so the pod is of the class Guaranteed. */}}
{{- define "lockstep.resources" -}}
{{- $resources := deepCopy .group.resources -}}
{{- if gt (int .group.gpusPerNode) 0 -}}{{- $_ := set $resources .group.gpuResource (int .group.gpusPerNode) -}}{{- end -}}
{{- if eq .root.Values.network.profile "rdmaSharedDevice" -}}
  {{- $_ := set $resources .root.Values.network.rdmaResource 1 -}}
{{- end -}}
requests: {{- toYaml $resources | nindent 2 }}
limits: {{- toYaml $resources | nindent 2 }}
{{- end -}}

{{/* RDMA pins memory, which needs one capability. */}}
{{- define "lockstep.containerSecurity" -}}
{{- $context := deepCopy .Values.security.containerSecurityContext -}}
{{- if eq .Values.network.profile "rdmaSharedDevice" -}}
  {{- $_ := set $context "capabilities" (mergeOverwrite (dict "add" (list "IPC_LOCK")) (get $context "capabilities" | default dict)) -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{/* Where the pods may run: what a pod template says beside its containers, or nothing. */}}
{{- define "lockstep.scheduling" -}}
{{- $v := .root.Values -}}
{{- with .group.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .group.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $v.cluster.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with .group.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .group.tolerations }}
{{- if gt (int .group.gpusPerNode) 0 }}
{{- $tolerations = append $tolerations (dict "key" .group.gpuResource "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- with $tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .group.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and (ne $v.cluster.spread "never") (eq $v.queue.topology "never") }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (eq $v.cluster.spread "required") }}
    labelSelector:
      matchLabels:
        {{- include "lockstep.selector" .root | nindent 8 }}
{{- end }}
{{- end -}}

{{- define "lockstep.mounts" -}}
- {name: config, mountPath: /etc/lockstep, readOnly: true}
- {name: state, mountPath: /run/lockstep}
- {name: temporary, mountPath: /tmp}
- {name: shared-memory, mountPath: /dev/shm}
- {name: runs, mountPath: /runs}
{{- if include "lockstep.dataVolume" . }}
- {name: data, mountPath: /data, readOnly: true}
{{- end }}
{{- with .Values.cluster.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockstep.volumes" -}}
{{- $v := .root.Values -}}
- name: config
  projected:
    defaultMode: 0444
    sources:
      - configMap: {name: {{ .config | quote }}}
      - secret: {name: {{ include "lockstep.sshSecret" .root }}, items: [{key: key, path: ssh/key, mode: 0440}]}
- name: state
  emptyDir: {}
- name: temporary
  emptyDir: {}
- name: shared-memory
  emptyDir: {medium: Memory, sizeLimit: {{ $v.cluster.sharedMemory }}}
- name: runs
  {{- if include "lockstep.persistent" .root }}
  persistentVolumeClaim: {claimName: {{ include "lockstep.claim" .root }}}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- with include "lockstep.dataVolume" .root }}
- name: data
  {{- . | nindent 2 }}
{{- end }}
{{- with $v.cluster.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "lockstep.dataVolume" -}}
{{- $data := .Values.data -}}
{{- if $data.existingClaim -}}
persistentVolumeClaim: {claimName: {{ $data.existingClaim }}, readOnly: true}
{{- else if $data.image -}}
image: {reference: {{ $data.image | quote }}, pullPolicy: IfNotPresent}
{{- else if $data.fetchSize -}}
emptyDir: {sizeLimit: {{ $data.fetchSize }}}
{{- end -}}
{{- end -}}
