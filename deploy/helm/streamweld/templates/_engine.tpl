{{/* The command line of an engine: on loopback, so that it is reached through Streamweld only. */}}
{{- define "streamweld.engineArgs" -}}
{{- $engine := .Values.engine -}}
{{- $args := list -}}
{{- if eq $engine.kind "vllm" -}}
{{- $args = list "--host" "127.0.0.1" "--port" (toString $engine.port) "--model" $engine.model "--shutdown-timeout" (include "streamweld.engineShutdown" .) -}}
{{- else if eq $engine.kind "llamacpp" -}}
{{- $args = list "--host" "127.0.0.1" "--port" (toString $engine.port) "--model" $engine.model -}}
{{- end -}}
{{- concat $args $engine.args | toYaml -}}
{{- end -}}

{{- define "streamweld.engineContainer" -}}
{{- $engine := .Values.engine -}}
name: {{ $engine.name }}
image: {{ $engine.image | quote }}
args:
  {{- include "streamweld.engineArgs" . | nindent 2 }}
{{- with $engine.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
# As long as Streamweld drains: its hook does not hold this container back, and SIGTERM would cut what is being handed over.
lifecycle:
  preStop:
    {{- include "streamweld.enginePreStop" . | nindent 4 }}
# Through Streamweld, which passes the path on.
startupProbe:
  httpGet: {path: {{ $engine.healthPath }}, port: {{ .Values.ports.data }}{{ if eq (include "streamweld.dataScheme" .) "https" }}, scheme: HTTPS{{ end }}}
  periodSeconds: 5
  failureThreshold: {{ div (add $engine.startupSeconds 4) 5 }}
readinessProbe:
  httpGet: {path: {{ $engine.healthPath }}, port: {{ .Values.ports.data }}{{ if eq (include "streamweld.dataScheme" .) "https" }}, scheme: HTTPS{{ end }}}
  periodSeconds: 5
{{- with $engine.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $engine.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $engine.volumeMounts }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
