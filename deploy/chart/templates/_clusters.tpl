{{/* What feed and executor are told about clusters: a YAML list of arguments. */}}
{{- define "evictstream.clusters" -}}
{{- $names := list }}
{{- range $index, $_ := .Values.clusters }}
{{- if has .name $names }}
{{- fail (printf "at '/clusters/%d/name': the name %s is given twice" $index .name) }}
{{- end }}
{{- $names = append $names .name }}
- --cluster
- {{ ternary .name (printf "%s=%v" .name .context) (empty .context) | quote }}
{{- end }}
{{- if .Values.kubeconfigSecretName }}
- --kubeconfig
- /etc/evictstream/kubeconfig/config
{{- end }}
{{- end }}

{{/* The rights that the executor needs in the cluster of the chart, as a YAML list. */}}
{{- define "evictstream.executor.rights" -}}
{{- $mode := default .Values.executor.mode (first .Values.clusters).mode -}}
{{- $modes := list $mode -}}
{{- if not (kindIs "invalid" .Values.executor.deleteAfterSeconds) -}}
{{- if eq $mode "evict" -}}
{{- $modes = list "delete" -}}
{{- else if eq $mode "request" -}}
{{- $modes = list "request" "delete" -}}
{{- end -}}
{{- end -}}
{{- range $modes }}
{{ $.Files.Get (printf "files/rights/executor-%s.yaml" .) | trim }}
{{- end }}
{{- end }}
