{{/* What is refused, with what to do about it. The schema sees single values; this sees what they make together. */}}
{{- define "streamweld.refusals" -}}
{{- $v := .Values -}}
{{- $isFleet := eq $v.mode "fleet" -}}
{{- $hasUrl := or $v.journal.url $v.files.journalUrl.existingSecret -}}
{{- $faults := list -}}

{{- if and $isFleet (not $v.backends) -}}
{{- $faults = append $faults "a fleet needs backends; name one, such as backends: [{url: http://inference:8000}]" -}}
{{- end -}}
{{- if gt (len $v.backends) 1 -}}
{{- range $v.backends -}}
{{- if not .name -}}
{{- $faults = append $faults (printf "backend %s needs a name, as each does where there are several" .url) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if eq $v.journal.kind "memory" -}}
{{- $most := $v.autoscaling.enabled | ternary $v.autoscaling.maxReplicas $v.replicas | int -}}
{{- if and $isFleet (gt $most 1) -}}
{{- $faults = append $faults (printf "%d replicas with a journal in memory: a client that comes back to another one finds nothing (404); set journal.kind: redis, or run one" $most) -}}
{{- end -}}
{{- if and (not $isFleet) (ne $v.engine.kind "none") (gt (int $v.engine.replicas) 1) (not $v.journal.allowPerPod) -}}
{{- $faults = append $faults (printf "%d pods with a journal in memory each: a client that comes back to another pod finds nothing (404); set journal.kind: redis, or journal.allowPerPod: true where clients are led back to their pod" (int $v.engine.replicas)) -}}
{{- end -}}
{{- range $name := list "url" "durability" "required" -}}
{{- if get $v.journal $name -}}
{{- $faults = append $faults (printf "journal.%s has no use with a journal in memory; set journal.kind: redis, or leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "journalUrl" "journalPassword" "journalCa" -}}
{{- if (get $v.files $name).existingSecret -}}
{{- $faults = append $faults (printf "files.%s has no use with a journal in memory; set journal.kind: redis, or leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- if $v.engine.group -}}
{{- $faults = append $faults "engine.group lets pods go on for one another, which needs journal.kind: redis" -}}
{{- end -}}
{{- else -}}
{{- if not $hasUrl -}}
{{- $faults = append $faults "journal.kind: redis needs to know which; set journal.url, or files.journalUrl.existingSecret for a URL with a password" -}}
{{- end -}}
{{- if and $v.journal.url $v.files.journalUrl.existingSecret -}}
{{- $faults = append $faults "journal.url and files.journalUrl both say where the journal is; leave one of them out" -}}
{{- end -}}
{{- if regexMatch "://[^/@]*:[^/@]*@" $v.journal.url -}}
{{- $faults = append $faults "journal.url has a password, which everybody can read who may see the pod; put the URL into a Secret and name it by files.journalUrl.existingSecret" -}}
{{- end -}}
{{- end -}}

{{- $drain := include "streamweld.drain" . | int -}}
{{- $needed := include "streamweld.needed" . | int -}}
{{- $grace := include "streamweld.gracePeriod" . | int -}}
{{- if lt $grace $needed -}}
{{- $faults = append $faults (printf "termination.gracePeriod (%d) is below what the pod needs to end (%d: hooks %s, engine %s, shutdown grace %d and 4, margin %d); raise it, or leave it out" $grace $needed (include "streamweld.hooks" .) (include "streamweld.engineShutdown" .) (int $v.termination.shutdownGrace) (int $v.termination.margin)) -}}
{{- end -}}
{{- if not (or $isFleet (kindIs "invalid" $v.engine.preStop)) -}}
{{- if lt (int $v.engine.preStop) $drain -}}
{{- $faults = append $faults (printf "engine.preStop (%d) is shorter than termination.drain (%d): the engine would be told to end while its answers are handed over; raise it, or leave it out" (int $v.engine.preStop) $drain) -}}
{{- end -}}
{{- end -}}

{{- range $of := list "tls" "adminTls" }}
{{- $cert := get $v.files (printf "%sCert" $of) }}
{{- $key := get $v.files (printf "%sKey" $of) }}
{{- $ca := get $v.files (printf "%sClientCa" $of) }}
{{- if or (ne (empty $cert.existingSecret) (empty $key.existingSecret)) (and (or $ca.existingSecret $ca.existingConfigMap) (not $cert.existingSecret)) -}}
{{- $faults = append $faults (printf "TLS needs a certificate and the key to it; name both by files.%sCert and files.%sKey" $of $of) -}}
{{- end -}}
{{- end -}}
{{- $hasTls := not (empty $v.files.adminTlsCert.existingSecret) -}}
{{- if ne $hasTls (or $v.files.adminCa.existingSecret $v.files.adminCa.existingConfigMap | empty | not) -}}
{{- $faults = append $faults "files.adminTlsCert and files.adminCa go together: `streamweld drain` in the pod trusts nothing else" -}}
{{- end -}}
{{- range $name := list "podMonitor" "serviceMonitor" -}}
{{- $monitor := get $v $name -}}
{{- if and $monitor.enabled (ne $hasTls (not (empty $monitor.tlsConfig))) -}}
{{- $faults = append $faults (printf "%s.tlsConfig and files.adminTlsCert go together: it says how the certificate is trusted, such as {ca: {secret: {name: …, key: ca.crt}}, serverName: localhost}" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (not $isFleet) (ne $v.engine.kind "none") (or $v.files.tlsClientCa.existingSecret $v.files.tlsClientCa.existingConfigMap) -}}
{{- $faults = append $faults "files.tlsClientCa shuts out the probes of the engine, which come by the data port and have no certificate; leave it out, and admit clients by networkPolicy" -}}
{{- end -}}
{{- if and $v.admin.remote (not $v.files.adminToken.existingSecret) -}}
{{- $faults = append $faults "admin.remote needs a token, or nobody is let in; name its Secret by files.adminToken.existingSecret" -}}
{{- end -}}
{{- range $name := list "relayCert" "relayKey" "relayCa" -}}
{{- $file := get $v.files $name -}}
{{- if ne $v.relay.enabled (or $file.existingSecret (get $file "existingConfigMap") | empty | not) -}}
{{- $faults = append $faults (printf "relay.enabled and files.%s go together; replicas prove themselves to each other by their certificates" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.relay.enabled (eq $v.journal.kind "memory") -}}
{{- $faults = append $faults "relay.enabled has no use with a journal in memory; set journal.kind: redis, or leave it out" -}}
{{- end -}}
{{- $ports := list (int $v.ports.data) (int $v.ports.admin) -}}
{{- if $v.relay.enabled -}}
{{- $ports = append $ports (int $v.ports.relay) -}}
{{- end -}}
{{- if not $isFleet -}}
{{- $ports = append $ports (int $v.engine.port) -}}
{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- $faults = append $faults (printf "ports are used twice in one pod (%s); change ports.data, ports.admin, ports.relay or engine.port" (join ", " $ports)) -}}
{{- end -}}

{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- $faults = append $faults "autoscaling.minReplicas is above autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and (get $v.settings "keep-credentials") (not $v.files.requestKeys.existingSecret) -}}
{{- $faults = append $faults "settings.keep-credentials needs keys to seal them with; name their Secret by files.requestKeys.existingSecret" -}}
{{- end -}}
{{- range $name := list "url-lifetime" "url-prefix" -}}
{{- if and (get $v.settings $name) (not $v.files.urlSigningKeys.existingSecret) -}}
{{- $faults = append $faults (printf "settings.%s has no use without keys to sign URLs with; name their Secret by files.urlSigningKeys.existingSecret" $name) -}}
{{- end -}}
{{- end -}}

{{- if not $isFleet -}}
{{- if $v.autoscaling.enabled -}}
{{- $faults = append $faults "autoscaling is for a fleet; scale an engine by a metric of its own" -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled (not $v.admin.remote) -}}
{{- $faults = append $faults "serviceMonitor finds no Service with the admin port beside a sidecar; use podMonitor" -}}
{{- end -}}
{{- if and (has $v.engine.kind (list "vllm" "llamacpp")) (not $v.engine.model) -}}
{{- $faults = append $faults (printf "engine.kind: %s needs engine.model" $v.engine.kind) -}}
{{- end -}}
{{- if and (ne $v.engine.kind "none") (not $v.engine.image) -}}
{{- $faults = append $faults (printf "engine.kind: %s needs engine.image" $v.engine.kind) -}}
{{- end -}}
{{- range $v.engine.args -}}
{{- if regexMatch "^--(shutdown-timeout|host|port)(=|$)" . -}}
{{- if ne $v.engine.kind "custom" -}}
{{- $faults = append $faults (printf "engine.args has %s, which this chart sets from engine.shutdownTimeout and engine.port" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $v.engine.kind "llamacpp") (ne (include "streamweld.engineShutdown" .) "0") -}}
{{- $faults = append $faults "llama.cpp ends at once when it is told to; leave engine.shutdownTimeout out, and raise termination.drain" -}}
{{- end -}}
{{- end -}}

{{- if $faults -}}
{{- fail (printf "streamweld:\n  - %s" (join "\n  - " $faults)) -}}
{{- end -}}
{{- end -}}
