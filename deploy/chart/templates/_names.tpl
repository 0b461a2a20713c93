{{/* Names and labels. Selectors cannot change after the installation, so they have nothing that an upgrade changes. */}}

{{- define "evictstream.fullname" -}}
{{- $name := default .Release.Name .Values.fullnameOverride -}}
{{- /* 40 characters leave room for `-executor-` and numbers within the 63 of a label. */ -}}
{{- trunc 40 $name | trimSuffix "-" -}}
{{- end }}

{{- define "evictstream.selector" -}}
app.kubernetes.io/name: evictstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "evictstream.labels" -}}
{{ include "evictstream.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "evictstream.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}
