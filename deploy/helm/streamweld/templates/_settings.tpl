{{/* Bytes of a size such as 512MiB, in MiB. */}}
{{- define "streamweld.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- if hasSuffix "GiB" . -}}
{{- mul $number 1024 -}}
{{- else if hasSuffix "MiB" . -}}
{{- $number -}}
{{- else -}}
{{- add 1 (div $number 1024) -}}
{{- end -}}
{{- end -}}

{{/* The journal and some 30 % for its upkeep, 128 MiB for connections, and what is kept while a Redis is away. */}}
{{- define "streamweld.memory" -}}
{{- $total := include "streamweld.mebibytes" .Values.journal.total | int64 -}}
{{- $away := eq .Values.journal.kind "redis" | ternary (min 256 $total) 0 -}}
{{- add (div (mul $total 13) 10) 128 $away -}}Mi
{{- end -}}

{{/* A backend as README.md has it. */}}
{{- define "streamweld.backend" -}}
{{- $parts := list .url -}}
{{- range $option := list "name" "engine" "family" "group" "weight" "health" -}}
{{- with get $ $option -}}
{{- $parts = append $parts (printf "%s=%v" $option .) -}}
{{- end -}}
{{- end -}}
{{- if .dns -}}
{{- $parts = append $parts "dns" -}}
{{- end -}}
{{- with .credential -}}
{{- $parts = append $parts (printf "credential-file=/etc/streamweld/backends/%s/%s" .existingSecret .key) -}}
{{- end -}}
{{- join "," $parts -}}
{{- end -}}

{{- define "streamweld.backends" -}}
{{- $urls := list -}}
{{- range .Values.backends -}}
{{- $urls = append $urls (include "streamweld.backend" .) -}}
{{- end -}}
{{- if and (not $urls) (eq .Values.mode "sidecar") -}}
{{- $type := dict "vllm" "vllm" "llamacpp" "llama_cpp" | merge (dict "none" .Values.engine.type "custom" .Values.engine.type) -}}
{{- $url := printf "http://127.0.0.1:%d" (int .Values.engine.port) -}}
{{- $engine := dict "url" $url "name" .Values.engine.name "engine" (get $type .Values.engine.kind) "group" .Values.engine.group -}}
{{- $urls = list (include "streamweld.backend" $engine) -}}
{{- end -}}
{{- join " " $urls -}}
{{- end -}}

{{- define "streamweld.env" -}}
- name: STREAMWELD_BACKEND
  value: {{ include "streamweld.backends" . | quote }}
- name: STREAMWELD_LISTEN
  value: {{ printf "%s:%d" .Values.listenAddress (int .Values.ports.data) | quote }}
# Beyond loopback, for probes and scrapers: /livez, /readyz and /metrics are open to whoever reaches the pod. /admin/* answers
# who has the token, and without one only who is in the pod.
- name: STREAMWELD_ADMIN_LISTEN
  value: {{ printf "%s:%d" .Values.listenAddress (int .Values.ports.admin) | quote }}
# Where `streamweld drain` and the other commands find it, in this container.
- name: STREAMWELD_ADMIN
  {{- if .Values.files.adminTlsCert.existingSecret }}
  value: "https://localhost:{{ .Values.ports.admin }}"
{{- if or .Values.files.adminTlsClientCa.existingSecret .Values.files.adminTlsClientCa.existingConfigMap }}
- name: STREAMWELD_ADMIN_CERT_FILE
  value: {{ include "streamweld.filesPath" . }}/admin-tls-cert
- name: STREAMWELD_ADMIN_KEY_FILE
  value: {{ include "streamweld.filesPath" . }}/admin-tls-key
{{- end }}
  {{- else }}
  value: "http://127.0.0.1:{{ .Values.ports.admin }}"
  {{- end }}
{{- with .Values.journal }}
{{- if .url }}
- name: STREAMWELD_JOURNAL
  value: {{ .url | quote }}
{{- end }}
{{- if .durability }}
- name: STREAMWELD_JOURNAL_DURABILITY
  value: {{ .durability | quote }}
{{- end }}
{{- if .required }}
- name: STREAMWELD_JOURNAL_REQUIRED
  value: "true"
{{- end }}
- name: STREAMWELD_JOURNAL_TOTAL
  value: {{ .total | quote }}
{{- end }}
{{- if .Values.relay.enabled }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: STREAMWELD_RELAY_LISTEN
  value: {{ printf "%s:%d" .Values.listenAddress (int .Values.ports.relay) | quote }}
- name: STREAMWELD_RELAY_ADVERTISE
  value: {{ printf (eq .Values.listenAddress "[::]" | ternary "[$(POD_IP)]:%d" "$(POD_IP):%d") (int .Values.ports.relay) | quote }}
- name: STREAMWELD_RELAY_NAME
  value: {{ .Values.relay.name | quote }}
{{- end }}
- name: STREAMWELD_SHUTDOWN_GRACE
  value: "{{ .Values.termination.shutdownGrace }}s"
- name: STREAMWELD_LOG_FORMAT
  value: {{ .Values.logFormat }}
{{- include "streamweld.fileEnv" . }}
{{- range $name, $value := .Values.settings }}
- name: STREAMWELD_{{ $name | upper | replace "-" "_" }}
  {{- if kindIs "slice" $value }}
  value: {{ join "," $value | quote }}
  {{- else if kindIs "float64" $value }}
  value: {{ int64 $value | quote }}
  {{- else }}
  value: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
