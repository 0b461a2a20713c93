{{/*
The pod of a program. `root` is the chart's scope, `program` its name, `args` its command line, `env` what it needs beyond
the settings, `resources` its resources, `calls` whether it calls API servers, `probed` whether it serves health.
*/}}
{{- define "evictstream.pod" -}}
{{- $values := .root.Values -}}
{{- $remote := and .calls (not (empty $values.kubeconfigSecretName)) -}}
{{- $hub := ternary (dig "hub" "kubeconfigSecretName" "" $values.feed) "" (eq .program "feed") -}}
metadata:
  labels:
    {{- include "evictstream.selector" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .program }}
  annotations:
    # Programs read their settings once: a change starts the pods anew.
    checksum/settings: {{ include "evictstream.settings" .root | sha256sum | trunc 16 }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "evictstream.fullname" .root }}-{{ .program }}
  automountServiceAccountToken: {{ and .calls (not $remote) }}
  # A service called `evictstream-...` would put variables into the environment that look like settings.
  enableServiceLinks: false
  # Process 1 ignores signals until it asks for them; so the program is not process 1.
  shareProcessNamespace: true
  # Above the 25 s in which a worker commits and leaves its group.
  terminationGracePeriodSeconds: 40
  securityContext:
    {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .probed }}
  topologySpreadConstraints:
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "evictstream.selector" $.root | nindent 10 }}
          app.kubernetes.io/component: {{ $.program }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .program }}
      image: {{ include "evictstream.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        {{- toYaml .args | nindent 8 }}
      envFrom:
        - configMapRef:
            name: {{ include "evictstream.fullname" .root }}-settings
      {{- $env := concat .env (include "evictstream.kafka.env" . | fromYamlArray) }}
      {{- with $env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      # `kubectl describe pod` shows why it has ended.
      terminationMessagePolicy: FallbackToLogsOnError
      {{- if .probed }}
      ports:
        - name: health
          containerPort: {{ $values.health.port }}
      # A program waits for Kafka for 15 s at most, and for topics for a minute, then ends. From then on /livez says
      # whether something is stuck, whatever Kafka does.
      startupProbe:
        httpGet: {path: /livez, port: health}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /livez, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: health}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if $remote }}
        - {name: kubeconfig, mountPath: /etc/evictstream/kubeconfig, readOnly: true}
        {{- end }}
        {{- if $hub }}
        - {name: hub, mountPath: /etc/evictstream/hub, readOnly: true}
        {{- end }}
        {{- with include "evictstream.kafka.mounts" . | trim }}
        {{- nindent 8 . }}
        {{- end }}
  volumes:
    # For certificates of a kubeconfig, which OpenSSL reads from files. In memory, since they may be secret.
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 16Mi}
    {{- if $remote }}
    - name: kubeconfig
      secret:
        secretName: {{ $values.kubeconfigSecretName }}
        defaultMode: 0440
        items: [{key: config, path: config}]
    {{- end }}
    {{- if $hub }}
    - name: hub
      secret:
        secretName: {{ $hub }}
        defaultMode: 0440
        items: [{key: config, path: config}]
    {{- end }}
    {{- with include "evictstream.kafka.volumes" . | trim }}
    {{- nindent 4 . }}
    {{- end }}
{{- end }}
