{{/* How each listener is spoken to. */}}
{{- define "streamweld.dataScheme" -}}
{{- .Values.files.tlsCert.existingSecret | empty | ternary "http" "https" -}}
{{- end -}}

{{- define "streamweld.adminScheme" -}}
{{- .Values.files.adminTlsCert.existingSecret | empty | ternary "http" "https" -}}
{{- end -}}

{{/* What a monitor has beside the place, given its values: how to scrape by TLS. */}}
{{- define "streamweld.scrape" -}}
{{- if eq (include "streamweld.adminScheme" .root) "https" }}
scheme: https
{{- with .monitor.tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}
