{{/* How a pod ends, in seconds. All arithmetic of it is here. */}}

{{- define "streamweld.engineShutdown" -}}
{{- if ne .Values.mode "sidecar" -}}
0
{{- else if not (kindIs "invalid" .Values.engine.shutdownTimeout) -}}
{{- int .Values.engine.shutdownTimeout -}}
{{- else -}}
{{- eq .Values.engine.kind "vllm" | ternary 120 0 -}}
{{- end -}}
{{- end -}}

{{- define "streamweld.drain" -}}
{{- if not (kindIs "invalid" .Values.termination.drain) -}}
{{- int .Values.termination.drain -}}
{{- else if eq .Values.mode "fleet" -}}
300
{{- else -}}
{{- eq (include "streamweld.engineShutdown" .) "0" | ternary 150 30 -}}
{{- end -}}
{{- end -}}

{{/* Until the engine is told to end: both hooks run side by side. */}}
{{- define "streamweld.hooks" -}}
{{- $drain := include "streamweld.drain" . | int -}}
{{- if or (eq .Values.mode "fleet") (kindIs "invalid" .Values.engine.preStop) -}}
{{- $drain -}}
{{- else -}}
{{- max $drain (int .Values.engine.preStop) -}}
{{- end -}}
{{- end -}}

{{/* Streamweld exits at most 4 s after its shutdown grace (README.md, "Operation"). */}}
{{- define "streamweld.needed" -}}
{{- $tail := add .Values.termination.shutdownGrace 4 -}}
{{- add (include "streamweld.hooks" .) (include "streamweld.engineShutdown" .) $tail .Values.termination.margin -}}
{{- end -}}

{{- define "streamweld.gracePeriod" -}}
{{- if kindIs "invalid" .Values.termination.gracePeriod -}}
{{- include "streamweld.needed" . -}}
{{- else -}}
{{- int .Values.termination.gracePeriod -}}
{{- end -}}
{{- end -}}

{{/* The sleep action came with 1.30. */}}
{{- define "streamweld.enginePreStop" -}}
{{- $seconds := include "streamweld.hooks" . -}}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version -}}
sleep: {seconds: {{ $seconds }}}
{{- else -}}
exec: {command: [sleep, {{ $seconds | quote }}]}
{{- end -}}
{{- end -}}
