{{/*
Applies the values to the DaemonSet. Input: "root" (the top-level scope), "object".
*/}}
{{- define "modekeep.applyValuesToDaemonSet" -}}
{{- $values := .root.Values -}}
{{- $object := .object -}}
{{- $template := $object.spec.template -}}
{{- $pod := $template.spec -}}
{{- with $values.pluginDirectory -}}
{{- $_ := set $template.metadata.annotations "modekeep/plugin-directory" . -}}
{{- include "modekeep.moveHostPath" (dict "pod" $pod "name" "plugins" "path" .) -}}
{{- end -}}
{{- with $values.config.stateDir -}}
{{- include "modekeep.moveHostPath" (dict "pod" $pod "name" "state" "path" .) -}}
{{- end -}}
{{- with $values.config.logFile -}}
{{- include "modekeep.moveHostPath" (dict "pod" $pod "name" "logs" "path" (dir .)) -}}
{{- end -}}
{{- $_ := merge $template.metadata.annotations $values.podAnnotations -}}
{{- $_ := set $template.metadata.annotations "modekeep/config" (printf "%s\n" (toPrettyJson $values.config)) -}}
{{- $_ := merge $template.metadata.labels $values.podLabels -}}
{{- if not $values.uninstall.enabled -}}
{{- $_ := set $object.spec.updateStrategy.rollingUpdate "maxUnavailable" $values.maxUnavailable -}}
{{- end -}}
{{- $_ := mergeOverwrite $pod.nodeSelector $values.nodeSelector -}}
{{- $_ := set $pod "tolerations" $values.tolerations -}}
{{- $_ := set $pod "priorityClassName" $values.priorityClassName -}}
{{- with $values.affinity -}}
{{- $_ := set $pod "affinity" . -}}
{{- end -}}
{{- with $values.imagePullSecrets -}}
{{- $_ := set $pod "imagePullSecrets" . -}}
{{- end -}}
{{- $doors := dict "install" "install" "modekeep" "heal" "csi" "csi" "nri" "nri" "device-plugin" "devicePlugin" -}}
{{- range concat $pod.initContainers $pod.containers -}}
{{- $_ := set . "image" (include "modekeep.image" $.root) -}}
{{- $_ := set . "imagePullPolicy" $values.image.pullPolicy -}}
{{- if $values.uninstall.enabled -}}
{{- if and $values.uninstall.purge (eq .name "uninstall") -}}
{{- $_ := set . "command" (append .command "--purge") -}}
{{- end -}}
{{- else -}}
{{- $_ := mergeOverwrite .resources (get $values.resources (get $doors .name) | default dict) -}}
{{- if and (eq .name "modekeep") $values.doors.heal.enabled -}}
{{- $_ := set . "command" (concat .command $values.doors.heal.args) -}}
{{- else if eq .name "device-plugin" -}}
{{- $_ := set . "args" (list "--devices" (printf "%v" $values.doors.devicePlugin.devices)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Gives a volume of the pod another directory of the node, which the installer has at the same path. Input: "pod", "name", "path".
*/}}
{{- define "modekeep.moveHostPath" -}}
{{- $name := .name -}}
{{- $path := .path -}}
{{- range .pod.volumes -}}
{{- if eq .name $name -}}
{{- $_ := set .hostPath "path" $path -}}
{{- end -}}
{{- end -}}
{{- range (first .pod.initContainers).volumeMounts -}}
{{- if eq .name $name -}}
{{- $_ := set . "mountPath" $path -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "modekeep.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Puts an object and the accounts that it names into the release's namespace, and labels it. Input: "root", "object".
*/}}
{{- define "modekeep.applyRelease" -}}
{{- $root := .root -}}
{{- $object := .object -}}
{{- if not (regexMatch "^(Cluster.*|CSIDriver|.*AdmissionPolicy|.*AdmissionPolicyBinding)$" $object.kind) -}}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- range $object.subjects -}}
{{- $_ := set . "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- $labels := dict
      "app.kubernetes.io/name" "modekeep"
      "app.kubernetes.io/instance" $root.Release.Name
      "app.kubernetes.io/version" $root.Chart.AppVersion
      "app.kubernetes.io/managed-by" $root.Release.Service
      "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version)
-}}
{{- $_ := set $object.metadata "labels" (merge ($object.metadata.labels | default dict) $labels) -}}
{{- end -}}
