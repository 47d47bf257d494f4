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

{{/* What needs a restart when it changes; the rest is read again by the running process. */}}
{{- define "modelrelay.restart" -}}
{{- omit .Values.config "channels" "tokens" "aliases" "prices" "operators" | toYaml | sha256sum -}}
{{- end -}}

{{/* The port of a listener beside the API's, such as admin; empty where it has none. */}}
{{- define "modelrelay.port" -}}
{{- $at := dig .of "listen" "" .config -}}
{{- if $at -}}{{- regexFind "[0-9]+$" $at -}}{{- end -}}
{{- end -}}

{{/* A pod. Takes root, part ("api" or "worker") and values (of that part). */}}
{{- define "modelrelay.pod" -}}
{{- $root := .root -}}
{{- $api := eq .part "api" -}}
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
  serviceAccountName: {{ include "modelrelay.serviceAccount" $root }}
  automountServiceAccountToken: {{ $root.Values.serviceAccount.automountToken }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
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
      args: {{ ternary (list "serve" "--worker=false") (list "worker") $api | toJson }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
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
      # The kubelet's connections begin with no header of the PROXY protocol: the binary asks from inside.
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
      {{- else }}
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
      configMap: {name: {{ $root.Values.existingConfigMap | default (include "modelrelay.fullname" $root) }}}
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
