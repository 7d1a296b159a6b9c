{{/* The pod template of a group's Job: (dict "root" $ "group" GROUP "job" NAME "config" CONFIGMAP). Nothing here may change
from one render to the next: what a Job is named after is made of it. */}}
{{- define "lockstep.podTemplate" -}}
{{- $template := include "lockstep.plainPodTemplate" . -}}
{{- $patches := list -}}
{{- range list .root.Values.cluster.podPatch .group.podPatch -}}
  {{- if . -}}{{- $patches = append $patches . -}}{{- end -}}
{{- end -}}
{{- if hasKey . "test" -}}{{- $patches = include "lockstep.withoutInitContainers" $patches | fromJsonArray -}}{{- end -}}
{{- if $patches -}}
{{- include "lockstep.patchedTemplate" (dict "template" $template "patches" $patches) -}}
{{- else -}}
{{- $template -}}
{{- end -}}
{{- end -}}

{{/* The pod template before podPatch. */}}
{{- define "lockstep.plainPodTemplate" -}}
metadata:
  labels:
    {{- include "lockstep.podLabels" . | nindent 4 }}
  annotations:
    {{- include "lockstep.podAnnotations" . | nindent 4 }}
spec:
  {{- include "lockstep.podSpec" . | trim | nindent 2 }}
{{- end -}}

{{/* "training", or "test" where the dict names a pod of `helm test`. */}}
{{- define "lockstep.component" -}}
{{- ternary "test" "training" (hasKey . "test") -}}
{{- end -}}

{{- define "lockstep.podLabels" -}}
{{ include "lockstep.selector" (dict "root" .root "component" (include "lockstep.component" .)) }}
lockstep/group: {{ .group.name | toYaml }}
{{- if and (eq .root.Values.cluster.gang "coscheduling") (not (hasKey . "test")) }}
scheduling.x-k8s.io/pod-group: {{ include "lockstep.fullname" .root | toYaml }}
{{- end }}
{{- with .group.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The spec of a pod. One of `helm test` has no job: (dict "root" $ "group" GROUP "test" POD "hosts" N "config" CONFIGMAP
"words" WORDS), of N hosts, with WORDS for `lockstep bench hosts`. */}}
{{- define "lockstep.podSpec" -}}
{{- $v := .root.Values -}}
{{- $test := hasKey . "test" -}}
{{- if $test }}
restartPolicy: Never
hostname: {{ .test | toYaml }}
subdomain: {{ include "lockstep.testName" .root | toYaml }}
{{- else if ne $v.mode "mpijob" }}
restartPolicy: Never
subdomain: {{ include "lockstep.fullname" .root | toYaml }}
{{- end }}
serviceAccountName: {{ include "lockstep.serviceAccount" .root | toYaml }}
automountServiceAccountToken: {{ and $v.cluster.avoidUnfitNodes (not $test) }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ int $v.cluster.terminationGracePeriodSeconds }}
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- toYaml .group.podSecurityContext | nindent 2 }}
{{- if eq $v.network.profile "hostNetwork" }}
hostNetwork: true
{{- end }}
{{- with $v.cluster.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" (eq $v.network.profile "hostNetwork")) }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $v.cluster.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $v.cluster.hostIPC }}
hostIPC: true
{{- end }}
{{- with $v.cluster.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "lockstep.scheduling" . | trim }}
{{ . }}
{{- end }}
{{- with ternary list $v.cluster.schedulingGates $test }}
schedulingGates: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .group.resourceClaims }}
resourceClaims: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with ternary list (include "lockstep.initContainers" .root | fromJsonArray) $test }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ include "lockstep.container" .root }}
    image: {{ include "lockstep.image" (dict "root" .root "image" .group.image) }}
    imagePullPolicy: {{ .group.image.pullPolicy }}
    terminationMessagePolicy: FallbackToLogsOnError
    args: {{- include "lockstep.arguments" . | fromJsonArray | toYaml | nindent 6 }}
    env:
      {{- include "lockstep.environment" . | nindent 6 }}
    {{- with $v.cluster.envFrom }}
    envFrom: {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: ssh, containerPort: {{ int $v.network.sshPort }}}
      {{- range $rank := until (ternary 0 .group.slots $test | int) }}
      - {name: metrics-{{ $rank }}, containerPort: {{ add (int $v.observability.port) $rank }}}
      {{- end }}
    # No liveness probe: a step may take as long as it takes, and lockstep finds what hangs by itself.
    readinessProbe:
      tcpSocket: {port: ssh}
      {{- with $v.cluster.readinessProbe }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with $v.cluster.lifecycle }}
    lifecycle: {{- toYaml . | nindent 6 }}
    {{- end }}
    resources: {{- include "lockstep.resources" . | nindent 6 }}
    securityContext: {{- toYaml .group.containerSecurityContext | nindent 6 }}
    volumeMounts:
      {{- include "lockstep.mounts" . | nindent 6 }}
volumes:
  {{- include "lockstep.volumes" . | nindent 2 }}
{{- end -}}

{{/* What runs before training and beside it. A sidecar is an init container that is always restarted. */}}
{{- define "lockstep.initContainers" -}}
{{- $all := .Values.cluster.initContainers -}}
{{- range .Values.cluster.sidecars -}}{{- $all = append $all (merge (dict) . (dict "restartPolicy" "Always")) -}}{{- end -}}
{{- toJson $all -}}
{{- end -}}

{{- define "lockstep.podAnnotations" -}}
{{- $v := .root.Values -}}
{{- $notes := dict "sidecar.istio.io/inject" "false" -}}
{{- if and (include "lockstep.anyLeads" .root) (not (hasKey . "test")) -}}
  {{- /* A lock decides which pod leads, also when one lives on that Kueue has given up; its successor waits for a leader. */ -}}
  {{- $_ := set $notes "kueue.x-k8s.io/safe-to-forcefully-terminate" "true" -}}
{{- end -}}
{{- if and $v.observability.annotations (not (hasKey . "test")) -}}
  {{- $_ := set $notes "prometheus.io/scrape" "true" -}}
  {{- $_ := set $notes "prometheus.io/port" (printf "%d" (int $v.observability.port)) -}}
  {{- $_ := set $notes "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- if and (eq $v.cluster.gang "volcano") (not (hasKey . "test")) -}}
  {{- $_ := set $notes "scheduling.k8s.io/group-name" (include "lockstep.fullname" .root) -}}
{{- end -}}
{{- if ne $v.queue.topology "never" -}}
  {{- $_ := set $notes (printf "kueue.x-k8s.io/podset-%s-topology" $v.queue.topology) $v.queue.topologyLevel -}}
{{- end -}}
{{- toYaml (mergeOverwrite $notes .group.podAnnotations) -}}
{{- end -}}

{{/* Options of `lockstep bench hosts`, as a JSON list. `auto` is the CPU, as in the job. */}}
{{- define "lockstep.reportWords" -}}
{{- $words := list "--exact" (dig "exact" "required" (.Values.job | default dict) | toString) -}}
{{- if eq (include "lockstep.device" .) "cuda" -}}{{- $words = concat $words (list "--device" "cuda") -}}{{- end -}}
{{- with .Values.network.minBandwidth -}}{{- $words = concat $words (list "--min-bandwidth" (toString .)) -}}{{- end -}}
{{- toJson $words -}}
{{- end -}}

{{/* The environment of `lockstep pod`. On its node's network a pod has the node's name, so its own is set here. */}}
{{- define "lockstep.arguments" -}}
{{- $v := .root.Values -}}
{{- $its := dict "name" (printf "%s-$(JOB_COMPLETION_INDEX)" .job) "hosts" (include "lockstep.expectHosts" .root)
  "leaderSeconds" $v.cluster.leaderSeconds "pendingSeconds" $v.cluster.pendingSeconds "options" (ternary (list "--keep-workers") list (eq $v.mode "mpijob"))
  "words" (include "lockstep.launchWords" .root | fromJsonArray) -}}
{{- if include "lockstep.anyLeads" .root -}}
  {{- $lock := printf "%s/leader/%s" (include "lockstep.runDirectory" .root) .config -}}
  {{- $_ := set $its "options" (list "--leader-lock" $lock "--takeover" (printf "%d" (int $v.cluster.takeoverSeconds))) -}}
{{- end -}}
{{- if .root.Values.sweep -}}{{- $_ := set $its "options" (append $its.options "--sweep") -}}{{- end -}}
{{- if $v.cluster.checkHosts -}}
  {{- $words := include "lockstep.reportWords" .root | fromJsonArray | join " " -}}
  {{- $_ := set $its "options" (append $its.options (printf "--check-hosts=%s" $words)) -}}
{{- end -}}
{{- if $v.cluster.avoidUnfitNodes -}}
  {{- $_ := set $its "options" (concat $its.options (list "--unfit-node" "/etc/lockstep/unfit-node.json")) -}}
{{- end -}}
{{- if hasKey . "test" -}}
  {{- /* A pod whose leader is not there gives up when the leader would. */}}
  {{- $its = dict "name" .test "hosts" .hosts "leaderSeconds" $v.cluster.preflightSeconds "pendingSeconds" $v.cluster.preflightSeconds "options" (list "--report") "words" .words -}}
{{- end -}}
{{- $name := ternary (list "--name" $its.name) list (eq $v.network.profile "hostNetwork") -}}
{{- concat (list "pod" "--hostfile" "/etc/lockstep/hosts" "--job" "/etc/lockstep/job.yaml" "--key" "/etc/lockstep/ssh/key"
  "--port" (printf "%d" (int $v.network.sshPort)) "--expect-hosts" (printf "%d" (int $its.hosts))
  "--preflight-limit" (printf "%d" (int $v.cluster.preflightSeconds))
  "--pending-limit" (printf "%d" (int $its.pendingSeconds)) "--state" "/run/lockstep"
  "--grace" (printf "%d" (max 1 (sub (int $v.cluster.terminationGracePeriodSeconds) 5)))
  "--leader-limit" (printf "%d" (int $its.leaderSeconds))
  "--termination-log" "/dev/termination-log" "--log" $v.cluster.log) $name $its.options (list "--") $its.words | toJson -}}
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
{{- if eq $v.network.profile "rdmaSharedDevice" -}}{{- $_ := set $env "LOCKSTEP_RDMA" "required" -}}{{- end -}}
{{- with $v.network.rdmaDevices -}}{{- $_ := set $env "NCCL_IB_HCA" . -}}{{- end -}}
{{- with include "lockstep.certificatesVolume" .root -}}{{- $_ := set $env "SSL_CERT_FILE" "/etc/ssl/certs/ca-certificates.crt" -}}{{- end -}}
{{- $env = merge $env (include "lockstep.proxies" .root | fromJson) -}}
{{- /* For reports, and who reads them. */}}
{{- $list := list (dict "name" "LOCKSTEP_NODE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "spec.nodeName"))) -}}
{{- if and $v.cluster.avoidUnfitNodes (not (hasKey . "test")) -}}
  {{- $labels := "metadata.labels['batch.kubernetes.io/%s']" -}}
  {{- range $name, $path := dict "LOCKSTEP_POD" "metadata.name" "LOCKSTEP_POD_UID" "metadata.uid"
    "LOCKSTEP_JOB" (printf $labels "job-name") "LOCKSTEP_JOB_UID" (printf $labels "controller-uid") -}}
    {{- $list = append $list (dict "name" $name "valueFrom" (dict "fieldRef" (dict "fieldPath" $path))) -}}
  {{- end -}}
{{- end -}}
{{- range $name, $value := mergeOverwrite $env $v.network.env -}}
  {{- $list = append $list (dict "name" $name "value" $value) -}}
{{- end -}}
{{- toYaml (concat $list .group.env) -}}
{{- end -}}

{{/* Requests are the limits, and the pod so of the class Guaranteed, but for those that the values set apart. */}}
{{- define "lockstep.resources" -}}
{{- $limits := deepCopy .group.resources.limits -}}
{{- if gt (int .group.gpusPerNode) 0 -}}{{- $_ := set $limits .group.gpuResource (int .group.gpusPerNode) -}}{{- end -}}
{{- if eq .root.Values.network.profile "rdmaSharedDevice" -}}
  {{- $_ := set $limits .root.Values.network.rdmaResource (int .root.Values.network.rdmaCount) -}}
{{- end -}}
requests: {{- mergeOverwrite (deepCopy $limits) .group.resources.requests | toYaml | nindent 2 }}
limits: {{- toYaml $limits | nindent 2 }}
{{- with .group.resourceClaims }}
claims:
  {{- range . }}
  - name: {{ .name | toYaml }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The user of a group's pods where it is neither the image's nor root; else nothing. */}}
{{- define "lockstep.foreignUser" -}}
{{- $user := dig "runAsUser" (dig "runAsUser" 1000 .podSecurityContext) .containerSecurityContext -}}
{{- if not (has (int $user) (list 0 1000)) }}{{ int $user }}{{ end -}}
{{- end -}}

{{/* sshd wants a name for its user, which the image has for its own only: /etc/passwd of the groups that have another, as
items of a ConfigMap. */}}
{{- define "lockstep.passwd" -}}
{{- range (include "lockstep.groups" . | fromJson).groups }}
{{- $group := dig "runAsGroup" (dig "runAsGroup" 0 .podSecurityContext) .containerSecurityContext }}
{{- $name := .name }}
{{- with include "lockstep.foreignUser" . }}
passwd-{{ $name }}: |
  root:x:0:0:root:/root:/bin/sh
  lockstep:x:{{ . }}:{{ int $group }}:lockstep:/run/lockstep:/bin/sh
{{- end }}
{{- end }}
{{- end -}}

{{/* Where the pods may run: what a pod template says beside its containers, or nothing. */}}
{{- define "lockstep.scheduling" -}}
{{- $v := .root.Values -}}
{{- with .group.priorityClassName }}
priorityClassName: {{ . | toYaml }}
{{- end }}
{{- with .group.runtimeClassName }}
runtimeClassName: {{ . | toYaml }}
{{- end }}
{{- $schedulers := dict "never" "" "volcano" "volcano" "coscheduling" "scheduler-plugins-scheduler" }}
{{- with $v.cluster.schedulerName | default (get $schedulers $v.cluster.gang) }}
schedulerName: {{ . | toYaml }}
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
{{- with include "lockstep.affinity" . | fromJson }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with include "lockstep.spread" . | fromJsonArray }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* cluster.spread as it applies to a pod: pack, preferred, required or never. The values' own constraints and queue.topology
come first. Pods of `helm test` are never packed, since they measure the network between hosts. */}}
{{- define "lockstep.placement" -}}
{{- $v := .root.Values -}}
{{- $spread := $v.cluster.spread -}}
{{- if eq $spread "auto" -}}{{- $spread = ternary "pack" "preferred" (eq (include "lockstep.device" .root) "cuda") -}}{{- end -}}
{{- if and (eq $spread "pack") (hasKey . "test") -}}{{- $spread = "preferred" -}}{{- end -}}
{{- if or $v.cluster.topologySpreadConstraints (ne $v.queue.topology "never") -}}{{- $spread = "never" -}}{{- end -}}
{{- $spread -}}
{{- end -}}

{{/* A selector for the pods that are packed or spread. */}}
{{- define "lockstep.ownPods" -}}
{{- $labels := include "lockstep.selector" (dict "root" .root "component" (include "lockstep.component" .)) | fromYaml -}}
{{- dict "labelSelector" (dict "matchLabels" $labels) | toJson -}}
{{- end -}}

{{/* The affinity of the values, plus one between the run's pods if they are packed, and one that keeps them off nodes that
were found unfit, as JSON. */}}
{{- define "lockstep.affinity" -}}
{{- $affinity := deepCopy .group.affinity -}}
{{- if .root.Values.cluster.avoidUnfitNodes -}}
  {{- $kind := "requiredDuringSchedulingIgnoredDuringExecution" -}}
  {{- $labels := include "lockstep.selector" (dict "root" .root "component" "unfit-node") | fromYaml -}}
  {{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
  {{- $own := get $affinity "podAntiAffinity" | default dict -}}
  {{- $_ := set $affinity "podAntiAffinity" (set $own $kind (append (get $own $kind | default list) $term)) -}}
{{- end -}}
{{- if eq (include "lockstep.placement" .) "pack" -}}
  {{- $kind := "preferredDuringSchedulingIgnoredDuringExecution" -}}
  {{- $term := merge (dict "topologyKey" "kubernetes.io/hostname") (include "lockstep.ownPods" . | fromJson) -}}
  {{- $own := get $affinity "podAffinity" | default dict -}}
  {{- $terms := append (get $own $kind | default list) (dict "weight" 100 "podAffinityTerm" $term) -}}
  {{- $_ := set $affinity "podAffinity" (set $own $kind $terms) -}}
{{- end -}}
{{- toJson $affinity -}}
{{- end -}}

{{/* The constraints of the values, else one over hosts: a JSON list. */}}
{{- define "lockstep.spread" -}}
{{- $all := .root.Values.cluster.topologySpreadConstraints -}}
{{- $placement := include "lockstep.placement" . -}}
{{- if has $placement (list "preferred" "required") -}}
  {{- $all = list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname"
    "whenUnsatisfiable" (ternary "DoNotSchedule" "ScheduleAnyway" (eq $placement "required"))) -}}
{{- end -}}
{{- $ours := include "lockstep.ownPods" . | fromJson -}}
{{- $constraints := list -}}
{{- range $all -}}{{- $constraints = append $constraints (merge (dict) . (ternary (dict) $ours (hasKey . "labelSelector"))) -}}{{- end -}}
{{- toJson $constraints -}}
{{- end -}}

{{- define "lockstep.mounts" -}}
- {name: config, mountPath: /etc/lockstep, readOnly: true}
- {name: state, mountPath: /run/lockstep}
- {name: ssh, mountPath: /run/lockstep/ssh}
- {name: temporary, mountPath: /tmp}
- {name: shared-memory, mountPath: /dev/shm}
- {name: runs, mountPath: /runs}
{{- if include "lockstep.dataVolume" .root }}
- {name: data, mountPath: /data, readOnly: true}
{{- end }}
{{- if include "lockstep.certificatesVolume" .root }}
- {name: certificates, mountPath: /etc/ssl/certs/ca-certificates.crt, subPath: ca.crt, readOnly: true}
{{- end }}
{{- if include "lockstep.foreignUser" .group }}
- {name: config, mountPath: /etc/passwd, subPath: passwd-{{ .group.name }}, readOnly: true}
{{- end }}
{{- with .group.volumeMounts }}
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
      - secret: {name: {{ include "lockstep.sshSecret" .root | toYaml }}, items: [{key: {{ include "lockstep.sshSecretKey" .root | toYaml }}, path: ssh/key, mode: 0440}]}
- name: state
  emptyDir: {}
- name: ssh  # the key, and an environment that may hold others: not on the node's disk
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
- name: temporary
  emptyDir: {}
- name: shared-memory
  emptyDir: {medium: Memory, sizeLimit: {{ $v.cluster.sharedMemory }}}
- name: runs
  {{- if include "lockstep.persistent" .root }}
  persistentVolumeClaim: {claimName: {{ include "lockstep.claim" .root | toYaml }}}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- with include "lockstep.dataVolume" .root }}
- name: data
  {{- . | nindent 2 }}
{{- end }}
{{- with include "lockstep.certificatesVolume" .root }}
- name: certificates
  {{- . | nindent 2 }}
{{- end }}
{{- with .group.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* libcurl reads this file and the image's /etc/ssl/certs, which has the public CAs. */}}
{{- define "lockstep.certificatesVolume" -}}
{{- $from := .Values.security.certificates -}}
{{- $items := list (dict "key" $from.key "path" "ca.crt") -}}
{{- with $from.configMap -}}{{- dict "configMap" (dict "name" . "items" $items) | toYaml -}}{{- end -}}
{{- with $from.secret -}}{{- dict "secret" (dict "secretName" . "items" $items) | toYaml -}}{{- end -}}
{{- end -}}

{{/* Proxy variables, as JSON. libcurl reads http_proxy in lower case only; other tools read the upper case. */}}
{{- define "lockstep.proxies" -}}
{{- $proxy := .Values.network.proxy -}}
{{- $env := dict -}}
{{- if or $proxy.http $proxy.https -}}
  {{- $own := list "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local" (printf ".%s" (include "lockstep.fullname" .)) -}}
  {{- range $name, $value := dict "http_proxy" $proxy.http "https_proxy" $proxy.https "no_proxy" (concat $own $proxy.except | join ",") -}}
    {{- if $value -}}{{- $_ := set (set $env $name $value) (upper $name) $value -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $env -}}
{{- end -}}

{{- define "lockstep.dataVolume" -}}
{{- $data := .Values.data -}}
{{- if $data.existingClaim -}}
persistentVolumeClaim: {claimName: {{ toYaml $data.existingClaim }}, readOnly: true}
{{- else if $data.image -}}
image: {reference: {{ include "lockstep.repository" (dict "root" . "image" (dict "repository" $data.image)) | quote }}, pullPolicy: IfNotPresent}
{{- else if $data.fetchSize -}}
emptyDir: {sizeLimit: {{ $data.fetchSize }}}
{{- end -}}
{{- end -}}
