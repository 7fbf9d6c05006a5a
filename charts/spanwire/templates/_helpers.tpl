{{/* What all names begin with. */}}
{{- define "spanwire.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a process: (list . "worker"). They never change, so an upgrade can go through. */}}
{{- define "spanwire.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object of a process: (list . "worker"). */}}
{{- define "spanwire.labels" -}}
{{- $root := index . 0 -}}
{{ include "spanwire.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The image with a tag: (list . TAG). */}}
{{- define "spanwire.image" -}}
{{- $root := index . 0 -}}
{{- $tag := index . 1 | default $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- printf "%s:%s" $root.Values.image.repository $tag -}}
{{- end -}}

{{/* Flags that every process takes. */}}
{{- define "spanwire.flags" -}}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
{{- with .Values.otlpEndpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
{{- end -}}

{{/* The rules of a generated role, for the gateway of this release: (list . "controller"). */}}
{{- define "spanwire.rules" -}}
{{- $root := index . 0 -}}
{{- $file := printf "files/roles/%s.yaml" (index . 1) -}}
{{- $role := $root.Files.Get $file | replace "example" $root.Values.worker.gateway | fromYaml -}}
{{ toYaml $role.rules }}
{{- end -}}
