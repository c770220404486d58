{{/* Which file is told by which variable. */}}
{{- define "streamweld.fileVariables" -}}
adminToken: STREAMWELD_ADMIN_TOKEN_FILE
journalUrl: STREAMWELD_JOURNAL_FILE
journalPassword: STREAMWELD_JOURNAL_PASSWORD_FILE
journalCa: STREAMWELD_JOURNAL_CA_FILE
backendCa: STREAMWELD_BACKEND_CA
urlSigningKeys: STREAMWELD_URL_SIGNING_KEY_FILE
requestKeys: STREAMWELD_REQUEST_KEY_FILE
tlsCert: STREAMWELD_TLS_CERT_FILE
tlsKey: STREAMWELD_TLS_KEY_FILE
tlsClientCa: STREAMWELD_TLS_CLIENT_CA_FILE
adminTlsCert: STREAMWELD_ADMIN_TLS_CERT_FILE
adminTlsKey: STREAMWELD_ADMIN_TLS_KEY_FILE
adminTlsClientCa: STREAMWELD_ADMIN_TLS_CLIENT_CA_FILE
adminCa: STREAMWELD_ADMIN_CA_FILE
relayCert: STREAMWELD_RELAY_CERT
relayKey: STREAMWELD_RELAY_KEY
relayCa: STREAMWELD_RELAY_CA
{{- end -}}

{{- define "streamweld.filesPath" -}}/etc/streamweld{{- end -}}

{{/* The sources of the one volume; empty where there is no file. */}}
{{- define "streamweld.fileSources" -}}
{{- range $name, $file := .Values.files }}
{{- if $file.existingSecret }}
- secret:
    name: {{ $file.existingSecret }}
    items: [{key: {{ $file.key | quote }}, path: {{ kebabcase $name }}}]
{{- else if $file.existingConfigMap }}
- configMap:
    name: {{ $file.existingConfigMap }}
    items: [{key: {{ $file.key | quote }}, path: {{ kebabcase $name }}}]
{{- end }}
{{- end }}
{{- $credentials := dict }}
{{- range .Values.backends }}
{{- with .credential }}
{{- $_ := set $credentials (printf "%s/%s" .existingSecret .key) . }}
{{- end }}
{{- end }}
{{- range $path, $credential := $credentials }}
- secret:
    name: {{ $credential.existingSecret }}
    items: [{key: {{ $credential.key | quote }}, path: {{ printf "backends/%s" $path | quote }}}]
{{- end }}
{{- end -}}

{{- define "streamweld.fileEnv" -}}
{{- $variables := include "streamweld.fileVariables" . | fromYaml }}
{{- range $name, $file := .Values.files }}
{{- if or $file.existingSecret $file.existingConfigMap }}
- name: {{ get $variables $name }}
  value: {{ include "streamweld.filesPath" $ }}/{{ kebabcase $name }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Readable for a user without a name; nobody else is in the container. */}}
{{- define "streamweld.volumes" -}}
{{- with include "streamweld.fileSources" . | trim }}
- name: streamweld
  projected:
    defaultMode: 0444
    sources:
      {{- . | nindent 6 }}
{{- end }}
{{- end -}}
