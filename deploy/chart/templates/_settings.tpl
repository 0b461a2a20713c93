{{/* The environment that all programs share: they must mean the same topics. */}}
{{- define "evictstream.settings" -}}
EVICTSTREAM_BOOTSTRAP_SERVERS: {{ .Values.kafka.bootstrapServers | quote }}
EVICTSTREAM_HEALTH_HOST: "::"
EVICTSTREAM_HEALTH_PORT: {{ .Values.health.port | toJson | quote }}
{{- with .Values.kafka }}
EVICTSTREAM_SECURITY_PROTOCOL: {{ if .sasl.mechanism }}SASL_{{ if .tls.enabled }}SSL{{ else }}PLAINTEXT{{ end }}
  {{- else if .tls.enabled }}SSL{{ else }}PLAINTEXT{{ end }}
{{- with .sasl.mechanism }}
EVICTSTREAM_SASL_MECHANISM: {{ . }}
{{- if eq . "OAUTHBEARER" }}
EVICTSTREAM_SASL_OAUTH_TOKEN_FILE: /etc/evictstream/kafka-token/token
{{- end }}
{{- end }}
{{- if .tls.caSecretName }}
EVICTSTREAM_SSL_CAFILE: /etc/evictstream/kafka-authority/ca.crt
{{- end }}
{{- if .tls.clientCertificate }}
EVICTSTREAM_SSL_CERTFILE: /etc/evictstream/kafka-user/tls.crt
EVICTSTREAM_SSL_KEYFILE: /etc/evictstream/kafka-user/tls.key
{{- end }}
{{- end }}
{{- /* Of the chart's own cluster, and those that the setting names. */}}
{{- $builtIn := list }}
{{- with .Values.handover }}
{{- if and $.Values.clusters (ternary .enabled .builtIn (kindIs "invalid" .builtIn)) }}
{{- $builtIn = list (first $.Values.clusters).name }}
{{- end }}
{{- end }}
{{- with .Values.settings.built_in }}
{{- $builtIn = concat $builtIn (splitList "," .) }}
{{- end }}
{{- with $builtIn }}
EVICTSTREAM_BUILT_IN: {{ uniq . | join "," | quote }}
{{- end }}
{{- range $name, $value := omit .Values.settings "built_in" }}
{{- /* Helm reads numbers as floats; JSON writes large ones without an exponent. */}}
EVICTSTREAM_{{ upper $name }}: {{ if kindIs "string" $value }}{{ quote $value }}{{ else }}{{ toJson $value | quote }}{{ end }}
{{- end }}
{{- end }}
