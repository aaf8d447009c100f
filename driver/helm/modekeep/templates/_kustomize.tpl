{{/*
The objects come from files/kubernetes, a copy of driver/kubernetes: these definitions read its kustomizations, so that Helm and
kustomize create the same objects. They support resources, components, and JSON patches of objects by kind and name.
*/}}

{{/*
Adds the objects of a kustomization to the list "objects" of "state", and applies its patches to the list.
Input: "root" (the top-level scope), "directory" (below files/kubernetes), "state".
*/}}
{{- define "modekeep.kustomization" -}}
{{- $root := .root -}}
{{- $directory := .directory -}}
{{- $state := .state -}}
{{- $text := $root.Files.Get (printf "files/kubernetes/%s/kustomization.yaml" $directory) -}}
{{- if not $text -}}
{{- fail (printf "the chart has no files/kubernetes/%s: use the chart of a release, or make it by `npm run chart`" $directory) -}}
{{- end -}}
{{- $kustomization := fromYaml $text -}}
{{- range $kustomization.resources -}}
{{- $path := clean (printf "%s/%s" $directory .) -}}
{{- if hasSuffix ".yaml" $path -}}
{{- range regexSplit "(?m)^---$" ($root.Files.Get (printf "files/kubernetes/%s" $path)) -1 -}}
{{- with fromYaml . -}}
{{- $_ := set $state "objects" (append $state.objects .) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- include "modekeep.kustomization" (dict "root" $root "directory" $path "state" $state) -}}
{{- end -}}
{{- end -}}
{{- range $kustomization.components -}}
{{- $path := clean (printf "%s/%s" $directory .) -}}
{{- include "modekeep.kustomization" (dict "root" $root "directory" $path "state" $state) -}}
{{- end -}}
{{- range $patch := $kustomization.patches -}}
{{- $namePattern := printf "^(%s)$" $patch.target.name -}}
{{- range $object := $state.objects -}}
{{- if and (eq $object.kind $patch.target.kind) (regexMatch $namePattern $object.metadata.name) -}}
{{- range fromYamlArray $patch.patch -}}
{{- include "modekeep.patch" (dict "object" $object "operation" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Applies one operation of a JSON patch: "add", "replace" or "remove" of a key, or "add" at the end of a list.
Input: "object", "operation".
*/}}
{{- define "modekeep.patch" -}}
{{- $operation := .operation -}}
{{- $keys := rest (splitList "/" $operation.path) -}}
{{- $node := .object -}}
{{- $parent := dict -}}
{{- $parentKey := "" -}}
{{- range initial $keys -}}
{{- $key := . | replace "~1" "/" | replace "~0" "~" -}}
{{- if kindIs "slice" $node -}}
{{- $node = index $node (int $key) -}}
{{- else if hasKey $node $key -}}
{{- $parent = $node -}}
{{- $parentKey = $key -}}
{{- $node = index $node $key -}}
{{- else -}}
{{- fail (printf "patch of %s: no %s in the object" $operation.path $key) -}}
{{- end -}}
{{- end -}}
{{- $key := last $keys | replace "~1" "/" | replace "~0" "~" -}}
{{- if kindIs "slice" $node -}}
{{- if or (ne $key "-") (ne $operation.op "add") -}}
{{- fail (printf "patch of %s: %s of a list's item is not supported" $operation.path $operation.op) -}}
{{- end -}}
{{- $_ := set $parent $parentKey (append $node $operation.value) -}}
{{- else if and (ne $operation.op "add") (not (hasKey $node $key)) -}}
{{- fail (printf "patch of %s: no %s in the object" $operation.path $key) -}}
{{- else if eq $operation.op "remove" -}}
{{- $_ := unset $node $key -}}
{{- else -}}
{{- $_ := set $node $key $operation.value -}}
{{- end -}}
{{- end -}}
