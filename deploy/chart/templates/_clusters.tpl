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

{{/* The file of rights that the executor needs in the cluster of the chart. */}}
{{- define "evictstream.executor.rights" -}}
{{- $mode := default .Values.executor.mode (first .Values.clusters).mode -}}
{{- if and (eq $mode "evict") (not (kindIs "invalid" .Values.executor.deleteAfterSeconds)) -}}
{{- $mode = "delete" -}}
{{- end -}}
files/rights/executor-{{ $mode }}.yaml
{{- end }}
