{{/*
For charts that depend on this one and make the pods of an engine themselves. Each is included with `.Subcharts.streamweld`:

  metadata.labels                 streamweld.sidecar.labels
  terminationGracePeriodSeconds   streamweld.sidecar.gracePeriod
  initContainers                  streamweld.sidecar, a list item; behind those of a mesh, so that it ends before them
  the engine's lifecycle.preStop  streamweld.sidecar.enginePreStop
  volumes                         streamweld.sidecar.volumes, list items, or nothing
  the engine's probes: scheme     streamweld.sidecar.probeScheme, of what comes by the data port

deploy/examples/parent-chart does so.
*/}}

{{- define "streamweld.sidecar" -}}
{{- if ne .Values.mode "sidecar" -}}
{{- fail "streamweld: its sidecar templates need mode: sidecar" -}}
{{- end -}}
{{- include "streamweld.refusals" . -}}
- {{ include "streamweld.container" . | nindent 2 | trim }}
{{- end -}}

{{- define "streamweld.sidecar.labels" -}}
streamweld-sidecar: {{ include "streamweld.fullname" . | quote }}
{{- end -}}

{{- define "streamweld.sidecar.gracePeriod" -}}
{{- include "streamweld.gracePeriod" . -}}
{{- end -}}

{{- define "streamweld.sidecar.enginePreStop" -}}
{{- include "streamweld.enginePreStop" . -}}
{{- end -}}

{{- define "streamweld.sidecar.volumes" -}}
{{- include "streamweld.volumes" . | trim -}}
{{- end -}}

{{- define "streamweld.sidecar.probeScheme" -}}
{{- include "streamweld.dataScheme" . | upper -}}
{{- end -}}
