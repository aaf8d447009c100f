{{/*
Returns the directories of files/kubernetes that the values select, in the order of their patches, as a JSON list.
*/}}
{{- define "modekeep.components" -}}
{{- $doors := .Values.doors -}}
{{- $list := list (printf "overlays/%s" .Values.distribution) -}}
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version -}}
{{- $list = append $list "components/before-1.30" -}}
{{- end -}}
{{- if and $doors.heal.devices $doors.heal.enabled -}}
{{- $list = append $list "components/heal-devices" -}}
{{- end -}}
{{- if $doors.devicePlugin.enabled -}}
{{- $list = append $list "device-plugin" -}}
{{- end -}}
{{- if $doors.csi.enabled -}}
{{- $list = append $list "csi" -}}
{{- end -}}
{{- if $doors.nri.enabled -}}
{{- $list = append $list "nri" -}}
{{- end -}}
{{- if .Values.metrics.enabled -}}
{{- if not $doors.heal.enabled -}}
{{- fail "metrics.enabled needs doors.heal.enabled: heal serves the metrics" -}}
{{- end -}}
{{- $list = append $list "components/metrics" -}}
{{- end -}}
{{- if not $doors.heal.enabled -}}
{{- $list = append $list "components/without-heal" -}}
{{- end -}}
{{- if .Values.policies.inlineByLabel -}}
{{- if semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "policies.inlineByLabel needs Kubernetes 1.30 or newer, and the cluster has %s" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $list = append $list "components/inline-by-label" -}}
{{- end -}}
{{- if .Values.policies.anyVolume -}}
{{- if not $doors.nri.enabled -}}
{{- fail "policies.anyVolume needs doors.nri.enabled: without the plugin the annotated pods start without their group" -}}
{{- end -}}
{{- $list = append $list (include "modekeep.anyVolumeComponent" .) -}}
{{- end -}}
{{- if .Values.uninstall.enabled -}}
{{- $list = append $list "components/uninstall" -}}
{{- end -}}
{{- toJson $list -}}
{{- end -}}

{{/*
Returns the component of the newest MutatingAdmissionPolicy that the cluster serves. Without a cluster, as in `helm template`, Helm
takes the versions that it was built with for served, so the version of Kubernetes counts too.
*/}}
{{- define "modekeep.anyVolumeComponent" -}}
{{- $versions := list
      (dict "version" "v1" "since" "1.36" "component" "components/any-volume")
      (dict "version" "v1beta1" "since" "1.34" "component" "components/any-volume-v1beta1")
-}}
{{- $component := "" -}}
{{- range $versions -}}
{{- $isServed := $.Capabilities.APIVersions.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .version) -}}
{{- if and (not $component) $isServed (semverCompare (printf ">=%s.0-0" .since) $.Capabilities.KubeVersion.Version) -}}
{{- $component = .component -}}
{{- end -}}
{{- end -}}
{{- if not $component -}}
{{- fail (printf "policies.anyVolume needs MutatingAdmissionPolicy of admissionregistration.k8s.io/v1 (Kubernetes 1.36 or newer) or v1beta1 (1.34 and 1.35, with the feature gate MutatingAdmissionPolicy and the API server's --runtime-config=admissionregistration.k8s.io/v1beta1=true); the cluster has Kubernetes %s and serves neither" $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $component -}}
{{- end -}}
