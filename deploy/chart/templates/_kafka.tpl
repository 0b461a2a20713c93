{{/* How a program reaches Kafka: `root` is the chart's scope, `program` the one whose user counts. */}}

{{- define "evictstream.user" -}}
{{- dig .program .root.Values.kafka.user .root.Values.kafka.users | toJson -}}
{{- end }}

{{- define "evictstream.kafka.env" -}}
{{- $user := include "evictstream.user" . | fromJson -}}
{{- if has .root.Values.kafka.sasl.mechanism (list "PLAIN" "SCRAM-SHA-256" "SCRAM-SHA-512") }}
- name: EVICTSTREAM_SASL_USERNAME
  {{- if $user.username }}
  value: {{ $user.username | quote }}
  {{- else }}
  valueFrom: {secretKeyRef: {name: {{ $user.secretName }}, key: username}}
  {{- end }}
- name: EVICTSTREAM_SASL_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $user.secretName }}, key: password}}
{{- end }}
{{- end }}

{{- define "evictstream.kafka.mounts" -}}
{{- if eq .root.Values.kafka.sasl.mechanism "OAUTHBEARER" }}
- {name: kafka-token, mountPath: /etc/evictstream/kafka-token, readOnly: true}
{{- end }}
{{- with .root.Values.kafka.tls }}
{{- if .caSecretName }}
- {name: kafka-authority, mountPath: /etc/evictstream/kafka-authority, readOnly: true}
{{- end }}
{{- if .clientCertificate }}
- {name: kafka-user, mountPath: /etc/evictstream/kafka-user, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "evictstream.kafka.volumes" -}}
{{- $user := include "evictstream.user" . | fromJson -}}
{{- if eq .root.Values.kafka.sasl.mechanism "OAUTHBEARER" }}
- name: kafka-token
  projected:
    defaultMode: 0440
    sources:
      # Renewed by the kubelet; programs read it for each connection.
      - serviceAccountToken: {path: token, audience: {{ .root.Values.kafka.sasl.tokenAudience | quote }}, expirationSeconds: 3600}
{{- end }}
{{- with .root.Values.kafka.tls }}
{{- if .caSecretName }}
- name: kafka-authority
  secret:
    secretName: {{ .caSecretName }}
    defaultMode: 0440
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- if .clientCertificate }}
- name: kafka-user
  secret:
    secretName: {{ $user.secretName }}
    defaultMode: 0440
    items:
      - {key: {{ .certificateKey | quote }}, path: tls.crt}
      - {key: {{ .privateKeyKey | quote }}, path: tls.key}
{{- end }}
{{- end }}
{{- end }}
