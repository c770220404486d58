{{/* One container, the same in a fleet and as a sidecar. */}}
{{- define "streamweld.container" -}}
name: streamweld
image: {{ include "streamweld.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.mode "sidecar" }}
# An init container that keeps running: up before the engine starts, told to end after it has gone, and with probes.
restartPolicy: Always
{{- end }}
args: [serve]
env:
  {{- include "streamweld.env" . | nindent 2 }}
ports:
  - {name: sw-data, containerPort: {{ .Values.ports.data }}}
  - {name: sw-admin, containerPort: {{ .Values.ports.admin }}}
  {{- if .Values.relay.enabled }}
  - {name: sw-relay, containerPort: {{ .Values.ports.relay }}}
  {{- end }}
# What starts next waits for this, and not for readiness. Ready does not depend on a backend, nor on Redis once it has begun.
startupProbe:
  httpGet: {path: /readyz, port: {{ .Values.ports.admin }}{{ if eq (include "streamweld.adminScheme" .) "https" }}, scheme: HTTPS{{ end }}}
  periodSeconds: 1
  failureThreshold: 60
# May new answers begin here? Fails from the begin of a drain on.
readinessProbe:
  httpGet: {path: /readyz, port: {{ .Values.ports.admin }}{{ if eq (include "streamweld.adminScheme" .) "https" }}, scheme: HTTPS{{ end }}}
  periodSeconds: 2
  failureThreshold: 2
# Is the process stuck? Stays well while it drains.
livenessProbe:
  httpGet: {path: /livez, port: {{ .Values.ports.admin }}{{ if eq (include "streamweld.adminScheme" .) "https" }}, scheme: HTTPS{{ end }}}
  periodSeconds: 10
  failureThreshold: 3
lifecycle:
  preStop:
    # Ends as soon as nothing runs here any more. As a sidecar it has to begin here: SIGTERM comes when the engine is dead.
    exec: {command: [/streamweld, drain, --after, 5s, --wait, {{ include "streamweld.drain" . }}s]}
resources:
  {{- with .Values.resources }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  requests: {cpu: 250m, memory: {{ include "streamweld.memory" . }}}
  limits: {memory: {{ include "streamweld.memory" . }}}
  {{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
terminationMessagePolicy: FallbackToLogsOnError
{{- if include "streamweld.fileSources" . | trim }}
volumeMounts:
  - {name: streamweld, mountPath: {{ include "streamweld.filesPath" . }}, readOnly: true}
{{- end }}
{{- end -}}
