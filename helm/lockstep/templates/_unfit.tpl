{{/* What a pod makes through the API when its node is unfit: an event, and a pod that marks the node for a day. It runs nothing,
asks for nothing, and goes with the Job. `lockstep pod` fills in $(...). */}}
{{- define "lockstep.unfitNode" -}}
{{- $namespace := printf "/api/v1/namespaces/%s" .Release.Namespace -}}
{{- $group := first (include "lockstep.groups" . | fromJson).groups -}}
- path: {{ $namespace }}/events
  object:
    apiVersion: v1
    kind: Event
    metadata: {generateName: {{ printf "%s-unfit-node-" (include "lockstep.fullname" .) }}, namespace: {{ .Release.Namespace | toYaml }}}
    type: Warning
    reason: UnfitNode
    action: Replaced
    message: $(MESSAGE)
    firstTimestamp: $(TIME)
    lastTimestamp: $(TIME)
    count: 1
    source: {component: lockstep, host: $(LOCKSTEP_NODE)}
    reportingComponent: lockstep
    reportingInstance: $(LOCKSTEP_POD)
    involvedObject: {apiVersion: v1, kind: Pod, namespace: {{ .Release.Namespace | toYaml }}, name: $(LOCKSTEP_POD), uid: $(LOCKSTEP_POD_UID)}
- path: {{ $namespace }}/pods
  object:
    apiVersion: v1
    kind: Pod
    metadata:
      name: {{ printf "%s-unfit-$(NODE_HASH)" (include "lockstep.fullname" .) }}
      labels: {{- include "lockstep.selector" (dict "root" . "component" "unfit-node") | nindent 8 }}
      annotations: {lockstep/unfit: $(MESSAGE)}
      ownerReferences: [{apiVersion: batch/v1, kind: Job, name: $(LOCKSTEP_JOB), uid: $(LOCKSTEP_JOB_UID)}]
    spec:
      nodeName: $(LOCKSTEP_NODE)
      activeDeadlineSeconds: 86400
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      serviceAccountName: {{ include "lockstep.serviceAccount" . | toYaml }}
      securityContext: {{- toYaml .Values.security.podSecurityContext | nindent 8 }}
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $group.priorityClassName }}
      priorityClassName: {{ . | toYaml }}
      {{- end }}
      tolerations: [{operator: Exists}]
      containers:
        - name: mark
          image: {{ include "lockstep.image" (dict "root" . "image" $group.image) }}
          command: [sleep, infinity]
          resources: {requests: {cpu: "0", memory: "0"}, limits: {cpu: 10m, memory: 32Mi}}
          securityContext: {{- toYaml .Values.security.containerSecurityContext | nindent 12 }}
{{- end -}}
