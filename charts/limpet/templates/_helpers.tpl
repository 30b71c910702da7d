{{- define "limpet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What it makes is named by this: at most 53 characters, so that suffixes fit. */}}
{{- define "limpet.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains (include "limpet.name" .) .Release.Name }}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "limpet.name" .) | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "limpet.selectorLabels" -}}
app.kubernetes.io/name: {{ include "limpet.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "limpet.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "limpet.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: limpet
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "limpet.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "limpet.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name must name an existing ServiceAccount, because serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "limpet.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Names of objects outside of its own namespace: two releases of one name in two namespaces must not share them. */}}
{{- define "limpet.clusterName" -}}
{{ printf "%s:%s" .Release.Namespace (include "limpet.fullname" .) }}
{{- end }}

{{/* What all containers have in common. */}}
{{- define "limpet.container" -}}
image: {{ include "limpet.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "limpet.subjects" -}}
- kind: ServiceAccount
  name: {{ include "limpet.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
