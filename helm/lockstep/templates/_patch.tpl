{{/* podPatch: a strategic merge patch for the rendered pod template. */}}

{{/* Merges a patch into a map, in place: (dict "at" MAP "patch" MAP "keys" KEYS). Maps and lists with a merge key
(lockstep.listKeys) are merged, everything else is replaced. null removes a field, `$patch: replace` replaces a map. */}}
{{- define "lockstep.patch" -}}
{{- $at := .at -}}
{{- $keys := .keys -}}
{{- range $field, $change := .patch -}}
  {{- $now := get $at $field -}}
  {{- if kindIs "invalid" $change -}}
    {{- $_ := unset $at $field -}}
  {{- else if kindIs "map" $change -}}
    {{- $merged := and (kindIs "map" $now) (ne (get $change "$patch" | toString) "replace") -}}
    {{- $now = ternary $now (dict) $merged -}}
    {{- include "lockstep.patch" (dict "at" $now "patch" (omit $change "$patch") "keys" $keys) -}}
    {{- $_ := set $at $field $now -}}
  {{- else if and (kindIs "slice" $change) (hasKey $keys $field) -}}
    {{- $merged := include "lockstep.patchedList" (dict "items" ($now | default list) "patch" $change "key" (get $keys $field) "keys" $keys) -}}
    {{- $_ := set $at $field ($merged | fromJsonArray) -}}
  {{- else -}}
    {{- $_ := set $at $field $change -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A list merged with a patch, as JSON: (dict "items" LIST "patch" LIST "key" KEY "keys" KEYS). Items with the same key are
merged, new ones appended. `$patch: delete` removes an item. */}}
{{- define "lockstep.patchedList" -}}
{{- $key := .key -}}
{{- $keys := .keys -}}
{{- $changes := .patch -}}
{{- $items := list -}}
{{- range $item := .items -}}
  {{- $others := list -}}
  {{- $kept := true -}}
  {{- range $change := $changes -}}
    {{- if ne (get $change $key | toString) (get $item $key | toString) -}}
      {{- $others = append $others $change -}}
    {{- else if eq (get $change "$patch") "delete" -}}
      {{- $kept = false -}}
    {{- else -}}
      {{- include "lockstep.patch" (dict "at" $item "patch" $change "keys" $keys) -}}
    {{- end -}}
  {{- end -}}
  {{- $changes = $others -}}
  {{- if $kept -}}{{- $items = append $items $item -}}{{- end -}}
{{- end -}}
{{- range $change := $changes -}}
  {{- if ne (get $change "$patch") "delete" -}}{{- $items = append $items $change -}}{{- end -}}
{{- end -}}
{{- toJson $items -}}
{{- end -}}

{{/* The fields of a pod template that the run depends on: a JSON map from their names to their values. */}}
{{- define "lockstep.podContract" -}}
{{- $kept := dict -}}
{{- range $name, $value := .metadata.labels -}}{{- $_ := set $kept (printf "label %s" $name) $value -}}{{- end -}}
{{- $spec := .spec -}}
{{- range list "restartPolicy" "hostname" "subdomain" "hostNetwork" "serviceAccountName" "terminationGracePeriodSeconds" -}}
  {{- $_ := set $kept (printf "spec.%s" .) (get $spec .) -}}
{{- end -}}
{{- range .spec.volumes -}}{{- $_ := set $kept (printf "volume %s" .name) (ternary . "there" (eq .name "config")) -}}{{- end -}}
{{- with first $spec.containers -}}
  {{- $_ := set (set $kept "args" .args) "name" .name -}}
  {{- range .env -}}{{- $_ := set $kept (printf "variable %s" .name) "there" -}}{{- end -}}
  {{- range .ports -}}{{- $_ := set $kept (printf "port %s" .name) .containerPort -}}{{- end -}}
  {{- range .volumeMounts -}}{{- $_ := set $kept (printf "mount %s" .mountPath) .name -}}{{- end -}}
  {{- range $name, $amount := dig "limits" dict (.resources | default dict) -}}
    {{- if contains "/" $name -}}{{- $_ := set $kept (printf "limit %s" $name) $amount -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{/* Refuses a patch that changes what the run depends on: (dict "before" TEMPLATE "after" TEMPLATE). */}}
{{- define "lockstep.checkPatch" -}}
{{- $values := dict "spec.serviceAccountName" "security.serviceAccount.name" "args" "cluster.launchOptions" "spec.hostNetwork" "network.profile"
  "spec.terminationGracePeriodSeconds" "cluster.terminationGracePeriodSeconds" -}}
{{- $after := include "lockstep.podContract" .after | fromJson -}}
{{- range $place, $value := include "lockstep.podContract" .before | fromJson -}}
  {{- $now := get $after $place -}}
  {{- if ne (toJson $value) (toJson $now) -}}
    {{- $wanted := ternary "as the chart has it" (toJson $value) (or (kindIs "map" $value) (kindIs "slice" $value)) -}}
    {{- $found := ternary "none" (toJson $now) (or (kindIs "invalid" $now) (eq (toString $now) "")) -}}
    {{- fail (printf "podPatch: expected %s of the first container and its pod to stay %s, since the run depends on it, found %s; set %s" $place $wanted $found (get $values $place | default "something else")) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* A pod template with patches applied: (dict "template" TEXT "patches" LIST). */}}
{{- define "lockstep.patchedTemplate" -}}
{{- $after := fromYaml .template -}}
{{- $keys := include "lockstep.listKeys" . | fromJson -}}
{{- range .patches -}}{{- include "lockstep.patch" (dict "at" $after "patch" . "keys" $keys) -}}{{- end -}}
{{- include "lockstep.checkPatch" (dict "before" (fromYaml .template) "after" $after) -}}
{{- toYaml $after -}}
{{- end -}}

{{/* The patches without init containers, which `helm test` does not run, as a JSON list. */}}
{{- define "lockstep.withoutInitContainers" -}}
{{- $left := list -}}
{{- range . -}}{{- $left = append $left (dict "metadata" (.metadata | default dict) "spec" (omit (.spec | default dict) "initContainers")) -}}{{- end -}}
{{- toJson $left -}}
{{- end -}}
