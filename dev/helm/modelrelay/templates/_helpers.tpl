{{- define "modelrelay.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "modelrelay.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "modelrelay.labels" -}}
{{ include "modelrelay.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "modelrelay.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "modelrelay.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "modelrelay.image" -}}
{{- $repository := required "image.repository: name the image that you built" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The configuration file: the chart's own addresses come before the values'. */}}
{{- define "modelrelay.config" -}}
{{- $own := dict "listen" "0.0.0.0:8080" "metrics" (dict "listen" "0.0.0.0:9464") -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end -}}

{{/* Annotations of what exists only while Helm checks an installation or an upgrade. Takes the order. A failed job stays, so that
its log can be read. */}}
{{- define "modelrelay.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* A hash of the keys that need a restart. The process reads the others again by itself: those that the gateway's
configuration marks as live. That there is an API key of Temporal needs one, since it implies TLS; its value does not. */}}
{{- define "modelrelay.restart" -}}
{{- $config := omit (deepCopy .Values.config) "admin_key" "aliases" "channels" "groups" "operators" "prices" "tokens" -}}
{{- with get $config "temporal" -}}
{{- if get . "api_key" -}}{{- $_ := set . "api_key" "given" -}}{{- end -}}
{{- $_ := unset . "payload_keys" -}}
{{- end -}}
{{- toYaml $config | sha256sum -}}
{{- end -}}

{{/* The port of a listener beside the API's, such as admin; empty where it has none. */}}
{{- define "modelrelay.port" -}}
{{- $at := dig .of "listen" "" .config -}}
{{- if $at -}}{{- regexFind "[0-9]+$" $at -}}{{- end -}}
{{- end -}}

{{/* A pod. Takes root, part ("api", "worker" or "preflight") and values (of that part). */}}
{{- define "modelrelay.pod" -}}
{{- $root := .root -}}
{{- $api := eq .part "api" -}}
{{- $preflight := eq .part "preflight" -}}
{{- $own := ternary "-preflight" "" $preflight -}}
{{- $scheme := ternary "HTTPS" "HTTP" (hasKey $root.Values.config "tls") -}}
metadata:
  labels:
    {{- include "modelrelay.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .part }}
    {{- with .values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    modelrelay/config: {{ include "modelrelay.restart" $root }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "modelrelay.serviceAccount" $root }}{{ if $root.Values.serviceAccount.create }}{{ $own }}{{ end }}
  automountServiceAccountToken: {{ $root.Values.serviceAccount.automountToken }}
  enableServiceLinks: false
  {{- if $preflight }}
  restartPolicy: Never
  {{- else }}
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: gateway
      image: {{ include "modelrelay.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ get (dict "api" (list "serve" "--worker=false") "worker" (list "worker") "preflight" (list "config" "check" "--connect")) .part | toJson }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      {{- if not $preflight }}
      ports:
        {{- if $api }}
        - {name: api, containerPort: 8080}
        {{- range $of := list "admin" "console" }}
        {{- with include "modelrelay.port" (dict "of" $of "config" $root.Values.config) }}
        - {name: {{ $of }}, containerPort: {{ . }}}
        {{- end }}
        {{- end }}
        {{- end }}
        - {name: metrics, containerPort: 9464}
      {{- end }}
      {{- with $root.Values.env }}
      env:
        {{- range . }}
        - name: {{ .name }}
          {{- if hasKey . "secret" }}
          valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
          {{- else }}
          value: {{ .value | quote }}
          {{- end }}
        {{- end }}
      {{- end }}
      {{- if $api }}
      lifecycle:
        preStop: {sleep: {seconds: {{ .values.drainSeconds }}}}
      {{- if dig "proxy_protocol" false $root.Values.config }}
      # The kubelet's connections do not begin with a header of the PROXY protocol, so the probe runs inside.
      startupProbe:
        exec: {command: [gateway, health, --for, relay]}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 24
      readinessProbe:
        exec: {command: [gateway, health, --for, relay]}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 2
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- else }}
      startupProbe:
        httpGet: {path: /healthz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 2
        failureThreshold: 60
      readinessProbe:
        httpGet: {path: "/readyz?for=relay", port: api, scheme: {{ $scheme }}}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      livenessProbe:
        httpGet: {path: /healthz, port: api, scheme: {{ $scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      {{- else if not $preflight }}
      startupProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        # The whole folder: a file mounted by subPath never changes.
        - {name: config, mountPath: /etc/gateway, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- range $root.Values.secretFiles }}
        - {name: secret-{{ .name }}, mountPath: /etc/gateway-secrets/{{ .name }}, readOnly: true}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ $root.Values.existingConfigMap | default (print (include "modelrelay.fullname" $root) $own) }}}
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
    {{- range $root.Values.secretFiles }}
    - name: secret-{{ .name }}
      secret: {secretName: {{ .secret }}, defaultMode: 0440}
    {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
